/* The rows of design.md 4's table and of protocol.md 2.6, each as a pprof made for it. */
#include "codecs/profile.h"
#include "test/oracle/feed.h"
#include "test/oracle/tally.h"
#include "test/oracle/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW INT64_C(1796073040000000000)
#define HOUR INT64_C(3600000000000)

static struct hash_key key;
static struct limits limits;
static struct upload_spec spec;

static int set_up(void **state)
{
    (void)state;
    hash_key_derive(&key, STR("pprof"));
    limits = feed_limits;
    spec = (struct upload_spec){.kind = UPLOAD_PPROF,
                                .params = {.name = STR("app")},
                                .project = STR("p"),
                                .now_ns = NOW,
                                .window_past_ns = -1,
                                .window_future_ns = -1,
                                .limits = &limits,
                                .key = &key};
    return 0;
}

/* What a body comes to: a tally, or the fault. */
struct got {
    struct arena *a;
    struct upload *u;
    const struct outcome *o;
    const struct record *r;
    struct tally *t;
    struct fault f;
};

static struct got take(struct buf *body)
{
    struct got g = {.a = arena_new(1 << 30)};

    g.u = feed_upload(&spec, buf_view(body), &(struct feed_plan){0}, &g.f);
    if (g.u) {
        g.o = upload_outcome(g.u, 0);
        g.r = g.o->record;
        g.f = g.o->fault;
    }
    if (g.r)
        g.t = tally_record(g.a, g.r);
    buf_free(body);
    return g;
}

static void drop(struct got *g)
{
    upload_free(g->u);
    arena_free(g->a);
}

static void refused(struct buf *body, enum err e, const char *words)
{
    struct got g = take(body);

    assert_int_equal(g.f.err, e);
    if (!strstr(g.f.text, words))
        fail_msg("\"%s\" does not say \"%s\"", g.f.text, words);
    assert_null(g.r);
    drop(&g);
}

static void number_message(struct buf *b, uint32_t field, const uint64_t *pairs, size_t n)
{
    struct buf m = {0};

    for (size_t i = 0; i < n; i += 2)
        wire_number(&m, (uint32_t)pairs[i], pairs[i + 1]);
    wire_message(b, field, &m);
    buf_free(&m);
}

static void sample(struct buf *b, uint64_t leaf, uint64_t root, int64_t v)
{
    wire_sample(b, (uint64_t[]){leaf, root}, 2, &v, 1);
}

static int64_t self_of(const struct got *g, const char *name)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < g->t->n_rows; i++)
        if (str_eq(g->t->rows[i].name, str_of(name)))
            sum += g->t->rows[i].self[0];
    return sum;
}

static void test_plain(void **state)
{
    struct buf b = {0};

    (void)state;
    wire_profile(&b);
    sample(&b, 1, 2, 5);
    sample(&b, 2, 2, 7);
    sample(&b, 1, 2, 11);
    struct got g = take(&b);
    assert_int_equal(g.f.err, E_OK);
    assert_int_equal(g.r->n_samples, 2);
    assert_int_equal(g.t->types[0].total, 23);
    assert_int_equal(self_of(&g, "f1"), 16);
    assert_int_equal(tally_find(g.t, STR("f2"), STR("file.c"))->total[0], 23);
    assert_true(str_eq(g.r->series.name, STR("process_cpu")));
    assert_true(str_eq(g.r->types[0].id, STR("process_cpu:cpu:nanoseconds::")));
    assert_int_equal(g.r->time_ns, NOW);
    drop(&g);
}

/* Unpacked, over-long, unknown, any order: strings last and first, symbols behind samples. */
static void test_wire(void **state)
{
    struct buf b = {0}, m = {0};

    (void)state;
    number_message(&b, 2, (uint64_t[]){1, 2, 1, 1, 2, 7}, 6);
    wire_bytes(&b, 99, STR("unknown"));
    wire_number(&b, 98, 5);
    buf_add(&b, "\x12\x89\x80\x00\x08\x81\x80\x80\x00\x10\x85\x80\x00", 13); /* sample: id 1, value 5, padded varints */
    wire_profile(&b);
    buf_free(&m);
    struct got g = take(&b);
    assert_int_equal(g.f.err, E_OK);
    assert_int_equal(g.t->types[0].total, 12);
    assert_int_equal(self_of(&g, "f2"), 7);
    assert_int_equal(self_of(&g, "f1"), 5);
    drop(&g);
}

static void test_odd_ids(void **state)
{
    struct buf b = {0}, line = {0}, m = {0};
    const uint64_t huge = UINT64_MAX, big = UINT64_C(1) << 31;

    (void)state;
    wire_profile(&b);
    for (int i = 0; i < 2; i++) {
        wire_number(&line, 1, i ? huge : big);
        wire_number(&m, 1, i ? huge : big);
        wire_message(&m, 4, &line);
        wire_message(&b, 4, &m);
        wire_number(&m, 1, i ? huge : big);
        wire_number(&m, 2, 3);
        wire_message(&b, 5, &m);
    }
    sample(&b, huge, big, 3);
    sample(&b, 1, UINT64_C(1) << 40, 4); /* no such location */
    struct got g = take(&b);
    assert_int_equal(g.f.err, E_OK);
    assert_int_equal(g.t->types[0].total, 3);
    assert_int_equal(g.r->drops.broken_references, 1);
    assert_int_equal(self_of(&g, "f1"), 3);
    buf_free(&line);
    buf_free(&m);
    drop(&g);
}

static void test_values(void **state)
{
    struct buf b = {0};

    (void)state;
    wire_profile(&b);
    sample(&b, 1, 2, -5);
    sample(&b, 2, 2, 0);
    sample(&b, 2, 1, INT64_MAX);
    sample(&b, 2, 1, INT64_MAX);
    struct got g = take(&b);
    assert_int_equal(g.f.err, E_OK);
    assert_int_equal(g.r->drops.negative_values, 1);
    assert_int_equal(g.r->drops.zero_samples, 2);
    assert_true(g.r->drops.saturated);
    assert_int_equal(g.t->types[0].total, INT64_MAX);
    drop(&g);
}

static void test_no_stack(void **state)
{
    struct buf b = {0};

    (void)state;
    wire_profile(&b);
    wire_sample(&b, NULL, 0, &(int64_t){9}, 1);
    struct got g = take(&b);
    assert_int_equal(g.r->n_samples, 1);
    assert_int_equal(g.t->types[0].total, 9);
    assert_int_equal(g.t->n_rows, 0);
    drop(&g);
}

static void test_empty_ones(void **state)
{
    struct buf b = {0};

    (void)state;
    struct got g = take(&b);
    assert_int_equal(g.f.err, E_OK);
    assert_null(g.r);
    drop(&g);
    wire_profile(&b);
    g = take(&b);
    assert_int_equal(g.f.err, E_OK);
    assert_null(g.r);
    drop(&g);
    wire_profile(&b);
    sample(&b, 1, 2, 0);
    g = take(&b);
    assert_int_equal(g.f.err, E_OK);
    assert_null(g.r);
    drop(&g);
}

/* Appended to a sound profile. */
static struct buf broken(void)
{
    struct buf b = {0};
    wire_small(&b);
    return b;
}

static void test_refusals(void **state)
{
    struct buf b = {0};

    (void)state;
    wire_bytes(&b, 6, STR(""));
    wire_sample(&b, NULL, 0, &(int64_t){9}, 1);
    refused(&b, E_BAD_INPUT, "empty profile");
    b = broken();
    wire_sample(&b, &(uint64_t){1}, 1, (int64_t[]){1, 2}, 2);
    refused(&b, E_BAD_INPUT, "sample value length mismatch");
    b = broken();
    number_message(&b, 1, (uint64_t[]){1, 3, 2, 4}, 4);
    refused(&b, E_BAD_INPUT, "sample value length mismatch");
    b = broken();
    number_message(&b, 4, (uint64_t[]){3, 5}, 2);
    refused(&b, E_BAD_INPUT, "location id is 0");
    b = broken();
    number_message(&b, 5, (uint64_t[]){2, 3}, 2);
    refused(&b, E_BAD_INPUT, "function id is 0");
    b = broken();
    number_message(&b, 5, (uint64_t[]){1, 9, 2, 99}, 4);
    refused(&b, E_BAD_INPUT, "function name string index out of range");
    b = broken();
    number_message(&b, 5, (uint64_t[]){1, 9, 4, (uint64_t)-1}, 4);
    refused(&b, E_BAD_INPUT, "function file name string index out of range");
    b = broken();
    number_message(&b, 3, (uint64_t[]){1, 9, 6, 1u << 31}, 4);
    refused(&b, E_BAD_INPUT, "mapping string index out of range");
    b = broken();
    wire_bytes(&b, 6, STR("\xd6\x14\x50\x8c\x2e\xa7"));
    refused(&b, E_BAD_INPUT, "string_table[6], hex: d614508c2ea7");
    b = broken();
    wire_bytes(&b, 6, STR("x\xed\xa0\x80"));
    refused(&b, E_BAD_INPUT, "hex: 78eda080");
    wire_bytes(&b, 6, STR("x"));
    refused(&b, E_BAD_INPUT, "string_table[0]");
    wire_profile(&b);
    sample(&b, 1, 77, 5);
    sample(&b, 88, 1, 5);
    refused(&b, E_BAD_INPUT, "no sample survives: 2 of 2");
    b = broken();
    buf_add(&b, "\x12\x80\x80\x80\x80\x80\x80\x80\x80\x40", 10);
    refused(&b, E_BAD_INPUT, "malformed pprof");
    b = broken();
    buf_add(&b, "\x48\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12);
    refused(&b, E_BAD_INPUT, "malformed pprof");
    b = broken();
    buf_add(&b, "\x12\x05\x08", 3);
    refused(&b, E_BAD_INPUT, "ends inside a field");
}

static void test_look_alikes(void **state)
{
    static const struct {
        const char *body, *words;
        enum err e;
    } rows[] = {{"# HELP x y\n# TYPE x gauge\n", "not a pprof: looks like text", E_BAD_INPUT},
                {"<!doctype html>", "looks like HTML", E_BAD_INPUT},
                {"{}", "looks like JSON", E_BAD_INPUT},
                {"main;foo 3\n", "looks like text", E_BAD_INPUT}};
    struct buf b = {0};

    (void)state;
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        buf_str(&b, str_of(rows[i].body));
        refused(&b, rows[i].e, rows[i].words);
        wire_gzip(&b, str_of(rows[i].body));
        refused(&b, rows[i].e, rows[i].words);
    }
    buf_add(&b, "FLR\0\0\2\0\1zzzzzzzzzzzzzz", 22);
    refused(&b, E_UNSUPPORTED_TYPE, "JFR");
    wire_gzip(&b, (struct str){"FLR\0\0\2", 6});
    refused(&b, E_UNSUPPORTED_TYPE, "JFR");
}

/* line[0] is the innermost; is_folded is a flag; a file that is missing is the mapping's. */
static void test_inlining(void **state)
{
    struct buf b = {0}, m = {0}, line = {0};

    (void)state;
    wire_profile(&b);
    wire_bytes(&b, 6, STR("lib.so"));
    number_message(&b, 3, (uint64_t[]){1, 1, 2, 0x1000, 3, 0x2000, 4, 0x40, 5, 6}, 10);
    number_message(&b, 5, (uint64_t[]){1, 3, 2, 4}, 4); /* f2 without a file */
    wire_number(&m, 1, 3);
    wire_number(&m, 2, 1);
    for (uint64_t f = 1; f <= 3; f += 2) {
        wire_number(&line, 1, f);
        wire_number(&line, 2, 10 + f);
        wire_message(&m, 4, &line);
    }
    wire_number(&m, 5, 1);
    wire_message(&b, 4, &m);
    number_message(&b, 4, (uint64_t[]){1, 4, 2, 1, 3, 0x1010}, 6); /* a bare address */
    sample(&b, 3, 4, 5);
    struct got g = take(&b);
    assert_int_equal(g.f.err, E_OK);
    assert_int_equal(self_of(&g, "f1"), 5);
    assert_non_null(tally_find(g.t, STR("f2"), STR("lib.so")));
    assert_non_null(tally_find(g.t, STR("0x50"), STR("lib.so")));
    const struct symbols *s = g.r->symbols;
    uint32_t inlined = 0, folded = 0;
    for (uint32_t i = 0; i < s->n_frames; i++) {
        inlined += (s->frames[i].flags & FRAME_INLINED) != 0;
        folded += (s->frames[i].flags & FRAME_FOLDED) != 0;
    }
    assert_int_equal(inlined, 1);
    assert_int_equal(folded, 2);
    buf_free(&m);
    buf_free(&line);
    drop(&g);
}

static void test_depth(void **state)
{
    struct buf b = {0};
    uint64_t ids[40];

    (void)state;
    for (size_t i = 0; i < COUNTOF(ids); i++)
        ids[i] = i == 0 ? 1 : 2;
    limits.depth = 10;
    wire_profile(&b);
    wire_sample(&b, ids, 40, &(int64_t){4}, 1);
    wire_sample(&b, ids, 10, &(int64_t){3}, 1);
    wire_sample(&b, ids, 11, &(int64_t){2}, 1);
    struct got g = take(&b);
    assert_int_equal(g.r->drops.truncated_stacks, 2);
    assert_int_equal(g.r->n_samples, 2);
    assert_int_equal(self_of(&g, "f1"), 9);
    assert_int_equal(tally_find(g.t, STR("[truncated]"), STR(""))->total[0], 6);
    assert_int_equal(tally_find(g.t, STR("f2"), STR("file.c"))->total[0], 9);
    drop(&g);
}

/* strings 6 and on, then types and a period. */
static void typed(struct buf *b, const char *const *strings, size_t n)
{
    static const char *const first[] = {"", "f1"};

    for (size_t i = 0; i < COUNTOF(first); i++)
        wire_bytes(b, 6, str_of(first[i]));
    for (size_t i = 0; i < n; i++)
        wire_bytes(b, 6, str_of(strings[i]));
    number_message(b, 5, (uint64_t[]){1, 1, 2, 1}, 4);
    struct buf m = {0}, line = {0};
    wire_number(&line, 1, 1);
    wire_number(&m, 1, 1);
    wire_message(&m, 4, &line);
    wire_message(b, 4, &m);
    buf_free(&m);
    buf_free(&line);
}

static void test_units(void **state)
{
    static const char *const strings[] = {"samples", "count", "wall", "microseconds", "cpu", "kB", "inuse_space"};
    struct buf b = {0};

    (void)state;
    typed(&b, strings, COUNTOF(strings));
    number_message(&b, 1, (uint64_t[]){1, 2, 2, 3}, 4);
    number_message(&b, 1, (uint64_t[]){1, 4, 2, 5}, 4);
    number_message(&b, 1, (uint64_t[]){1, 8, 2, 7}, 4);
    number_message(&b, 11, (uint64_t[]){1, 4, 2, 5}, 4);
    wire_number(&b, 12, 10000);
    wire_sample(&b, &(uint64_t){1}, 1, (int64_t[]){3, 30, 2}, 3);
    struct got g = take(&b);
    assert_int_equal(g.f.err, E_OK);
    assert_int_equal(g.t->types[0].total, 3);
    assert_true(str_eq(g.r->types[0].unit, STR("count")));
    assert_int_equal(g.t->types[1].total, 30000);
    assert_true(str_eq(g.r->types[1].id, STR("wall:wall:nanoseconds:wall:nanoseconds")));
    assert_int_equal(g.t->types[2].total, 2048);
    assert_int_equal(g.r->types[2].aggregation, AGG_AVERAGE);
    assert_int_equal(g.r->primary, 1);
    drop(&g);
}

static void test_samples_as_cpu(void **state)
{
    static const char *const strings[] = {"samples", "count", "cpu", "nanoseconds"};
    struct buf b = {0};

    (void)state;
    typed(&b, strings, COUNTOF(strings));
    number_message(&b, 1, (uint64_t[]){1, 2, 2, 3}, 4);
    number_message(&b, 11, (uint64_t[]){1, 4, 2, 5}, 4);
    wire_number(&b, 12, 10000000);
    wire_sample(&b, &(uint64_t){1}, 1, (int64_t[]){3}, 1);
    struct got g = take(&b);
    assert_int_equal(g.t->types[0].total, 30000000);
    assert_true(str_eq(g.r->types[0].id, STR("process_cpu:cpu:nanoseconds:cpu:nanoseconds")));
    drop(&g);
    /* two types that are equal once their units are */
    typed(&b, (const char *const[]){"cpu", "ms", "us"}, 3);
    number_message(&b, 1, (uint64_t[]){1, 2, 2, 3}, 4);
    number_message(&b, 1, (uint64_t[]){1, 2, 2, 4}, 4);
    wire_sample(&b, &(uint64_t){1}, 1, (int64_t[]){3, 3}, 2);
    refused(&b, E_BAD_INPUT, "cpu/nanoseconds appears twice");
}

static void label(struct buf *m, uint64_t key_s, uint64_t str, uint64_t num, uint64_t unit)
{
    number_message(m, 3, (uint64_t[]){1, key_s, 2, str, 3, num, 4, unit}, 8);
}

static void test_labels(void **state)
{
    struct buf b = {0}, m = {0};

    (void)state;
    for (int i = 0; i < 3; i++) { /* the same set in two orders, and one with a number */
        wire_number(&m, 1, 1);
        wire_number(&m, 2, 5);
        label(&m, i == 1 ? 4 : 3, 5, 0, 0);
        label(&m, i == 1 ? 3 : 4, 5, 0, 0);
        if (i == 2)
            label(&m, 5, 0, 42, 2);
        if (i == 1)
            label(&m, 5, 0, 0, 0); /* says nothing */
        wire_message(&b, 2, &m);
    }
    wire_profile(&b);
    struct got g = take(&b);
    struct record_view v;
    assert_int_equal(g.f.err, E_OK);
    assert_int_equal(record_open(&v, g.r->body, g.a, &g.f), E_OK);
    assert_int_equal(v.n_samples, 2);
    assert_int_equal(v.n_sets, 3); /* with the empty one */
    buf_free(&m);
    drop(&g);
    limits.sample_labels = 2;
    wire_profile(&b);
    wire_number(&m, 2, 5);
    for (uint64_t i = 3; i < 6; i++)
        label(&m, i, 5, 0, 0);
    wire_message(&b, 2, &m);
    refused(&b, E_TOO_MANY_SAMPLE_LABELS, "limits.sample_labels is 2");
    buf_free(&m);
}

static int64_t time_of(int64_t sent, const char *from)
{
    struct buf b = {0};

    spec.params.from = str_of(from);
    wire_small(&b);
    wire_number(&b, 9, (uint64_t)sent);
    struct got g = take(&b);
    assert_int_equal(g.f.err, E_OK);
    int64_t t = g.r->time_ns;
    drop(&g);
    return t;
}

static void test_times(void **state)
{
    (void)state;
    spec.window_past_ns = 24 * HOUR;
    spec.window_future_ns = HOUR / 6;
    assert_int_equal(time_of(NOW - HOUR + 1, ""), NOW - HOUR + 1);
    assert_int_equal(time_of(0, ""), NOW);
    assert_int_equal(time_of(0, "1796073035"), NOW - 5 * INT64_C(1000000000));
    assert_int_equal(time_of(INT64_C(1796073035000000), "1796073035"),
                     NOW - 5 * INT64_C(1000000000)); /* microseconds: 1970 */
    assert_int_equal(time_of(INT64_MAX, "1796073035"), NOW - 5 * INT64_C(1000000000));
    assert_int_equal(time_of(-7, "5"), NOW);
    assert_int_equal(time_of(NOW - 25 * HOUR, "rubbish"), NOW);
    spec.window_past_ns = spec.window_future_ns = -1;
    assert_int_equal(time_of(NOW - 900 * 24 * HOUR, ""), NOW - 900 * 24 * HOUR);
}

/* All function ids 0: function i belongs to location i. Only for .NET. */
static void test_dotnet(void **state)
{
    static const char *const strings[] = {"", "f1", "f2", "inuse-space", "bytes"};
    struct buf b = {0}, m = {0}, line = {0};

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNTOF(strings); i++)
            wire_bytes(&b, 6, str_of(strings[i]));
        number_message(&b, 1, (uint64_t[]){1, 3, 2, 4}, 4);
        for (uint64_t i = 1; i <= 2; i++) {
            wire_number(&line, 1, 10 + i);
            wire_number(&m, 1, 10 + i);
            wire_message(&m, 4, &line);
            wire_message(&b, 4, &m);
            number_message(&b, 5, (uint64_t[]){2, i}, 2);
        }
        sample(&b, 12, 11, 5);
        if (round == 0) {
            refused(&b, E_BAD_INPUT, "function id is 0");
            spec.params.spy = STR("dotnetspy");
            continue;
        }
        struct got g = take(&b);
        assert_int_equal(g.f.err, E_OK);
        assert_int_equal(self_of(&g, "f2"), 5);
        assert_true(str_eq(g.r->types[0].id, STR("memory:inuse_space:bytes::")));
        drop(&g);
    }
    buf_free(&m);
    buf_free(&line);
}

static void test_identity(void **state)
{
    struct buf b = {0};
    struct hash128 first = {0};

    (void)state;
    for (int round = 0; round < 4; round++) {
        wire_small(&b);
        if (round == 2)
            wire_number(&b, 9, 5);
        if (round == 3)
            spec.params.name = STR("other");
        struct got g = take(&b);
        if (round == 0)
            first = g.r->content_id;
        assert_int_equal(round < 2, g.r->content_id.hi == first.hi && g.r->content_id.lo == first.lo);
        assert_false(g.r->identity);
        drop(&g);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, set_up)
    const struct CMUnitTest tests[] = {
        TEST(test_plain),    TEST(test_wire),       TEST(test_odd_ids),  TEST(test_values),
        TEST(test_no_stack), TEST(test_empty_ones), TEST(test_refusals), TEST(test_look_alikes),
        TEST(test_inlining), TEST(test_depth),      TEST(test_units),    TEST(test_samples_as_cpu),
        TEST(test_labels),   TEST(test_times),      TEST(test_dotnet),   TEST(test_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
