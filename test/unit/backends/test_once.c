/* Which rows count, by table: every multiset of up to four rows of one content, told or not, with and without an
 * identity. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "backends/once.h"

static void nothing_of_nothing(void **state)
{
    (void)state;
    assert_int_equal(once_find(NULL, 0), 0);
    once_choose(NULL, 0);
}

static void max_of_one_and_told(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 4; n++)
        for (unsigned told = 0; told < 1u << n; told++)
            for (int identity = 0; identity < 2; identity++) {
                struct once_row rows[4] = {0};
                unsigned counts = 0, first_told = told ? (unsigned)__builtin_ctz(told) : 0;

                for (unsigned i = 0; i < n; i++)
                    rows[i] = (struct once_row){.attempt.place = (uint16_t)i, .id = i, .identity = identity};
                assert_int_equal(once_find(rows, n), n > 1 ? n : 0);
                for (unsigned i = 0; i < n; i++)
                    rows[i].told = told >> rows[i].id & 1;
                once_choose(rows, n);
                for (unsigned i = 0; i < n; i++) {
                    counts += rows[i].counts;
                    if (rows[i].counts && told)
                        assert_true(rows[i].told);
                    if (rows[i].counts && (identity || !told))
                        assert_int_equal(rows[i].id, first_told);
                }
                assert_int_equal(counts, identity || !told ? 1 : __builtin_popcount(told));
            }
}

/* The same rows in any order give the same choice. */
static void the_order_of_asking_is_no_matter(void **state)
{
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    (void)state;

    for (size_t o = 0; o < COUNTOF(orders); o++) {
        struct once_row rows[3];

        for (int i = 0; i < 3; i++)
            rows[i] = (struct once_row){.time_ns = 100 - orders[o][i], .attempt.boot = 9, .id = orders[o][i]};
        once_find(rows, 3);
        once_choose(rows, 3);
        for (int i = 0; i < 3; i++)
            assert_int_equal(rows[i].counts, rows[i].id == 2);
    }
}

static void contents_are_apart(void **state)
{
    struct once_row rows[] = {
        {.content_id = {1, 1}, .id = 0},          {.content_id = {1, 2}, .id = 1},
        {.content_id = {2, 1}, .id = 2},          {.content_id = {1, 2}, .id = 3, .attempt.group = 1},
        {.content_id = {UINT64_MAX, 0}, .id = 4},
    };
    bool counts[5], repeated[5];

    (void)state;
    assert_int_equal(once_find(rows, 5), 2);
    once_choose(rows, 5);
    for (int i = 0; i < 5; i++) {
        counts[rows[i].id] = rows[i].counts;
        repeated[rows[i].id] = rows[i].repeated;
    }
    for (int i = 0; i < 5; i++) {
        assert_int_equal(counts[i], i != 3);
        assert_int_equal(repeated[i], i == 1 || i == 3);
    }
}

static void order_is_time_then_attempt(void **state)
{
    static const struct once_row rows[] = {
        {.time_ns = INT64_MIN},
        {.time_ns = 1, .attempt = {9, 9, 9}},
        {.time_ns = 2, .attempt = {1, 1, 0}},
        {.time_ns = 2, .attempt = {1, 1, 1}},
        {.time_ns = 2, .attempt = {1, 2, 0}},
        {.time_ns = 2, .attempt = {UINT64_MAX, 0, 0}},
        {.time_ns = INT64_MAX},
    };

    (void)state;
    for (size_t i = 0; i < COUNTOF(rows); i++)
        for (size_t j = 0; j < COUNTOF(rows); j++)
            assert_int_equal(once_order(&rows[i], &rows[j]), (i > j) - (i < j));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_of_nothing),
        cmocka_unit_test(max_of_one_and_told),
        cmocka_unit_test(the_order_of_asking_is_no_matter),
        cmocka_unit_test(contents_are_apart),
        cmocka_unit_test(order_is_time_then_attempt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
