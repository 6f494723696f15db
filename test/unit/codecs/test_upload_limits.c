/*
 * Bodies made to cost more than they weigh: 16 MiB of empty messages of every field, millions of one-frame stacks, one
 * location with a thousand lines named a million times, ten thousand parts. Each ends in a named limit, within the
 * memory that was promised.
 */
#include "test/oracle/feed.h"
#include "test/oracle/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum { BODY = 16 << 20 };
static struct hash_key key;
static struct limits limits;
static struct upload_spec spec;

static int set_up(void **state)
{
    (void)state;
    hash_key_derive(&key, STR("limits"));
    limits = feed_limits;
    limits.decoded = 64 << 20;
    spec = (struct upload_spec){.kind = UPLOAD_PPROF,
                                .params = {.name = STR("app")},
                                .boundary = STR("xx"),
                                .window_past_ns = -1,
                                .window_future_ns = -1,
                                .limits = &limits,
                                .key = &key};
    return 0;
}

/* Feeds 16 KiB slices, watching what is held. */
static enum err fed(const struct buf *b, struct fault *f, bool *any)
{
    struct upload *u = upload_new(&spec, f);
    struct str in = buf_view(b);
    enum step s = STEP_MORE;
    size_t most = 0;

    *any = false;
    assert_non_null(u);
    while (in.len && s != STEP_FAIL) {
        struct str slice = {in.p, in.len < 16384 ? in.len : 16384};
        size_t given = slice.len;
        uint32_t budget = 65536;
        s = upload_feed(u, &slice, &budget);
        in.p += given - slice.len;
        in.len -= given - slice.len;
        most = upload_memory(u) > most ? upload_memory(u) : most;
    }
    for (s = s == STEP_FAIL ? s : STEP_AGAIN; s == STEP_AGAIN;) {
        uint32_t budget = 65536;
        s = upload_end(u, &budget);
    }
    enum err e = s == STEP_FAIL ? upload_fault(u)->err : upload_finish(u);
    *f = *upload_fault(u);
    if (e == E_OK && upload_outcomes(u)) {
        *f = upload_outcome(u, 0)->fault;
        *any = upload_outcome(u, 0)->record != NULL;
    }
    assert_true(most < limits.decoded + (1 << 20));
    upload_free(u);
    return f->err;
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void expect(const struct buf *b, enum err e, const char *words)
{
    struct fault f = {0};
    bool any;
    double begin = cpu_seconds();

    assert_int_equal(fed(b, &f, &any), e);
    if (!strstr(f.text, words))
        fail_msg("\"%s\" does not say \"%s\"", f.text, words);
    print_message("%.0f ms: %s\n", (cpu_seconds() - begin) * 1e3, f.text);
}

static void test_empty_messages(void **state)
{
    struct buf b = {0};
    static const struct {
        uint32_t field;
        enum err e;
        const char *words;
    } rows[] = {{1, E_PROFILE_TOO_LARGE, "limits.decoded"}, {2, E_TOO_MANY_SAMPLES, "limits.samples"},
                {3, E_PROFILE_TOO_LARGE, "limits.decoded"}, {4, E_PROFILE_TOO_LARGE, "limits.decoded"},
                {5, E_PROFILE_TOO_LARGE, "limits.decoded"}, {6, E_PROFILE_TOO_LARGE, "limits.decoded"}};

    (void)state;
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        b.len = 0;
        while (b.len < BODY)
            wire_bytes(&b, rows[i].field, STR(""));
        expect(&b, rows[i].e, rows[i].words);
    }
    b.len = 0;
    while (b.len < BODY)
        wire_bytes(&b, 11, STR(""));
    expect(&b, E_BAD_INPUT, "no sample types");
    buf_free(&b);
}

/* What arrives inside one field, too: lines, labels, ids. */
static void test_inner_messages(void **state)
{
    struct buf b = {0}, m = {0};

    (void)state;
    while (m.len < 3 << 20)
        wire_bytes(&m, 4, STR(""));
    wire_bytes(&b, 4, buf_view(&m));
    wire_bytes(&b, 4, buf_view(&m));
    expect(&b, E_PROFILE_TOO_LARGE, "limits.decoded");
    b.len = m.len = 0;
    while (m.len < 4 << 20)
        wire_bytes(&m, 3, STR(""));
    buf_char(&m, 0);
    wire_bytes(&b, 2, buf_view(&m));
    expect(&b, E_PROFILE_TOO_LARGE, "limits.field");
    buf_free(&b);
    buf_free(&m);
}

static void test_one_frame_stacks(void **state)
{
    struct buf b = {0};

    (void)state;
    wire_profile(&b);
    for (uint64_t i = 1; b.len < BODY; i++)
        wire_sample(&b, &i, 1, &(int64_t){1}, 1);
    expect(&b, E_TOO_MANY_SAMPLES, "limits.samples (200000)");
    limits.samples = 10000000;
    limits.body = 32 << 20;
    limits.decoded = 16 << 20;
    expect(&b, E_PROFILE_TOO_LARGE, "limits.decoded");
    buf_free(&b);
}

/* Each sample names a location that stands for a thousand frames: cheap to send, dear to expand. */
static void test_fat_locations(void **state)
{
    struct buf b = {0}, m = {0}, line = {0};

    (void)state;
    wire_profile(&b);
    wire_number(&line, 1, 1);
    wire_number(&m, 1, 9);
    struct buf lines = {0};
    buf_str(&lines, buf_view(&m));
    for (int i = 0; i < 2000; i++) {
        line.len = 0;
        wire_number(&line, 1, 1);
        wire_number(&line, 2, (uint64_t)i);
        wire_bytes(&lines, 4, buf_view(&line));
    }
    wire_bytes(&b, 4, buf_view(&lines));
    for (int i = 0; i < 199000; i++)
        wire_sample(&b, (uint64_t[]){9, 1, (uint64_t)(i & 1) + 1}, 1 + (size_t)(i & 1), &(int64_t){1}, 1);
    struct fault f = {0};
    bool any;
    double begin = cpu_seconds();
    assert_int_equal(fed(&b, &f, &any), E_OK);
    assert_true(any);
    print_message("%.0f ms: fat locations, repeated\n", (cpu_seconds() - begin) * 1e3);
    for (uint64_t i = 0; i < 500; i++)
        wire_sample(&b,
                    (uint64_t[]){1, 2, i & 1 ? 1 : 2, i & 2 ? 1 : 2, i & 4 ? 1 : 2, i & 8 ? 1 : 2, i & 16 ? 1 : 2,
                                 i & 32 ? 1 : 2, i & 64 ? 1 : 2, i & 128 ? 1 : 2, i & 256 ? 1 : 2, 9},
                    12, &(int64_t){1}, 1);
    limits.decoded = 32 << 20;
    assert_int_equal(fed(&b, &f, &any), E_OK);
    buf_free(&b);
    buf_free(&m);
    buf_free(&line);
    buf_free(&lines);
}

static void test_label_sets(void **state)
{
    struct buf b = {0}, m = {0}, l = {0};

    (void)state;
    wire_profile(&b);
    for (uint64_t i = 0; i < 190000; i++) {
        wire_number(&l, 1, 3);
        wire_number(&l, 3, i + 1);
        wire_number(&m, 1, 1);
        wire_number(&m, 2, 5);
        wire_message(&m, 3, &l);
        wire_message(&b, 2, &m);
    }
    struct fault f = {0};
    bool any;
    double begin = cpu_seconds();
    assert_int_equal(fed(&b, &f, &any), E_OK);
    assert_true(any);
    print_message("%.0f ms: a label set a sample\n", (cpu_seconds() - begin) * 1e3);
    buf_free(&b);
    buf_free(&m);
    buf_free(&l);
}

static void test_parts(void **state)
{
    struct buf b = {0};

    (void)state;
    spec.kind = UPLOAD_MULTIPART;
    for (int i = 0; i < 10000; i++)
        buf_str(&b, STR("--xx\r\n\r\n\r\n"));
    expect(&b, E_TOO_MANY_PARTS, "limits.parts (1000)");
    buf_free(&b);
}

static void test_push(void **state)
{
    struct buf b = {0}, s = {0}, m = {0};

    (void)state;
    spec.kind = UPLOAD_PUSH_PROTO;
    while (b.len < BODY)
        wire_bytes(&b, 1, STR(""));
    expect(&b, E_NO_PROFILES, "no profiles");
    b.len = 0;
    while (s.len < 1 << 20)
        wire_bytes(&s, 1, STR(""));
    for (int i = 0; i < 15; i++)
        wire_bytes(&b, 1, buf_view(&s));
    expect(&b, E_NO_PROFILES, "no profiles");
    b.len = s.len = 0;
    while (s.len < 4 << 20)
        wire_bytes(&s, 1, STR(""));
    wire_message(&b, 1, &s);
    struct fault f = {0};
    bool any;
    limits.decoded = 8 << 20;
    assert_int_equal(fed(&b, &f, &any), E_PROFILE_TOO_LARGE);
    b.len = 0;
    while (s.len < 1 << 20)
        wire_bytes(&s, 2, STR(""));
    wire_message(&b, 1, &s);
    expect(&b, E_TOO_MANY_PROFILES, "limits.profiles (1000)");
    buf_free(&b);
    buf_free(&s);
    buf_free(&m);
}

static void test_body(void **state)
{
    struct buf b = {0};

    (void)state;
    spec.kind = UPLOAD_FOLDED;
    while (b.len < BODY)
        buf_str(&b, STR("a;b;c 1\n"));
    struct fault f = {0};
    bool any;
    assert_int_equal(fed(&b, &f, &any), E_OK);
    assert_true(any);
    buf_char(&b, '\n');
    expect(&b, E_BODY_TOO_LARGE, "limits.body (16777216 bytes)");
    buf_free(&b);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, set_up)
    const struct CMUnitTest tests[] = {TEST(test_empty_messages),
                                       TEST(test_inner_messages),
                                       TEST(test_one_frame_stacks),
                                       TEST(test_fat_locations),
                                       TEST(test_label_sets),
                                       TEST(test_parts),
                                       TEST(test_push),
                                       TEST(test_body)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
