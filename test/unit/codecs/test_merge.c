/* The merge against plain sums: by type, by label set, filtered, in any order, to the end of int64 and of its memory.
 */
#include "codecs/merge.h"
#include "test/oracle/made_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { RECORDS = 6 };
static struct hash_key key;
static struct arena *arena;
static struct record_view views[RECORDS];

/* Some share functions (and so stacks), types and label sets; the last has one type only. */
static const struct recipe recipes[RECORDS] = {
    {.seed = 1, .functions = 20, .stacks = 30, .depth = 6, .sets = 4, .samples = 100, .types = 2},
    {.seed = 1, .functions = 20, .stacks = 30, .depth = 6, .sets = 4, .samples = 120, .types = 3},
    {.seed = 2, .functions = 20, .stacks = 30, .depth = 6, .sets = 9, .samples = 200, .types = 2},
    {.seed = 3, .functions = 40, .stacks = 50, .depth = 9, .sets = 1, .samples = 50, .types = 4},
    {.seed = 4, .functions = 40, .stacks = 50, .depth = 9, .sets = 2, .samples = 0, .types = 1},
    {.seed = 1, .functions = 20, .stacks = 30, .depth = 6, .sets = 3, .samples = 70, .types = 1},
};

static struct record_view opened(const struct profile *p)
{
    struct record_origin o = {.format = STR("pprof")};
    struct record *r = record_seal(p, &o, &key);
    struct record_view v;
    struct fault f = {0};

    assert_non_null(r);
    assert_int_equal(record_open(&v, r->body, arena, &f), E_OK);
    record_free(r);
    return v;
}

static int setup(void **state)
{
    (void)state;
    hash_key_derive(&key, STR("test"));
    arena = arena_new(SIZE_MAX);
    for (int i = 0; arena && i < RECORDS; i++)
        views[i] = opened(made_profile(arena, &recipes[i]));
    return !arena;
}

static int teardown(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

static struct merge *merged(const struct merge_spec *spec, bool backwards)
{
    struct merge *m = merge_new(spec);
    struct fault f = {0};

    assert_non_null(m);
    for (int i = 0; i < RECORDS; i++)
        assert_int_equal(merge_add(m, &views[backwards ? RECORDS - 1 - i : i], &f), E_OK);
    return m;
}

static bool same_set(const struct record_view *v, uint32_t set, const struct merged *m, uint32_t row)
{
    uint32_t n = v->set_at[set + 1] - v->set_at[set];
    const struct sample_label *a = v->labels + v->set_at[set], *b = m->labels + m->set_at[m->set[row]];

    if (m->set_at[m->set[row] + 1] - m->set_at[m->set[row]] != n)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!str_eq(a[i].key, b[i].key) || !str_eq(a[i].value, b[i].value) || !str_eq(a[i].unit, b[i].unit) ||
            a[i].num != b[i].num || a[i].numeric != b[i].numeric)
            return false;
    return true;
}

/* What the row must be: every sample of every record looked at. keep NULL: all. */
static int64_t plain_sum(const struct merged *m, uint32_t type, uint32_t row, const bool *keep)
{
    int64_t sum = 0;

    for (int r = 0; r < RECORDS; r++) {
        const struct record_view *v = &views[r];
        for (uint32_t t = 0; t < v->n_types; t++)
            for (uint32_t i = 0; i < v->n_samples; i++)
                if (str_eq(v->types[t].id, m->types[type].id) && v->stack_ids[v->sample_stack[i]] == m->stack[row] &&
                    (!m->set || same_set(v, v->sample_set[i], m, row)) && (!keep || keep[v->sample_set[i]]))
                    sum += v->values[t][i];
    }
    return sum;
}

static void check(const struct merged *m, const bool *keep)
{
    for (uint32_t t = 0; t < m->n_types; t++) {
        int64_t total = 0, all = 0;
        for (uint32_t row = 0; row < m->n_rows; row++) {
            assert_true(m->values[t][row] == plain_sum(m, t, row, keep));
            total += m->values[t][row];
        }
        assert_true(m->types[t].total == total);
        for (int r = 0; r < RECORDS; r++)
            for (uint32_t i = 0; i < views[r].n_types; i++)
                all += str_eq(views[r].types[i].id, m->types[t].id) ? views[r].types[i].total : 0;
        assert_true(keep || total == all);
    }
    for (uint32_t row = 0; row < m->n_rows; row++)
        for (uint32_t other = 0; other < row; other++)
            assert_true(m->stack[row] != m->stack[other] || (m->set && m->set[row] != m->set[other]));
    assert_false(m->saturated);
}

static void test_every_type(void **state)
{
    struct merge_spec spec = {.memory_limit = 64 << 20};

    (void)state;
    for (int by_labels = 0; by_labels < 2; by_labels++) {
        spec.by_labels = by_labels;
        struct merge *m = merged(&spec, false);
        const struct merged *r = merge_result(m);
        assert_int_equal(r->n_types, 4);
        assert_int_equal(r->samples, 100 + 120 + 200 + 50 + 0 + 70);
        assert_true((r->set != NULL) == by_labels);
        assert_true(r->duration_ns == RECORDS * INT64_C(15000000000));
        assert_true(r->time_ns == views[0].time_ns && r->period == 10000000);
        assert_true(str_eq(r->period_type, STR("cpu")) && str_eq(r->period_unit, STR("nanoseconds")));
        assert_true(str_eq(r->types[1].type, views[0].types[1].type) && r->types[1].aggregation == AGG_AVERAGE);
        check(r, NULL);
        merge_free(m);
    }
}

static void test_one_type(void **state)
{
    struct merge_spec spec = {.type_id = views[3].types[2].id, .memory_limit = 64 << 20};
    struct merge *m = merged(&spec, false);
    const struct merged *r = merge_result(m);

    (void)state;
    assert_int_equal(r->n_types, 1);
    assert_true(str_eq(r->types[0].id, spec.type_id));
    assert_int_equal(r->samples, 120 + 50);
    assert_true(r->duration_ns == 2 * INT64_C(15000000000));
    check(r, NULL);
    merge_free(m);
    spec.type_id = STR("no such type");
    m = merged(&spec, false);
    r = merge_result(m);
    assert_int_equal(r->n_types + r->n_rows, 0);
    merge_free(m);
}

/* The same sums whatever comes first. */
static void test_order(void **state)
{
    struct merge_spec spec = {.by_labels = true, .memory_limit = 64 << 20};
    struct merge *a = merged(&spec, false), *b = merged(&spec, true);
    const struct merged *x = merge_result(a), *y = merge_result(b);

    (void)state;
    assert_int_equal(x->n_rows, y->n_rows);
    assert_int_equal(x->n_sets, y->n_sets);
    assert_true(x->time_ns == y->time_ns);
    check(y, NULL);
    merge_free(a);
    merge_free(b);
}

static void keep_odd(void *ctx, const struct record_view *v, bool *keep)
{
    ++*(int *)ctx;
    for (uint32_t i = 0; i < v->n_sets; i++)
        keep[i] = i % 2;
}

static void test_filter(void **state)
{
    static const bool odd[] = {false, true, false, true, false, true, false, true, false};
    int calls = 0;
    struct merge_spec spec = {.filter = keep_odd, .filter_ctx = &calls, .memory_limit = 64 << 20};

    (void)state;
    for (int by_labels = 0; by_labels < 2; by_labels++) {
        spec.by_labels = by_labels;
        struct merge *m = merged(&spec, false);
        check(merge_result(m), odd);
        assert_true(merge_result(m)->n_rows > 0);
        merge_free(m);
    }
    assert_int_equal(calls, 2 * RECORDS);
}

static void test_saturation(void **state)
{
    struct merge_spec spec = {.memory_limit = 64 << 20};
    struct profile *p = made_profile(arena, &recipes[5]);
    struct fault f = {0};

    (void)state;
    for (uint32_t i = 0; i < p->n_samples; i++)
        p->values[0][i] = INT64_MAX - 5;
    struct record_view v = opened(p);
    struct merge *m = merge_new(&spec);
    assert_non_null(m);
    for (int i = 0; i < 3; i++)
        assert_int_equal(merge_add(m, &v, &f), E_OK);
    const struct merged *r = merge_result(m);
    assert_true(r->saturated);
    for (uint32_t row = 0; row < r->n_rows; row++)
        assert_true(r->values[0][row] == INT64_MAX);
    assert_true(r->types[0].total == INT64_MAX);
    merge_free(m);
}

static void test_memory_limit(void **state)
{
    struct recipe recipe = {
        .seed = 7, .functions = 4000, .stacks = 20000, .depth = 4, .sets = 1, .samples = 20000, .types = 2};
    struct record_view v = opened(made_profile(arena, &recipe));
    struct merge_spec spec = {.memory_limit = 512 * 1024};
    struct merge *m = merge_new(&spec);
    struct fault f = {0};

    (void)state;
    assert_non_null(m);
    assert_int_equal(merge_add(m, &v, &f), E_PROFILE_TOO_LARGE);
    assert_non_null(strstr(f.text, "query"));
    assert_non_null(strstr(f.text, "524288"));
    merge_free(m);
    spec.memory_limit = 8 << 20;
    f = (struct fault){0};
    m = merge_new(&spec);
    assert_non_null(m);
    assert_int_equal(merge_add(m, &v, &f), E_OK);
    assert_int_equal(merge_result(m)->n_rows, 20000);
    merge_free(m);
    merge_free(NULL);
}

static void test_nothing(void **state)
{
    struct merge_spec spec = {.memory_limit = 1 << 20, .by_labels = true};
    struct merge *m = merge_new(&spec);

    (void)state;
    assert_non_null(m);
    const struct merged *r = merge_result(m);
    assert_int_equal(r->n_rows + r->n_types, 0);
    assert_int_equal(r->n_sets, 1);
    merge_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type), cmocka_unit_test(test_one_type),   cmocka_unit_test(test_order),
        cmocka_unit_test(test_filter),     cmocka_unit_test(test_saturation), cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
