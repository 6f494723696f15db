/* Groups: which rows share one, in which order, and how long a group is remembered. Their interleavings:
 * test_groups_model.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "backends/groups.h"

enum { N = 400 };
static const int64_t DAY = 86400 * INT64_C(1000000000), SECOND = 1000000000;
static int owners[N];

static struct record *record_of(int64_t time_ns, size_t bytes)
{
    struct record *r = calloc(1, sizeof *r);

    assert_non_null(r);
    r->time_ns = time_ns;
    r->bytes = bytes;
    return r;
}

static void submit(struct groups *g, int i, uint16_t class_days, int64_t time_ns, size_t bytes)
{
    assert_true(groups_submit(g, record_of(time_ns, bytes), class_days, &owners[i]));
}

static struct groups_action next(struct groups *g, enum groups_action_kind kind)
{
    struct groups_action a;

    assert_true(groups_next(g, &a));
    assert_int_equal(a.kind, kind);
    return a;
}

static void nothing_more(struct groups *g)
{
    struct groups_action a;

    assert_false(groups_next(g, &a));
}

/* Commits the put under way and takes its answers, in order: the owners are first, first + step, ... */
static uint16_t commit(struct groups *g, struct group *put, int first, int step, struct attempt *last)
{
    uint16_t n = put->n;

    for (uint16_t i = 0; i < n; i++)
        put->results[i] = PUT_STORED;
    groups_committed(g);
    for (uint16_t i = 0; i < n; i++) {
        struct groups_action a = next(g, GROUPS_ANSWER);

        assert_ptr_equal(a.owner, &owners[first + i * step]);
        assert_int_equal(a.attempt.place, i);
        free(a.record);
        *last = a.attempt;
    }
    return n;
}

static void one_alone_does_not_wait(void **state)
{
    struct groups *g = groups_new(5, 1000, SECOND);
    struct groups_action a, second;
    struct attempt at;

    (void)state;
    assert_true(groups_idle(g));
    nothing_more(g);
    submit(g, 0, 15, 3 * DAY + 1, 10);
    assert_int_equal(groups_waiting(g), 1);
    assert_int_equal(groups_waiting_bytes(g), 10);
    assert_false(groups_idle(g));
    a = next(g, GROUPS_PUT);
    assert_int_equal(a.group->n, 1);
    assert_int_equal(a.group->class_days, 15);
    assert_int_equal(a.group->day, 3);
    assert_int_equal(a.group->boot, 5);
    assert_int_equal(a.group->id, 1);
    nothing_more(g);
    submit(g, 1, 15, 3 * DAY, 10);
    nothing_more(g); /* the writer is not free */
    commit(g, a.group, 0, 1, &at);
    assert_int_equal(groups_waiting(g), 1);
    second = next(g, GROUPS_PUT);
    groups_told(g, at, true, 0);
    a = next(g, GROUPS_MARK);
    assert_int_equal(a.group->id, 1);
    assert_int_equal(a.group->class_days, 15);
    assert_int_equal(a.group->day, 3);
    assert_int_equal(a.told, 1);
    groups_untold(g, at, 0);
    a = next(g, GROUPS_MARK);
    assert_int_equal(a.told, 0);
    nothing_more(g);
    commit(g, second.group, 1, 1, &at);
    groups_told(g, at, false, 0);
    nothing_more(g);
    assert_true(groups_idle(g));
    groups_free(g);
}

static void at_most_64_of_one_class_and_day(void **state)
{
    struct groups *g = groups_new(1, 1 << 20, SECOND);
    struct attempt at;
    int put = 0;

    (void)state;
    for (int i = 0; i < 300; i++)
        submit(g, i, i % 2 ? 15 : 3, DAY, 1);
    for (int round = 0; put < 300; round++) {
        struct groups_action a = next(g, GROUPS_PUT);
        int even = round % 2 == 0;

        /* 150 of each: 64, 64, 22, and always that of the row which waits longest */
        assert_int_equal(a.group->class_days, even ? 3 : 15);
        assert_int_equal(a.group->n, round < 4 ? 64 : 22);
        put += commit(g, a.group, round / 2 * 128 + !even, 2, &at);
    }
    assert_int_equal(groups_waiting(g), 0);
    assert_int_equal(groups_waiting_bytes(g), 0);
    nothing_more(g);
    groups_free(g);
}

static void days_are_apart(void **state)
{
    static const int64_t times[] = {-1, 0, DAY - 1, DAY, -DAY, INT64_MIN, INT64_MAX};
    static const int32_t days[] = {-1, 0, 1, -106752, 106751};
    static const uint16_t n[] = {2, 2, 1, 1, 1};
    struct groups *g = groups_new(1, 1 << 20, SECOND);

    (void)state;
    for (size_t i = 0; i < COUNTOF(times); i++)
        submit(g, (int)i, 15, times[i], 1);
    for (size_t i = 0; i < COUNTOF(days); i++) {
        struct groups_action a = next(g, GROUPS_PUT);

        assert_int_equal(a.group->day, days[i]);
        assert_int_equal(a.group->n, n[i]);
        for (uint16_t j = 0; j < n[i]; j++)
            a.group->results[j] = PUT_AGAIN;
        groups_committed(g);
        for (uint16_t j = 0; j < n[i]; j++) {
            struct groups_action answer = next(g, GROUPS_ANSWER);

            assert_int_equal(answer.result, PUT_AGAIN);
            free(answer.record);
        }
    }
    assert_true(groups_idle(g)); /* what is not stored needs no telling */
    groups_free(g);
}

static void bytes_close_a_group_but_one_always_goes(void **state)
{
    static const size_t bytes[] = {5000, 400, 400, 400, 999, 1, 1};
    static const uint16_t n[] = {1, 2, 1, 2, 1};
    struct groups *g = groups_new(1, 1000, SECOND);
    struct attempt at;
    int first = 0;

    (void)state;
    for (size_t i = 0; i < COUNTOF(bytes); i++)
        submit(g, (int)i, 15, 0, bytes[i]);
    for (size_t i = 0; i < COUNTOF(n); i++) {
        struct groups_action a = next(g, GROUPS_PUT);

        assert_int_equal(a.group->n, n[i]);
        first += commit(g, a.group, first, 1, &at);
    }
    groups_free(g);
}

static void a_mark_waits_for_its_last_row(void **state)
{
    struct groups *g = groups_new(1, 1000, SECOND);
    struct groups_action a;
    struct attempt at;

    (void)state;
    for (int i = 0; i < 3; i++)
        submit(g, i, 15, 0, 1);
    a = next(g, GROUPS_PUT);
    a.group->results[0] = a.group->results[2] = PUT_STORED;
    a.group->results[1] = PUT_BAD;
    groups_committed(g);
    for (int i = 0; i < 3; i++) {
        a = next(g, GROUPS_ANSWER);
        assert_int_equal(a.result, i == 1 ? PUT_BAD : PUT_STORED);
        free(a.record);
    }
    at = a.attempt;
    at.place = 0;
    groups_told(g, at, true, 0);
    nothing_more(g);
    at.place = 1;
    groups_told(g, at, true, 0); /* was decided with its answer */
    nothing_more(g);
    at.place = 2;
    groups_told(g, at, false, 0);
    a = next(g, GROUPS_MARK);
    assert_int_equal(a.told, 1);
    assert_true(groups_idle(g));
    groups_untold(g, at, 0); /* it was not told: nothing to take back */
    nothing_more(g);
    groups_free(g);
}

static struct attempt put_told(struct groups *g, bool told, int64_t now_ns)
{
    struct groups_action a;
    struct attempt at;

    submit(g, 0, 15, 0, 1);
    a = next(g, GROUPS_PUT);
    commit(g, a.group, 0, 1, &at);
    groups_told(g, at, told, now_ns);
    if (told)
        next(g, GROUPS_MARK);
    nothing_more(g);
    return at;
}

static bool heard(struct groups *g, struct attempt at)
{
    struct groups_action a;

    groups_untold(g, at, 0);
    return groups_next(g, &a);
}

static void groups_are_forgotten_in_time(void **state)
{
    struct groups *g = groups_new(1, 1000, 30 * SECOND);
    struct attempt first = put_told(g, true, 0), second = put_told(g, true, 10 * SECOND), third, other;

    (void)state;
    groups_tick(g, 29 * SECOND);
    assert_true(heard(g, first));
    groups_tick(g, 31 * SECOND);
    assert_false(heard(g, first));
    assert_true(heard(g, second));
    third = put_told(g, true, 31 * SECOND);
    groups_final(g, third);
    groups_tick(g, 32 * SECOND);
    assert_false(heard(g, third)); /* nothing more can come for it */
    other = third;
    other.boot++;
    assert_false(heard(g, other));
    other = third;
    other.group += 100;
    groups_told(g, other, true, 0);
    assert_false(heard(g, other));
    groups_free(g);
}

/* Only so many are remembered; then the oldest goes first. */
static void memory_is_bounded(void **state)
{
    enum { MANY = (1 << 16) + 100 };
    struct groups *g = groups_new(1, 1000, INT64_MAX);
    struct attempt first = put_told(g, true, 0), last = first;

    (void)state;
    for (int i = 1; i < MANY; i++)
        last = put_told(g, true, 0);
    assert_in_range(groups_memory(g), 1 << 20, 8 << 20);
    assert_false(heard(g, first));
    first.group = 100;
    assert_false(heard(g, first));
    first.group = 101;
    assert_true(heard(g, first));
    assert_true(heard(g, last));
    assert_true(groups_idle(g));
    groups_free(g);
}

static void submit_of(struct groups *g, int i, struct str project, size_t bytes)
{
    struct record *r = record_of(0, bytes);

    r->series.project = project;
    assert_true(groups_submit(g, r, 15, &owners[i]));
}

/* What rows of the put belong to, in order, as one letter each. */
static void assert_put(const struct group *put, const char *letters)
{
    assert_int_equal(put->n, strlen(letters));
    for (uint16_t i = 0; i < put->n; i++)
        assert_int_equal(put->records[i]->series.project.p[0], letters[i]);
}

/* The store is away; every row is answered. */
static void away(struct groups *g, struct group *put)
{
    for (uint16_t i = 0; i < put->n; i++)
        put->results[i] = PUT_AGAIN;
    uint16_t n = put->n;
    groups_committed(g);
    while (n--)
        free(next(g, GROUPS_ANSWER).record);
}

/* Beside a flood of one project's large rows another's row is in the very next group; one that is too large to go with
 * others is the first of the one after. */
static void projects_take_turns(void **state)
{
    static const char *const then[] = {"abab", "c", "aa"};
    struct groups *g = groups_new(1, 1000, SECOND);
    struct group *put;

    (void)state;
    for (int i = 0; i < 8; i++)
        submit_of(g, i, STR("a"), 400);
    put = next(g, GROUPS_PUT).group;
    assert_put(put, "aa");
    submit_of(g, 100, STR("b"), 10);
    submit_of(g, 101, STR("b"), 10);
    submit_of(g, 102, STR("c"), 900);
    for (size_t i = 0; i < COUNTOF(then); i++) {
        away(g, put);
        put = next(g, GROUPS_PUT).group;
        assert_put(put, then[i]);
    }
    submit_of(g, 103, STR("b"), 10);
    away(g, put);
    put = next(g, GROUPS_PUT).group;
    assert_put(put, "aba");
    away(g, put);
    nothing_more(g);
    groups_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_alone_does_not_wait),
        cmocka_unit_test(at_most_64_of_one_class_and_day),
        cmocka_unit_test(days_are_apart),
        cmocka_unit_test(bytes_close_a_group_but_one_always_goes),
        cmocka_unit_test(projects_take_turns),
        cmocka_unit_test(a_mark_waits_for_its_last_row),
        cmocka_unit_test(groups_are_forgotten_in_time),
        cmocka_unit_test(memory_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
