/* Every allocation of compaction failing in turn, once and from then on: an error and a dirty hour, or the work done.
 */
#include "test/unit/backends/conformance.c"

#include "test/unit/backends/hours.c"

#include "test/oracle/failing_malloc.h"

const char *conformance_address = "sqlite:";

static void compacting(void **state)
{
    struct world *w = *state;
    struct group groups[3];
    struct tallied raw, hours;

    fill(w, groups, 3);
    raw = tally(w, NOON, NOON + HOUR, SCAN_BODY);
    for (int pass = 0; pass < 2; pass++) {
        bool more = true;

        for (long at = 0; more; at++) {
            struct due_list due = list_due(w, hour_of(NOON));
            struct hour_result r = {0};
            struct fault f = {0};
            enum err e;

            if (!due.n) { /* done by a run whose failure did not matter */
                arena_free(due.arena);
                break;
            }
            fail_from(at, pass);
            e = hour_compact(w->backend, w->store, &w->key, &due.list[0], PLENTY, NULL, &r, &f);
            more = fail_no_more() > at;
            assert_true(e == E_OK ? r.written : !r.written && f.err != E_OK);
            hours = tally(w, NOON, NOON + HOUR, SCAN_BODY | SCAN_HOURS);
            assert_same(&raw, &hours);
            arena_free(due.arena);
            assert_true(at < 5000);
        }
    }
    compact_all(w, PLENTY);
    hours = tally(w, NOON, NOON + HOUR, SCAN_BODY | SCAN_HOURS);
    assert_same(&raw, &hours);
    assert_int_equal(hours.rows, hours.hours);
    for (int i = 0; i < 3; i++)
        free_group(&groups[i]);
}

static void reading(void **state)
{
    struct world *w = *state;
    struct selection sel = {.project = STR("p"), .from_ns = NOON, .until_ns = NOON + HOUR};
    struct group groups[3];
    bool more = true;

    fill(w, groups, 3);
    compact_all(w, PLENTY);
    struct tallied want = tally(w, NOON, NOON + HOUR, SCAN_HOURS);
    for (long at = 0; more; at++) {
        struct tallied t = {.in_order = true, .last_time = INT64_MIN};
        struct fault f = {0};
        enum err e;

        fail_from(at, false);
        e = w->backend->read->scan(w->store, &sel, SCAN_HOURS, on_tallied, &t, &f);
        more = fail_no_more() > at;
        if (e)
            assert_int_not_equal(f.err, E_OK);
        else
            assert_same(&want, &t);
        assert_true(at < 5000);
    }
    for (int i = 0; i < 3; i++)
        free_group(&groups[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {HOURS_TEST(compacting), HOURS_TEST(reading)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
