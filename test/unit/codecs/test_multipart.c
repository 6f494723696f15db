/* Multipart bodies as clients write them, and as they must not be. clients.md 10.16 and 10.17, protocol.md 1.6. */
#include "test/oracle/feed.h"
#include "test/oracle/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct hash_key key;
static struct limits limits;
static struct buf small; /* a pprof of one sample, value 7 */

static int set_up(void **state)
{
    (void)state;
    hash_key_derive(&key, STR("multipart"));
    limits = feed_limits;
    wire_small(&small);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    buf_free(&small);
    return 0;
}

#define PROFILE "Content-Disposition: form-data; name=\"profile\"; filename=\"profile.pprof\"\r\n\r\n"

/* P stands for the profile. */
static void expand(struct buf *b, const char *pattern)
{
    b->len = 0;
    for (const char *p = pattern; *p; p++) {
        if (*p == 'P' && p[1] == '!') {
            buf_str(b, buf_view(&small));
            p++;
        } else {
            buf_char(b, *p);
        }
    }
}

static struct upload *fed(struct str body, enum upload_kind kind, const char *boundary, struct fault *f)
{
    struct upload_spec spec = {.kind = kind,
                               .boundary = str_of(boundary),
                               .params = {.name = STR("app")},
                               .project = STR("p"),
                               .window_past_ns = -1,
                               .window_future_ns = -1,
                               .keep_originals = true,
                               .limits = &limits,
                               .key = &key};
    struct fault g = {0};
    struct upload *pieces = feed_upload(&spec, body, &(struct feed_plan){.piece = 1}, &g);

    *f = (struct fault){0};
    struct upload *u = feed_upload(&spec, body, &(struct feed_plan){0}, f);
    assert_int_equal(u == NULL, pieces == NULL);
    assert_string_equal(f->text, g.text);
    upload_free(pieces);
    return u;
}

static const char *const good[] = {
    "--xx\r\n" PROFILE "P!\r\n--xx--\r\n",
    "--xx\r\n" PROFILE "P!\r\n--xx--",
    "preamble\r\n\r\n--xx\r\n" PROFILE "P!\r\n--xx--\r\nepilogue --xx",
    "--xx  \t\r\nCONTENT-DISPOSITION:form-data;NAME=profile\r\ncontent-type: text/json\r\nContent-Length: "
    "5\r\n\r\nP!\r\n--xx--",
    "--xx\r\nContent-Disposition: form-data; filename=\"name=x\"; name=\"profile\"\r\n\r\nP!\r\n--xx--",
    "--xx\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\nzz\r\n--x\r\n\r\n-\r\r\n--xx\r\n" PROFILE
    "P!\r\n--xx--",
    "--xx\r\n" PROFILE "P!\r\n--xx\r\nContent-Disposition: form-data; name=\"sample_type_config\"\r\n\r\n"
    "{\"cpu\":{\"units\":\"samples\",\"unknown\":[1]}}\r\n--xx--",
    "--xx\r\nContent-Disposition: form-data; name=\"prev_profile\"; filename=\"p\"\r\n\r\n\r\n--xx\r\n" PROFILE
    "P!\r\n--xx--",
};

static void test_good(void **state)
{
    struct buf b = {0};

    (void)state;
    for (size_t i = 0; i < COUNTOF(good); i++) {
        for (int sniffed = 0; sniffed < 2; sniffed++) {
            struct fault f;
            expand(&b, good[i]);
            if (sniffed && !str_starts(buf_view(&b), STR("--")))
                continue;
            struct upload *u = fed(buf_view(&b), sniffed ? UPLOAD_PPROF : UPLOAD_MULTIPART, "xx", &f);
            if (!u)
                fail_msg("row %zu: %s", i, f.text);
            const struct record *r = upload_outcome(u, 0)->record;
            assert_non_null(r);
            assert_int_equal(r->types[0].total, 7);
            assert_true(str_eq(r->original, buf_view(&small)));
            assert_int_equal(r->original_bytes, small.len);
            upload_free(u);
        }
    }
    buf_free(&b);
}

static const struct {
    const char *body, *words;
    enum err e;
} bad[] = {
    {"no boundary at all", "no boundary", E_BAD_INPUT},
    {"--xx\r\n" PROFILE "P!", "without the last boundary", E_BAD_INPUT},
    {"--xx\r\n" PROFILE "P!\r\n--x", "without the last boundary", E_BAD_INPUT},
    {"--xx\r\n" PROFILE "P!\r\n--xx", "without the last boundary", E_BAD_INPUT},
    {"--xxy\r\n" PROFILE "P!\r\n--xx--", "behind a boundary", E_BAD_INPUT},
    {"--xx\r\n" PROFILE "P!\r\n--xx\r\n" PROFILE "P!\r\n--xx--", "two parts profile", E_BAD_INPUT},
    {"--xx\r\nContent-Disposition: form-data; name=\"prev_profile\"\r\n\r\nold\r\n--xx--", "prev_profile",
     E_CUMULATIVE},
    {"--xx\r\nContent-Disposition: form-data; name=\"jfr\"; filename=\"jfr\"\r\n\r\nFLR\r\n--xx--", "JFR",
     E_UNSUPPORTED_TYPE},
    {"--xx\r\n" PROFILE "<html>\r\n--xx--", "looks like HTML", E_BAD_INPUT},
};

static void test_bad(void **state)
{
    struct buf b = {0};

    (void)state;
    for (size_t i = 0; i < COUNTOF(bad); i++) {
        struct fault f;
        expand(&b, bad[i].body);
        assert_null(fed(buf_view(&b), UPLOAD_MULTIPART, "xx", &f));
        assert_int_equal(f.err, bad[i].e);
        if (!strstr(f.text, bad[i].words))
            fail_msg("row %zu: %s", i, f.text);
    }
    for (size_t i = 0; i < 2; i++) {
        struct fault f;
        assert_null(fed(STR("x"), UPLOAD_MULTIPART, i ? "a\r\nb" : "", &f));
        assert_non_null(strstr(f.text, "boundary"));
    }
    buf_free(&b);
}

/* What is found in a good multipart body that has no profile in it, or an empty one: nothing, and 200. */
static void test_nothing(void **state)
{
    static const char *const bodies[] = {"", "--xx--", "--xx\r\n" PROFILE "\r\n--xx--\r\n",
                                         "--xx\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\nP!\r\n--xx--"};
    struct buf b = {0};

    (void)state;
    for (size_t i = 0; i < COUNTOF(bodies); i++) {
        struct fault f;
        expand(&b, bodies[i]);
        struct upload *u = fed(buf_view(&b), UPLOAD_MULTIPART, "xx", &f);
        assert_non_null(u);
        assert_int_equal(upload_outcomes(u), 1);
        assert_null(upload_outcome(u, 0)->record);
        assert_int_equal(upload_outcome(u, 0)->fault.err, E_OK);
        upload_free(u);
    }
    buf_free(&b);
}

/* sample_type_config: cumulative types are refused by name; display names name the series; rubbish is 400. */
static void test_config(void **state)
{
    static const struct {
        const char *config, *name, *words;
        enum err e;
    } rows[] = {
        {"{\"cpu\":{\"display-name\":\"block_duration\"}}", "block", "", E_OK},
        {"{\"cpu\":{\"display-name\":\"goroutines\"}}", "goroutines", "", E_OK},
        {"{\"cpu\":{\"Display-Name\":\"thing\"}}", "thing", "", E_OK},
        {" ", "process_cpu", "", E_OK},
        {"{\"cpu\":{\"cumulative\":true}}", NULL, "cpu: cumulative", E_CUMULATIVE},
        {"{\"cpu\":{\"cumulative\":false}}", "process_cpu", "", E_OK},
        {"{\"wall\":{\"cumulative\":true}}", "process_cpu", "", E_OK},
        {"[1]", NULL, "sample_type_config", E_BAD_INPUT},
        {"{\"cpu\":", NULL, "sample_type_config", E_BAD_INPUT},
        {"{\"cpu\":x}", NULL, "sample_type_config", E_BAD_INPUT},
    };
    struct buf b = {0}, body = {0};

    (void)state;
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        struct fault f;
        b.len = 0;
        buf_printf(&b,
                   "--xx\r\nContent-Disposition: form-data; name=\"sample_type_config\"\r\n\r\n%s\r\n--xx\r\n" PROFILE
                   "P!\r\n--xx--%c",
                   rows[i].config, 0);
        expand(&body, b.p);
        struct upload *u = fed(buf_view(&body), UPLOAD_MULTIPART, "xx", &f);
        if (!u)
            fail_msg("%s: %s", rows[i].config, f.text);
        const struct outcome *o = upload_outcome(u, 0);
        assert_int_equal(o->fault.err, rows[i].e);
        assert_non_null(strstr(o->fault.text, rows[i].words));
        assert_int_equal(o->record != NULL, rows[i].name != NULL);
        if (o->record)
            assert_true(str_eq(o->record->series.name, str_of(rows[i].name)));
        upload_free(u);
    }
    buf_free(&b);
    buf_free(&body);
}

static void test_limits(void **state)
{
    struct buf b = {0};
    struct fault f;

    (void)state;
    limits.parts = 10;
    for (int i = 0; i < 11; i++)
        buf_str(&b, STR("--xx\r\n\r\n\r\n"));
    assert_null(fed(buf_view(&b), UPLOAD_MULTIPART, "xx", &f));
    assert_non_null(strstr(f.text, "limits.parts (10)"));
    b.len = 0;
    buf_str(&b, STR("--xx\r\n"));
    for (int i = 0; i < 1000; i++)
        buf_str(&b, STR("X-Header: 12345\r\n"));
    assert_null(fed(buf_view(&b), UPLOAD_MULTIPART, "xx", &f));
    assert_non_null(strstr(f.text, "headers longer"));
    buf_free(&b);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(test_good), TEST(test_bad), TEST(test_nothing), TEST(test_config),
                                       TEST(test_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
