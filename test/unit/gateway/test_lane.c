/* Lanes: every job works once on a thread of the lane and is done once on the loop, in order where there is one thread
 * and one party.
 */
#include "gateway/lane.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { JOBS = 200 };

struct counted {
    struct job job;
    uv_thread_t worked_on;
    unsigned worked, done, place;
};

static struct counted jobs[JOBS];
static unsigned n_done;
static uv_sem_t gate;

static void work(struct job *j)
{
    struct counted *c = (struct counted *)j;

    c->worked++;
    c->worked_on = uv_thread_self();
}

static void wait_at_gate(struct job *j)
{
    uv_sem_wait(&gate);
    work(j);
}

static void done(struct job *j)
{
    struct counted *c = (struct counted *)j;

    c->done++;
    c->place = n_done++;
}

static void prepare(void (*how)(struct job *))
{
    memset(jobs, 0, sizeof jobs);
    n_done = 0;
    for (size_t i = 0; i < JOBS; i++)
        jobs[i].job = (struct job){.work = how, .done = done};
}

static void run_all(unsigned threads)
{
    uv_loop_t loop;
    uv_thread_t self = uv_thread_self();

    prepare(work);
    assert_int_equal(uv_loop_init(&loop), 0);
    struct lane *l = lane_new(&loop, "test", threads, JOBS);
    assert_non_null(l);
    for (size_t i = 0; i < JOBS; i++)
        assert_true(lane_submit(l, &jobs[i].job));
    lane_close(l);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(n_done, JOBS);
    for (unsigned i = 0; i < JOBS; i++) {
        assert_int_equal(jobs[i].worked, 1);
        assert_int_equal(jobs[i].done, 1);
        assert_false(uv_thread_equal(&jobs[i].worked_on, &self));
        assert_true(threads > 1 || jobs[i].place == i);
    }
}

static void test_all_once(void **state)
{
    (void)state;
    run_all(1);
    run_all(3);
}

static void test_bound(void **state)
{
    uv_loop_t loop;
    size_t taken = 0;

    (void)state;
    prepare(wait_at_gate);
    uv_sem_init(&gate, 0);
    assert_int_equal(uv_loop_init(&loop), 0);
    struct lane *l = lane_new(&loop, "a name that is too long", 1, 5);
    assert_non_null(l);
    for (size_t i = 0; i < 20; i++)
        taken += lane_submit(l, &jobs[i].job);
    assert_true(taken == 5 || taken == 6); /* the thread may have taken one already */
    assert_true(lane_waiting(l) <= lane_capacity(l));
    for (size_t i = 0; i < taken; i++)
        uv_sem_post(&gate);
    lane_close(l);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(n_done, taken);
    uv_sem_destroy(&gate);
}

static uv_sem_t begun;

static void begin_and_wait(struct job *j)
{
    uv_sem_post(&begun);
    wait_at_gate(j);
}

/* Four more of one party, then two of another, one of nobody, one of the first: the second's are not behind its four.
 */
static void test_parties_take_turns(void **state)
{
    static const uint64_t parties[] = {1, 1, 1, 1, 2, 2, 0, 1};
    static const unsigned places[] = {0, 1, 3, 5, 2, 4, 6, 7};
    uv_loop_t loop;

    (void)state;
    prepare(work);
    jobs[0].job.work = begin_and_wait;
    uv_sem_init(&gate, 0);
    uv_sem_init(&begun, 0);
    assert_int_equal(uv_loop_init(&loop), 0);
    struct lane *l = lane_new(&loop, "test", 1, JOBS);
    assert_non_null(l);
    for (size_t i = 0; i < COUNTOF(parties); i++) {
        jobs[i].job.party = parties[i];
        assert_true(lane_submit(l, &jobs[i].job));
        if (i == 0)
            uv_sem_wait(&begun);
    }
    uv_sem_post(&gate);
    lane_close(l);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    for (size_t i = 0; i < COUNTOF(places); i++)
        assert_int_equal(jobs[i].place, places[i]);
    uv_sem_destroy(&gate);
    uv_sem_destroy(&begun);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_once), cmocka_unit_test(test_bound),
                                       cmocka_unit_test(test_parties_take_turns)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
