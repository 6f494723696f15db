/* Sealing and opening: everything comes back, damage is refused, and a record is as small as it should be. */
#include "test/oracle/made_profile.h"
#include "test/oracle/record_same.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct hash_key key;
static struct arena *arena;

static int setup(void **state)
{
    (void)state;
    hash_key_derive(&key, STR("test"));
    arena = arena_new(SIZE_MAX);
    return !arena;
}

static int teardown(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

static const struct recipe recipes[] = {
    {.seed = 1, .functions = 50, .stacks = 40, .depth = 20, .sets = 1, .samples = 40, .types = 2},
    {.seed = 2, .functions = 50, .stacks = 40, .depth = 20, .sets = 30, .samples = 900, .types = 4},
    {.seed = 3, .functions = 1, .stacks = 1, .depth = 1, .sets = 1, .samples = 1, .types = 1},
    {.seed = 4, .functions = 1, .stacks = 1, .depth = 1, .sets = 1, .samples = 0, .types = 1},
    {.seed = 5, .functions = 3000, .stacks = 5000, .depth = 60, .sets = 3, .samples = 6000, .types = 3},
};

static struct record *seal(const struct profile *p, bool keep)
{
    struct record_origin o = {.format = STR("pprof"),
                              .content_id = {1, 2},
                              .identity = true,
                              .original = STR("as it was sent"),
                              .original_bytes = 14,
                              .keep_original = keep};
    struct record *r = record_seal(p, &o, &key);

    assert_non_null(r);
    return r;
}

static void test_round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNTOF(recipes); i++) {
        struct profile *p = made_profile(arena, &recipes[i]);
        struct record *r = seal(p, false);
        struct record_view v;
        struct fault f = {0};
        assert_int_equal(record_open(&v, r->body, arena, &f), E_OK);
        const char *what = record_differs(&v, p, r);
        if (what)
            fail_msg("recipe %zu: %s", i, what);
        struct record *again = seal(record_again(arena, &v, p, r), false);
        assert_true(str_eq(again->body, r->body));
        assert_true(again->series_id == r->series_id);
        record_free(again);
        record_free(r);
    }
}

static void test_extreme_values(void **state)
{
    struct profile *p = made_profile(arena, &recipes[0]);
    struct record_view v;
    struct fault f = {0};

    (void)state;
    static const int64_t extremes[] = {INT64_MAX, 0, 1, INT64_MIN, -1, INT64_MAX - 1};
    for (size_t i = 0; i < COUNTOF(extremes); i++)
        p->values[0][i] = extremes[i];
    for (uint32_t i = 0; i < p->n_samples; i++)
        p->values[1][i] = i % 2 ? INT64_MAX : 0;
    struct record *r = seal(p, false);
    assert_int_equal(record_open(&v, r->body, arena, &f), E_OK);
    assert_null(record_differs(&v, p, r));
    record_free(r);
}

static void test_what_a_record_copies(void **state)
{
    struct profile *p = made_profile(arena, &recipes[1]);

    (void)state;
    p->labels[p->set_at[1]] = (struct sample_label){STR("trace_id"), STR("not hexadecimal"), STR(""), 0, false};
    p->labels[p->set_at[2]] = (struct sample_label){STR("trace_id"), STR("00c0ffee"), STR(""), 0, false};
    struct record *with = seal(p, true), *without = seal(p, false);
    assert_true(str_eq(with->original, STR("as it was sent")));
    assert_int_equal(without->original.len, 0);
    assert_int_equal(without->original_bytes, 14);
    assert_int_equal(with->bytes - without->bytes, 14);
    assert_true(with->identity && with->content_id.hi == 1 && with->content_id.lo == 2);
    assert_true(str_eq(with->trace_id, STR("00c0ffee")));
    assert_true(str_eq(with->series.service, STR("checkout")) && with->series.n_labels == 3);
    assert_true(with->series.labels != p->series.labels && with->types != p->types);
    assert_true(str_eq(with->types[3].id, p->types[3].id) && with->types[3].total == p->types[3].total);
    assert_int_equal(with->n_samples, p->n_samples);
    assert_int_equal(with->drops.zero_samples, 3);
    record_free(with);
    record_free(without);
    record_free(NULL);
}

static void test_series_ids(void **state)
{
    struct profile *p = made_profile(arena, &recipes[0]);
    struct record *a = seal(p, false);
    struct profile q = *p;
    struct label labels[3];

    (void)state;
    memcpy(labels, p->series.labels, sizeof labels);
    q.series.labels = labels;
    q.time_ns++;
    struct record *later = seal(&q, false);
    assert_true(a->series_id == later->series_id && a->series_id && a->series_id >> 63 == 0);
    labels[1].value = STR("us");
    struct record *elsewhere = seal(&q, false);
    assert_true(elsewhere->series_id != a->series_id);
    q.series.labels = p->series.labels;
    q.series.project = STR("shop2");
    struct record *other = seal(&q, false);
    assert_true(other->series_id != a->series_id);
    record_free(a);
    record_free(later);
    record_free(elsewhere);
    record_free(other);
}

/* Any prefix and any changed byte: an error or a view, never a read outside (the copy is exact, for the sanitizer). */
static void test_damage(void **state)
{
    struct profile *p = made_profile(arena, &recipes[0]);
    struct record *r = seal(p, false);
    size_t refused = 0;

    (void)state;
    for (size_t i = 0; i < r->body.len; i++) {
        for (int cut = 0; cut < 2; cut++) {
            size_t n = cut ? i : r->body.len;
            char *copy = malloc(n ? n : 1);
            struct arena *a = arena_new(1 << 20);
            struct record_view v;
            struct fault f = {0};
            assert_true(copy && a);
            memcpy(copy, r->body.p, n);
            if (!cut)
                copy[i] = (char)(copy[i] ^ (1 << i % 8));
            enum err e = record_open(&v, (struct str){copy, n}, a, &f);
            assert_true(e == E_OK || e == E_BAD_INPUT || e == E_PROFILE_TOO_LARGE);
            assert_true(!cut || e == E_BAD_INPUT);
            refused += e != E_OK;
            arena_free(a);
            free(copy);
        }
    }
    assert_true(refused > r->body.len);
    record_free(r);
}

static void test_memory_limit(void **state)
{
    struct profile *p = made_profile(arena, &recipes[4]);
    struct record *r = seal(p, false);
    struct arena *small = arena_new(100 * 1024);
    struct record_view v;
    struct fault f = {0};

    (void)state;
    assert_non_null(small);
    assert_int_equal(record_open(&v, r->body, small, &f), E_PROFILE_TOO_LARGE);
    arena_free(small);
    record_free(r);
}

/* design.md 6, storage.md 2.1: some 10 bytes a sample where nothing repeats. */
static void test_size(void **state)
{
    struct recipe recipe = {
        .seed = 9, .functions = 900, .stacks = 500, .depth = 40, .sets = 1, .samples = 500, .types = 2};
    struct profile *p = made_profile(arena, &recipe);

    (void)state;
    for (uint32_t i = 0; i < p->n_samples; i++)
        p->values[1][i] = p->values[0][i] / 10000000;
    struct record *r = seal(p, false);
    print_message("%.2f bytes per sample\n", (double)r->body.len / p->n_samples);
    assert_true(r->body.len <= p->n_samples * 11.5);
    record_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_extreme_values),
        cmocka_unit_test(test_what_a_record_copies),
        cmocka_unit_test(test_series_ids),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_size),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
