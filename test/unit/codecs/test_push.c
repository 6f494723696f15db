/* PushRequests, as protobuf and as JSON: labels before and behind, several layers, one bad profile among good ones. */
#include "test/oracle/feed.h"
#include "test/oracle/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW INT64_C(1796073040000000000)
#define HOUR INT64_C(3600000000000)

static struct hash_key key;
static struct limits limits;
static struct upload_spec spec;
static struct buf small, request, series;

static int set_up(void **state)
{
    (void)state;
    hash_key_derive(&key, STR("push"));
    limits = feed_limits;
    spec = (struct upload_spec){.kind = UPLOAD_PUSH_PROTO,
                                .project = STR("p"),
                                .now_ns = NOW,
                                .window_past_ns = 24 * HOUR,
                                .window_future_ns = HOUR / 6,
                                .limits = &limits,
                                .key = &key};
    wire_small(&small);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    buf_free(&small);
    buf_free(&request);
    buf_free(&series);
    return 0;
}

static void label(const char *name, const char *value)
{
    struct buf m = {0};

    wire_bytes(&m, 1, str_of(name));
    wire_bytes(&m, 2, str_of(value));
    wire_message(&series, 1, &m);
    buf_free(&m);
}

static void sample(struct str raw, const char *id)
{
    struct buf m = {0};

    if (raw.p)
        wire_bytes(&m, 1, raw);
    if (*id)
        wire_bytes(&m, 2, str_of(id));
    wire_message(&series, 2, &m);
    buf_free(&m);
}

static void end_series(void)
{
    wire_message(&request, 1, &series);
}

static struct upload *feed(struct fault *f)
{
    struct fault g = {0};
    struct upload *pieces = feed_upload(&spec, buf_view(&request), &(struct feed_plan){.piece = 3, .budget = 5}, &g);

    *f = (struct fault){0};
    struct upload *u = feed_upload(&spec, buf_view(&request), &(struct feed_plan){0}, f);
    assert_int_equal(u == NULL, pieces == NULL);
    upload_free(pieces);
    request.len = 0;
    return u;
}

static const struct outcome *only(struct upload *u)
{
    assert_non_null(u);
    assert_int_equal(upload_outcomes(u), 1);
    return upload_outcome(u, 0);
}

static struct str value_of(const struct record *r, const char *name)
{
    for (uint32_t i = 0; i < r->series.n_labels; i++)
        if (str_eq(r->series.labels[i].name, str_of(name)))
            return r->series.labels[i].value;
    return (struct str){NULL, 0};
}

static void test_order(void **state)
{
    struct fault f;

    (void)state;
    label("z", "1");
    sample(buf_view(&small), "id-1");
    label("service_name", " my shop ");
    wire_bytes(&series, 9, STR("unknown"));
    label("__name__", "process_cpu");
    label("__session_id__", "x");
    label("__other__", "x");
    label("empty", "");
    end_series();
    wire_number(&request, 7, 7);
    struct upload *u = feed(&f);
    const struct record *r = only(u)->record;
    assert_non_null(r);
    assert_true(str_eq(r->series.service, STR("my shop")));
    assert_true(str_eq(r->series.name, STR("process_cpu")));
    assert_int_equal(r->series.n_labels, 3);
    assert_true(str_eq(value_of(r, "z"), STR("1")));
    assert_true(str_eq(value_of(r, "__session_id__"), STR("x")));
    assert_true(r->identity);
    upload_free(u);
}

static void test_defaults(void **state)
{
    struct fault f;

    (void)state;
    sample(buf_view(&small), "");
    end_series();
    struct upload *u = feed(&f);
    const struct record *r = only(u)->record;
    assert_true(str_eq(r->series.service, STR("unknown_service")));
    assert_true(str_eq(r->types[0].id, STR("process_cpu:cpu:nanoseconds::")));
    assert_false(r->identity);
    assert_int_equal(r->time_ns, NOW);
    upload_free(u);
}

static void test_repeated_labels(void **state)
{
    struct fault f;

    (void)state;
    label("service_name", "first");
    label("__name__", "memory");
    label("env", "a");
    label("service_name", "second");
    label("env", "b");
    label("__name__", "other");
    label("spy_name", "dotnetspy");
    label("spy_name", "dotnetspy");
    sample(buf_view(&small), "");
    end_series();
    struct upload *u = feed(&f);
    const struct record *r = only(u)->record;
    assert_true(str_eq(r->series.service, STR("first")));
    assert_true(str_eq(r->series.name, STR("memory")));
    assert_true(str_eq(value_of(r, "env"), STR("b")));
    assert_true(str_eq(r->series.spy, STR("dotnetspy")));
    assert_int_equal(r->series.n_labels, 3);
    upload_free(u);
}

static void test_layers(void **state)
{
    struct buf one = {0}, two = {0}, three = {0};
    struct fault f;

    (void)state;
    wire_gzip(&one, buf_view(&small));
    wire_gzip(&two, buf_view(&one));
    wire_gzip(&three, buf_view(&two));
    sample(buf_view(&small), "");
    sample(buf_view(&one), "");
    sample(buf_view(&two), "");
    sample(buf_view(&three), "");
    end_series();
    for (int coded = 0; coded < 2; coded++) {
        struct buf keep = {0};
        buf_str(&keep, buf_view(&request));
        if (coded) {
            request.len = 0;
            wire_gzip(&request, buf_view(&keep));
            spec.coding = CODING_GZIP;
        }
        struct upload *u = feed(&f);
        assert_non_null(u);
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(upload_outcome(u, i)->record->types[0].total, 7);
        assert_int_equal(upload_outcome(u, 3)->fault.err, coded ? E_BAD_ENCODING : E_OK);
        upload_free(u);
        buf_str(&request, buf_view(&keep));
        buf_free(&keep);
    }
    buf_free(&one);
    buf_free(&two);
    buf_free(&three);
}

static void test_one_bad(void **state)
{
    struct buf late = {0};
    struct fault f;

    (void)state;
    wire_small(&late);
    wire_number(&late, 9, (uint64_t)(NOW - 25 * HOUR));
    label("service_name", "a");
    sample(buf_view(&small), "");
    sample(STR("<html>"), "");
    sample((struct str){NULL, 0}, "");
    sample(buf_view(&late), "");
    end_series();
    label("service_name", "a\nb");
    sample(buf_view(&small), "");
    end_series();
    sample(buf_view(&small), "");
    end_series();
    struct upload *u = feed(&f);
    static const enum err want[] = {E_OK, E_BAD_INPUT, E_OK, E_OUT_OF_WINDOW, E_BAD_NAME, E_OK};
    assert_int_equal(upload_outcomes(u), COUNTOF(want));
    for (uint32_t i = 0; i < COUNTOF(want); i++) {
        assert_int_equal(upload_outcome(u, i)->fault.err, want[i]);
        assert_int_equal(upload_outcome(u, i)->record != NULL, want[i] == E_OK && i != 2);
    }
    char bound[32];
    snprintf(bound, sizeof bound, "%lld to", (long long)(NOW - 24 * HOUR));
    assert_non_null(strstr(upload_outcome(u, 3)->fault.text, bound));
    struct record *r = upload_take(u, 0);
    upload_free(u);
    assert_int_equal(r->types[0].total, 7);
    record_free(r);
    buf_free(&late);
}

static void test_delta(void **state)
{
    struct fault f;

    (void)state;
    label("__delta__", "true");
    sample(buf_view(&small), "");
    end_series();
    struct upload *u = feed(&f);
    assert_int_equal(only(u)->fault.err, E_CUMULATIVE);
    assert_non_null(strstr(only(u)->fault.text, "cpu"));
    upload_free(u);
    label("__delta__", "false");
    sample(buf_view(&small), "");
    end_series();
    u = feed(&f);
    assert_non_null(only(u)->record);
    upload_free(u);
}

/* Equal siblings differ by their ordinal; the same request again has the same ids. */
static void test_siblings(void **state)
{
    struct hash128 ids[6];
    struct fault f;

    (void)state;
    for (size_t round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++)
            sample(buf_view(&small), i == 2 ? "id" : "");
        end_series();
        struct upload *u = feed(&f);
        for (uint32_t i = 0; i < 3; i++)
            ids[round * 3 + i] = upload_outcome(u, i)->record->content_id;
        upload_free(u);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_memory_equal(&ids[i], &ids[i + 3], sizeof ids[i]);
        assert_memory_not_equal(&ids[i], &ids[(i + 1) % 3], sizeof ids[i]);
    }
}

static void refused(enum err e, const char *words)
{
    struct fault f;

    assert_null(feed(&f));
    assert_int_equal(f.err, e);
    if (!strstr(f.text, words))
        fail_msg("\"%s\" does not say \"%s\"", f.text, words);
}

static void test_refusals(void **state)
{
    (void)state;
    refused(E_NO_PROFILES, "no profiles");
    label("a", "b");
    end_series();
    end_series();
    refused(E_NO_PROFILES, "no profiles");
    sample(buf_view(&small), "");
    end_series();
    request.len--;
    refused(E_BAD_INPUT, "ends inside");
    buf_str(&request, STR("\x0b"));
    refused(E_BAD_INPUT, "malformed PushRequest");
    buf_str(&request, STR("\x0a\x05\x12\x09zzz")); /* a sample longer than its series */
    refused(E_BAD_INPUT, "longer than its message");
    buf_str(&request, STR("\x08\x05"));
    refused(E_BAD_INPUT, "wrong type");
    limits.profiles = 3;
    for (int i = 0; i < 4; i++)
        sample(buf_view(&small), "");
    end_series();
    refused(E_TOO_MANY_PROFILES, "limits.profiles (3)");
}

static void test_label_limits(void **state)
{
    static const struct {
        const char *name, *value, *words;
        enum err e;
    } rows[] = {{"ok", "v", "", E_OK},
                {"1234567890123", "v", "limits.label_name is 12", E_LABEL_NAME_LONG},
                {"a", "123456789", "limits.label_value is 8", E_LABEL_VALUE_LONG},
                {"", "v", "empty name", E_BAD_NAME},
                {"\xff", "v", "UTF-8", E_BAD_NAME},
                {"a", "\xff", "UTF-8", E_BAD_NAME}};
    struct fault f;
    char name[8];

    (void)state;
    limits.label_name = 12; /* service_name just fits */
    limits.label_value = 8;
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        label(rows[i].name, rows[i].value);
        label("service_name", "x");
        sample(buf_view(&small), "");
        end_series();
        struct upload *u = feed(&f);
        assert_int_equal(only(u)->fault.err, rows[i].e);
        assert_non_null(strstr(only(u)->fault.text, rows[i].words));
        upload_free(u);
    }
    limits = feed_limits;
    for (int i = 0; i < 31; i++) {
        snprintf(name, sizeof name, "l%d", i);
        label(name, "v");
    }
    sample(buf_view(&small), "");
    end_series();
    struct upload *u = feed(&f);
    assert_int_equal(only(u)->fault.err, E_TOO_MANY_LABELS);
    assert_non_null(strstr(only(u)->fault.text, "limits.labels is 30"));
    upload_free(u);
}

static void base64(struct buf *out, struct str s, bool url, bool pad)
{
    const char *abc = url ? "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
                          : "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < s.len; i += 3) {
        uint32_t v = 0, have = s.len - i < 3 ? (uint32_t)(s.len - i) : 3;
        for (uint32_t k = 0; k < 3; k++)
            v = v << 8 | (k < have ? (uint8_t)s.p[i + k] : 0);
        for (uint32_t k = 0; k < 4; k++)
            if (k <= have)
                buf_char(out, abc[v >> (18 - 6 * k) & 63]);
            else if (pad)
                buf_char(out, '=');
    }
}

static void test_json(void **state)
{
    struct fault f;

    (void)state;
    spec.kind = UPLOAD_PUSH_JSON;
    for (int how = 0; how < 4; how++) {
        buf_printf(&request, " {\"x\":[{\"series\":1}], \"series\" : [ {\"samples\":[{\"%s\":\"",
                   how & 1 ? "rawProfile" : "raw_profile");
        base64(&request, buf_view(&small), how & 1, how & 2);
        buf_printf(
            &request,
            "\",\"ID\":\"id\\u00e9\"}],\"labels\":[{\"value\":\"sh\\u006fp\",\"name\":\"service_name\",\"z\":null}]},"
            "{\"samples\":null,\"labels\":[]}], \"y\":-1.5e3}\n");
        struct upload *u = feed(&f);
        if (!u)
            fail_msg("%s", f.text);
        const struct record *r = only(u)->record;
        assert_true(str_eq(r->series.service, STR("shop")));
        assert_int_equal(r->types[0].total, 7);
        assert_true(r->identity);
        upload_free(u);
    }
}

static void test_json_refusals(void **state)
{
    static const struct {
        const char *text, *words;
        enum err e;
    } rows[] = {{"{}", "no profiles", E_NO_PROFILES},
                {"{\"series\":[]}", "no profiles", E_NO_PROFILES},
                {"{\"series\":[{\"samples\":[]}]}", "no profiles", E_NO_PROFILES},
                {"{\"series\":{}}", "object where none", E_BAD_INPUT},
                {"[]", "list where none", E_BAD_INPUT},
                {"\"x\"", "string where none", E_BAD_INPUT},
                {"{\"series\":[3]}", "number or literal", E_BAD_INPUT},
                {"{\"series\":[{\"samples\":[{\"rawProfile\":\"Z!\"}]}]}", "base64", E_BAD_INPUT},
                {"{\"series\":[{\"samples\":[{\"rawProfile\":\"Z\"}]}]}", "base64", E_BAD_INPUT},
                {"{\"series\":[{\"samples\":[{\"rawProfile\":7}]}]}", "number or literal", E_BAD_INPUT},
                {"{\"series\":[{\"samples\":[{}]}]", "ends too early", E_BAD_INPUT},
                {"{\"series\":[}", "JSON", E_BAD_INPUT}};

    (void)state;
    spec.kind = UPLOAD_PUSH_JSON;
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        buf_str(&request, str_of(rows[i].text));
        refused(rows[i].e, rows[i].words);
    }
    for (int i = 0; i < 100000; i++)
        buf_char(&request, '[');
    refused(E_BAD_INPUT, "");
    buf_str(&request, STR("{\"a\":"));
    for (int i = 0; i < 100000; i++)
        buf_char(&request, '[');
    refused(E_BAD_INPUT, "nested too deep");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_order),        TEST(test_defaults), TEST(test_repeated_labels), TEST(test_layers),
        TEST(test_one_bad),      TEST(test_delta),    TEST(test_siblings),        TEST(test_refusals),
        TEST(test_label_limits), TEST(test_json),     TEST(test_json_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
