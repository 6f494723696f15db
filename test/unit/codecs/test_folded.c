/* Folded text: cases C41, C43, C45 and the suffixes of protocol.md 1.5. */
#include "test/oracle/feed.h"
#include "test/oracle/tally.h"
#include "test/oracle/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct hash_key key;
static struct limits limits;

struct row {
    const char *name, *rate, *text;
    const char *service, *id; /* of what comes out; service NULL: refused */
    int64_t total;
    const char *words; /* refused: what the message says; else a function whose self is `self` */
    int64_t self;
};

#define CPU_ID "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

static const struct row rows[] = {
    {"app", "100", "# c\n\nmain;foo 3\nmain;bar 1\nmain;foo 2\r\n", "app", CPU_ID, 60000000, "foo", 50000000},
    {"app", "", "a 1", "app", CPU_ID, 10000000, "a", 10000000},
    {"app", "99", "a 1", "app", CPU_ID, 10101010, "a", 10101010},
    {"app", "99.5", "a 1", "app", CPU_ID, 10000000, "a", 10000000},
    {"app", "-3", "a 1", "app", CPU_ID, 10000000, "a", 10000000},
    {"app", "x", "a 1", "app", CPU_ID, 10000000, "a", 10000000},
    {"app", "0", "a 7", "app", "process_cpu:samples:count::", 7, "a", 7},
    {"svc.cpu{}", "100", "a 1", "svc", CPU_ID, 10000000, "a", 10000000},
    {"shop.java.itimer{env=lab}", "100", "a 1", "shop.java", CPU_ID, 10000000, "a", 10000000},
    {"svc.wall", "100", "a 1", "svc", "wall:wall:nanoseconds:cpu:nanoseconds", 10000000, "a", 10000000},
    {"svc.seconds{}", "0", "a 3", "svc", "wall:samples:count::", 3, "a", 3},
    {"svc.inuse_space", "100", "a 4096", "svc", "memory:inuse_space:bytes::", 4096, "a", 4096},
    {"svc.lock_duration", "100", "a 5", "svc", "block:delay:nanoseconds::", 5, "a", 5},
    {"svc.exceptions", "100", "a 5", "svc", "exceptions:samples:count::", 5, "a", 5},
    {"payments.api{}", "100", "a 1", "payments.api", CPU_ID, 10000000, "a", 10000000},
    {".cpu", "100", "a 1", ".cpu", CPU_ID, 10000000, "a", 10000000},
    {"app{service_name=my shop}", "100", "a 1", "my shop", CPU_ID, 10000000, "a", 10000000},
    {"app", "0", " 1\nm 2\n", "app", "process_cpu:samples:count::", 3, "m", 2},
    {"app", "0", "a b:3 - c;d e 5   \n", "app", "process_cpu:samples:count::", 5, "d e", 5},
    {"app", "0", "a;b; 2\na;;b 3", "app", "process_cpu:samples:count::", 5, "b", 5},
    {"app", "0", "a 9223372036854775807", "app", "process_cpu:samples:count::", INT64_MAX, "a", INT64_MAX},
    {"app", "0", "a 9223372036854775807\na 1", "app", "process_cpu:samples:count::", INT64_MAX, "a", INT64_MAX},
    {"app", "0", "r;a;a 2\nr;a 1\n", "app", "process_cpu:samples:count::", 3, "a", 3},
    {"app", "0", "ok 1\nmain;bar\n", NULL, NULL, 0, "line 2", 0},
    {"app", "0", "x 1.5", NULL, NULL, 0, "line 1", 0},
    {"app", "0", "\n\nx -256", NULL, NULL, 0, "line 3", 0},
    {"app", "0", "x +3", NULL, NULL, 0, "whole number", 0},
    {"app", "0", "x 1e3", NULL, NULL, 0, "whole number", 0},
    {"app", "0", "x 9223372036854775808", NULL, NULL, 0, "whole number", 0},
    {"app", "0", "x\xff 1", NULL, NULL, 0, "UTF-8", 0},
    {"app", "0", "42", NULL, NULL, 0, "no count", 0},
    {"app", "0", "{\"nodes\":[]}", NULL, NULL, 0, "V8 cpuprofile", 0},
    {"app", "0", "{\"shared\":{}}", NULL, NULL, 0, "speedscope", 0},
    {"", "0", "x 1", NULL, NULL, 0, "service name is required", 0},
    {"{a=b}", "0", "x 1", NULL, NULL, 0, "service name is required", 0},
};

static struct upload *feed(const struct row *r, struct str body, enum coding coding, struct fault *f)
{
    struct upload_spec spec = {.kind = UPLOAD_FOLDED,
                               .coding = coding,
                               .params = {.name = str_of(r->name), .sample_rate = str_of(r->rate)},
                               .project = STR("p"),
                               .now_ns = INT64_C(1796073040000000000),
                               .window_past_ns = -1,
                               .window_future_ns = -1,
                               .limits = &limits,
                               .key = &key};
    return feed_upload(&spec, body, &(struct feed_plan){0}, f);
}

static void check(const struct row *r, struct upload *u, const struct fault *f)
{
    if (!r->service) {
        if (u || !strstr(f->text, r->words) || err_status(f->err) >= 500)
            fail_msg("%s: %s", r->text, f->text);
        return;
    }
    if (!u)
        fail_msg("%s: %s", r->text, f->text);
    const struct record *rec = upload_outcome(u, 0)->record;
    struct arena *a = arena_new(1 << 24);
    assert_non_null(rec);
    assert_true(str_eq(rec->series.service, str_of(r->service)));
    assert_true(str_eq(rec->types[0].id, str_of(r->id)));
    struct tally *t = tally_record(a, rec);
    assert_int_equal(t->types[0].total, r->total);
    assert_int_equal(tally_find(t, str_of(r->words), STR(""))->self[0], r->self);
    arena_free(a);
}

static int set_up(void **state)
{
    (void)state;
    hash_key_derive(&key, STR("folded"));
    limits = feed_limits;
    return 0;
}

/* Plain, gzip'd without a word about it, and as Content-Encoding. */
static void test_rows(void **state)
{
    struct buf gz = {0};

    (void)state;
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        for (int how = 0; how < 3; how++) {
            struct fault f = {0};
            gz.len = 0;
            wire_gzip(&gz, str_of(rows[i].text));
            struct upload *u = feed(&rows[i], how ? buf_view(&gz) : str_of(rows[i].text),
                                    how == 2 ? CODING_GZIP : CODING_IDENTITY, &f);
            check(&rows[i], u, &f);
            upload_free(u);
        }
    }
    buf_free(&gz);
}

static void test_limits(void **state)
{
    const struct row r = {"app", "0", "", "app", "", 0, "", 0};
    struct buf b = {0};
    struct fault f = {0};

    (void)state;
    limits.samples = 100;
    limits.depth = 3;
    limits.field = 200;
    for (int i = 0; i < 100; i++)
        buf_printf(&b, "a;b;c;d;f%d 1\n", i % 100);
    struct upload *u = feed(&r, buf_view(&b), CODING_IDENTITY, &f);
    assert_non_null(u);
    assert_int_equal(upload_outcome(u, 0)->record->drops.truncated_stacks, 100);
    for (uint32_t s = 0; s < upload_outcome(u, 0)->record->symbols->n_stacks; s++)
        assert_int_equal(upload_outcome(u, 0)->record->symbols->stack_at[s + 1], (s + 1) * 3);
    upload_free(u);
    buf_printf(&b, "new 1\n");
    assert_null(feed(&r, buf_view(&b), CODING_IDENTITY, &f));
    assert_int_equal(f.err, E_TOO_MANY_SAMPLES);
    assert_non_null(strstr(f.text, "limits.samples (100)"));
    b.len = 0;
    for (int i = 0; i < 300; i++)
        buf_char(&b, 'x');
    f = (struct fault){0};
    assert_null(feed(&r, buf_view(&b), CODING_IDENTITY, &f));
    assert_non_null(strstr(f.text, "line 1 is longer than limits.field"));
    buf_free(&b);
}

/* Nothing, blank lines and comments are an empty profile. */
static void test_empty(void **state)
{
    static const char *const bodies[] = {"", "\n\n", "# nothing\n", "a 0\n"};
    const struct row r = {"app", "0", "", "app", "", 0, "", 0};

    (void)state;
    for (size_t i = 0; i < COUNTOF(bodies); i++) {
        struct fault f = {0};
        struct upload *u = feed(&r, str_of(bodies[i]), CODING_IDENTITY, &f);
        assert_non_null(u);
        assert_int_equal(upload_outcomes(u), 1);
        assert_null(upload_outcome(u, 0)->record);
        assert_int_equal(upload_outcome(u, 0)->fault.err, E_OK);
        upload_free(u);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_rows, set_up),
                                       cmocka_unit_test_setup(test_limits, set_up),
                                       cmocka_unit_test_setup(test_empty, set_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
