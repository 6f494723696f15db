/* Lanes: every job works once on a thread of the lane and is done once on the loop, in order where there is one thread.
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_once), cmocka_unit_test(test_bound)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
