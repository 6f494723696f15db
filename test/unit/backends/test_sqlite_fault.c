/*
 * Every allocation of the embedded store failing in turn, once and from then on: an error, or the work done; never a
 * crash, a leak or half of a group; and what has been refused goes in afterwards. (SQLite's own allocations are behind
 * the wrapping.)
 */
#include "test/unit/backends/conformance.c"

#include "test/oracle/failing_malloc.h"

const char *conformance_address = "sqlite:";

static void opening(void **state)
{
    struct world *w = *state;
    struct group g;
    bool more = true;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON, .original = "x"});
    world_close(w);
    for (int pass = 0; pass < 2; pass++, more = true)
        for (long at = 0; more; at++) {
            struct fault f = {0};
            struct str rest;

            fail_from(at, pass);
            w->store = backend_find(str_of(conformance_address), &rest)->write->open(&w->host, rest, &f);
            more = fail_no_more() > at;
            if (w->store)
                world_close(w);
            else
                assert_true(f.err != E_OK && f.text[0]);
            uv_run(&w->loop, UV_RUN_NOWAIT);
            assert_true(at < 1000);
        }
    world_open(w);
    assert_int_equal(count(w, NOON, NOON + 1), 1);
}

static void putting(void **state)
{
    struct world *w = *state;
    struct wish wishes[] = {{.time_ns = NOON, .original = "one", .stacks = 200}, {.time_ns = NOON + 1, .service = "b"}};
    int stored = 0, groups = 0;

    for (int pass = 0; pass < 2; pass++) {
        bool more = true;

        for (long at = 0; more; at++, groups++) {
            struct group g;

            wishes[0].first_stack = (uint32_t)groups * 200;
            make_group(w, &g, 15, wishes, 2);
            fail_from(at, pass);
            put_group(w, &g);
            w->backend->write->mark(w->store, &g, 3);
            more = fail_no_more() > at;
            assert_int_equal(g.results[0], g.results[1]);
            assert_true(g.results[0] == PUT_STORED || g.results[0] == PUT_AGAIN);
            stored += g.results[0] == PUT_STORED ? 2 : 0;
            assert_int_equal(count(w, NOON, NOON + 2), stored);
            if (g.results[0] == PUT_AGAIN) {
                put_group(w, &g);
                assert_int_equal(g.results[0], PUT_STORED);
                stored += 2;
            }
            free_group(&g);
            assert_true(at < 1000);
        }
    }
    assert_true(groups > 20);
    assert_int_equal(count(w, NOON, NOON + 2), stored);
}

static void reading(void **state)
{
    struct world *w = *state;
    struct wish wishes[] = {{.time_ns = NOON, .content = 1, .original = "original"}, {.time_ns = NOON, .content = 1}};
    static struct seeing s;
    struct group g;
    struct fault f;

    put_wishes(w, &g, 15, wishes, 2);
    for (int pass = 0; pass < 2; pass++) {
        bool more = true;

        for (long at = 0; more; at++) {
            struct buf out = {0};
            struct attempt a = {.boot = g.boot, .group = g.id};
            enum original_state kept;
            enum err scanned, blocked, got;
            int n = 0;

            world_reopen(w); /* no connection is open already */
            fail_from(at, pass);
            scanned = see(w, &s, "", NOON, NOON + 1, SCAN_BODY);
            f = (struct fault){0};
            blocked = w->backend->read->symbols(w->store, STR("p"), STR("svc"), TODAY, TODAY, count_block, &n, &f);
            f = (struct fault){0};
            got = w->backend->read->original(w->store, STR("p"), a, &kept, &out, &f);
            more = fail_no_more() > at;
            assert_true(scanned == E_OK ? s.n == 1 : err_status(scanned) == 503);
            assert_true(blocked == E_OK ? n == 1 : err_status(blocked) == 503);
            assert_true(got == E_OK ? kept == ORIGINAL_KEPT && str_eq(buf_view(&out), STR("original"))
                                    : err_status(got) == 503);
            buf_free(&out);
            assert_true(at < 1000);
        }
    }
}

static void expiring(void **state)
{
    struct world *w = *state;
    struct group g;

    for (long at = 0; at < 10; at++) {
        put_one(w, &g, 1, (struct wish){.time_ns = NOON, .original = "x"});
        fail_from(at, false);
        w->backend->write->expire(w->store, NOON + 5 * DAY);
        world_close(w);
        fail_no_more();
        world_open(w);
        w->backend->write->expire(w->store, NOON + 5 * DAY);
        world_reopen(w);
        assert_int_equal(count(w, NOON, NOON + 1), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(opening), CASE(putting), CASE(reading), CASE(expiring)};

    assert_true(conformance_n_tests > 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
