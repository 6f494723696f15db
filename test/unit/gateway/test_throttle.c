/* Rates by an injected clock: bursts, refilling, what is taken in advance, and new stacks. */
#include "gateway/ingest/throttle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const int64_t S = 1000000000, START = INT64_C(5000000000);

static struct conf_bounds bounds(uint32_t requests, uint64_t bytes, uint32_t stacks)
{
    return (struct conf_bounds){
        .limits = {.body = 1000, .samples = 10},
        .rates = {.requests = requests, .bytes = bytes, .new_stacks = stacks, .burst_ms = 2000}};
}

/* 0, or when to come again. */
static uint32_t enter(struct throttle *t, const char *project, const struct conf_bounds *b, uint64_t bytes, int64_t at,
                      const char *name)
{
    struct fault f = {0};

    if (throttle_enter(t, str_of(project), b, bytes, START + at, &f) == E_OK)
        return 0;
    assert_int_equal(f.err, E_RATE_LIMITED);
    assert_non_null(strstr(f.text, name));
    assert_true(f.retry_s > 0);
    return f.retry_s;
}

static void test_requests(void **state)
{
    struct throttle *t = throttle_new();
    struct conf_bounds b = bounds(5, 0, 0), off = bounds(0, 0, 0);

    (void)state;
    for (int i = 0; i < 10; i++) /* two seconds' worth at once */
        assert_int_equal(enter(t, "p", &b, 1, 0, ""), 0);
    assert_int_equal(enter(t, "p", &b, 1, 0, "rates.requests = 5 a second (10 at once)"), 1);
    assert_int_equal(enter(t, "q", &b, 1, 0, ""), 0);
    assert_int_equal(enter(t, "p", &off, 1, 0, ""), 0);
    for (int i = 1; i <= 50; i++) /* and then as they come in */
        assert_int_equal(enter(t, "p", &b, 1, i * S / 5, ""), 0);
    assert_int_equal(enter(t, "p", &b, 1, 10 * S + S / 10, "rates.requests"), 1);
    for (int i = 0; i < 10; i++) /* never more than the burst */
        assert_int_equal(enter(t, "p", &b, 1, 100 * S, ""), 0);
    assert_int_equal(enter(t, "p", &b, 1, 100 * S, "rates.requests"), 1);
    throttle_free(t);
}

static void test_bytes(void **state)
{
    struct throttle *t = throttle_new();
    struct conf_bounds b = bounds(0, 100, 0);

    (void)state;
    assert_int_equal(enter(t, "p", &b, 1000, 0, ""), 0); /* limits.body, though the burst is 200 */
    assert_int_equal(enter(t, "p", &b, 500, 0, "rates.bytes = 100 a second (1000 at once)"), 6);
    assert_int_equal(enter(t, "p", &b, 500, 5 * S, ""), 0);
    assert_int_equal(enter(t, "p", &b, 0, 5 * S + S / 10, ""), 0); /* a body without a length */
    throttle_bytes(t, STR("p"), &b, 400, START + 5 * S + S / 10);  /* turns out so */
    assert_int_equal(enter(t, "p", &b, 1, 8 * S, "0 left"), 2);
    assert_int_equal(enter(t, "p", &b, 1, 10 * S, ""), 0);
    throttle_free(t);
}

static void stacks_of(struct throttle *t, const struct conf_bounds *b, uint64_t first, uint32_t n, int64_t at)
{
    uint64_t ids[64];
    struct symbols s = {.stack_ids = ids, .n_stacks = n};
    struct record r = {.series = {.project = STR("p")}, .symbols = &s};

    for (uint32_t i = 0; i < n; i++)
        ids[i] = first + i;
    throttle_stacks(t, &r, b, START + at);
}

static void test_new_stacks(void **state)
{
    struct throttle *t = throttle_new();
    struct conf_bounds b = bounds(0, 0, 10);

    (void)state;
    assert_int_equal(enter(t, "p", &b, 1, 0, ""), 0);
    stacks_of(t, &b, 1, 20, 0); /* the burst */
    assert_int_equal(enter(t, "p", &b, 1, 0, "rates.new_stacks"), 1);
    assert_int_equal(enter(t, "p", &b, 1, S, ""), 0);
    for (int i = 0; i < 100; i++) /* known ones cost nothing */
        stacks_of(t, &b, 1, 20, S);
    assert_int_equal(enter(t, "p", &b, 1, S, ""), 0);
    stacks_of(t, &b, 15, 60, S); /* 6 of them are known: 44 in advance */
    assert_int_equal(enter(t, "p", &b, 1, S, "rates.new_stacks"), 5);
    assert_int_equal(enter(t, "p", &b, 1, 6 * S, ""), 0);
    assert_true(throttle_bytes_held(t) > 0);
    throttle_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_requests), cmocka_unit_test(test_bytes),
                                       cmocka_unit_test(test_new_stacks)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
