/*
 * Every allocation of the spool failing in turn, once and from then on, while it opens, keeps a group that its store
 * has, takes marks, and puts all of it again: what was answered as stored gets there; never a crash or a leak.
 */
#include "test/oracle/failing_malloc.h"
#include "test/unit/backends/spool_world.h"

static void opening(void **state)
{
    struct spool_world *w = *state;
    bool more = true;

    w->inner.away = true;
    assert_int_equal(put(w, 1, 2), PUT_STORED);
    for (long at = 0; more; at++) {
        struct fault f = {0};

        world_close(w);
        uv_timer_init(&w->loop, &w->inner.turn);
        w->inner.turn.data = &w->inner;
        fail_from(at, at % 2);
        bool open = try_open(w, &f);
        more = fail_no_more() > at;
        assert_true(open || f.text[0]);
        assert_true(at < 100);
        if (!open)
            assert_true(try_open(w, &f));
    }
    w->inner.away = false;
    UNTIL(w, stats_of(w).groups == 0 && w->inner.n_stored[1]);
}

/* A group that the store goes on with, and one that it was not given, with their marks. */
static void keeping(void **state)
{
    struct spool_world *w = *state;
    uint64_t id = 1;

    for (int pass = 0; pass < 2; pass++) {
        bool more = true;

        for (long at = 0; more; at++) {
            w->inner.mode = HOLDS;
            start_put(w, id, 2);
            while (((struct spool *)w->spool)->caller == CALLER_ASKING) {
                fail_from(at, pass);
                uv_run(&w->loop, UV_RUN_ONCE);
            }
            UNTIL(w, !((struct spool *)w->spool)->append.job.busy);
            more = fail_no_more() > at;
            if (((struct spool *)w->spool)->caller == CALLER_HELD)
                inner_answer(&w->inner, true);
            else if (w->inner.held)
                inner_answer(&w->inner, false);
            w->inner.mode = STORES;
            enum put_result result = w->group.results[0];
            fail_from(at % 3, pass);
            spool_ops.mark(w->spool, &w->group, 3);
            fail_no_more();
            for (uint16_t i = 0; i < w->group.n; i++)
                record_free(w->group.records[i]);
            UNTIL(w, stats_of(w).groups == 0);
            UNTIL(w, result != PUT_STORED || (w->inner.n_stored[id] && w->inner.marks[id]));
            assert_true(++id < GROUPS_MAX && at < 120);
        }
    }
}

static void putting_again(void **state)
{
    struct spool_world *w = *state;
    uint64_t id = 1;

    for (long at = 0; at < 60; at += 3, id++) {
        w->inner.away = true;
        assert_int_equal(put(w, id, 2), PUT_STORED);
        w->inner.away = false;
        fail_from(at, false);
        UNTIL(w, stats_of(w).groups == 0 && w->inner.n_stored[id]);
        fail_no_more();
        assert_int_equal(w->inner.n_stored[id], 1);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, spool_setup, spool_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(opening), CASE(keeping), CASE(putting_again)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
