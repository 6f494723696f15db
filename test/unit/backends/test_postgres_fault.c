/*
 * Every allocation of the PostgreSQL store failing in turn, once and from then on: an error, or the work done; never a
 * crash, a leak or half of a group; and what has been refused goes in afterwards. (Libpq's own are behind the
 * wrapping.)
 */
#include "test/unit/backends/conformance.c"

#include "backends/postgres_store.h"
#include "test/oracle/failing_malloc.h"
#include "test/unit/backends/postgres_server.h"

const char *conformance_address;

static void opening(void **state)
{
    struct world *w = *state;
    struct group g;
    int opened = 0;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    world_close(w);
    for (int pass = 0; pass < 2; pass++) {
        bool more = true;

        for (long at = 0; more; at++) {
            struct fault f = {0};
            struct str rest;

            fail_from(at, pass);
            w->store = backend_find(str_of(conformance_address), &rest)->write->open(&w->host, rest, &f);
            more = fail_no_more() > at;
            if (w->store) {
                opened++;
                world_close(w);
            } else {
                assert_true(f.err != E_OK && f.text[0]);
            }
            uv_run(&w->loop, UV_RUN_DEFAULT);
            assert_true(at < 1000);
        }
    }
    assert_true(opened >= 2);
    world_open(w);
    assert_int_equal(count(w, NOON, NOON + 1), 1);
}

static void putting(void **state)
{
    struct world *w = *state;
    struct wish wishes[] = {{.time_ns = NOON, .stacks = 50}, {.time_ns = NOON + 1, .service = "b"}};
    int stored = 0, groups = 0, again = 0;

    for (int pass = 0; pass < 2; pass++) {
        bool more = true;

        for (long at = 0; more; at++, groups++) {
            struct group g;

            wishes[0].first_stack = (uint32_t)groups * 50;
            wishes[1].pod = at % 2 ? "x" : "y";
            make_group(w, &g, pass ? 15 : 7, wishes, 2);
            fail_from(at, pass);
            put_group(w, &g);
            w->backend->write->mark(w->store, &g, 3);
            more = fail_no_more() > at;
            assert_int_equal(g.results[0], g.results[1]);
            assert_true(g.results[0] == PUT_STORED || g.results[0] == PUT_AGAIN);
            again += g.results[0] == PUT_AGAIN;
            put_until_stored(w, &g);
            stored += 2;
            free_group(&g);
            assert_true(at < 1000);
        }
    }
    assert_true(again > 20);
    assert_int_equal(count(w, NOON, NOON + 2), stored);
}

static void run_until_idle(struct world *w)
{
    uint64_t until = uv_hrtime() + UINT64_C(10000000000);

    while (pg_resend_busy(w->store) || w->store->resend.ask || w->store->marks.n) {
        assert_true(uv_hrtime() < until);
        uv_run(&w->loop, UV_RUN_NOWAIT);
    }
}

/* Another database has taken over, and has nothing: what was put before goes again, with its marks, as soon as there is
 * memory for it. */
static void sending_again(void **state)
{
    struct world *w = *state;
    long failed = 0;

    w->host.resend_ms = 60000;
    for (int pass = 0; pass < 2; pass++) {
        bool more = true;

        for (long at = 0; more; at++) {
            struct group g;

            world_reopen(w);
            for (int i = 0; i < 2; i++) {
                put_one(w, &g, 15, (struct wish){.time_ns = NOON + i});
                w->backend->write->mark(w->store, &g, 1);
            }
            run_until_idle(w);
            ask("TRUNCATE profile, mark, service, typeset, series, symbols");
            snprintf(w->store->identity, sizeof w->store->identity, "another");
            make_group(w, &g, 15, &(struct wish){.time_ns = NOON + 2}, 1);
            fail_from(at, pass);
            put_group(w, &g);
            more = fail_no_more() > at;
            failed += g.results[0] != PUT_STORED;
            put_until_stored(w, &g);
            free_group(&g);
            run_until_idle(w);

            assert_int_equal(count(w, NOON, NOON + 3), 3);
            assert_string_equal(ask("SELECT count(*) FROM mark"), "2");
            assert_true(at < 1000);
        }
    }
    assert_true(failed > 10);
}

/* A standby that is not promoted yet takes nothing, and says so at once, again and again: marks wait for it. */
static void marks_of_a_server_that_is_read_only(void **state)
{
    struct world *w = *state;
    struct group g;
    char sql[128];

    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    snprintf(sql, sizeof sql, "ALTER DATABASE %s SET default_transaction_read_only = on", database);
    server_ask("postgres", sql);
    server_ask("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 't%'");
    w->backend->write->mark(w->store, &g, 1);
    for (uint64_t until = uv_hrtime() + UINT64_C(700000000); uv_hrtime() < until;)
        uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_int_equal(w->store->marks.n, 1);
    snprintf(sql, sizeof sql, "ALTER DATABASE %s RESET default_transaction_read_only", database);
    server_ask("postgres", sql);
    run_until_idle(w);
    assert_string_equal(ask("SELECT told FROM mark"), "1");
}

/* Without memory for it what was put is not kept, and the next database will lack it: it is told, and nothing else. */
static void keeping_to_send_again(void **state)
{
    struct world *w = *state;
    struct group g;
    long kept = 0, not_kept = 0;
    bool more = true;

    w->host.resend_ms = 60000;
    for (long at = 0; more; at++) {
        make_group(w, &g, 15, &(struct wish){.time_ns = NOON + at}, 1);
        uint64_t before = w->store->resend.dropped;
        fail_from(at, false);
        put_group(w, &g);
        more = fail_no_more() > at;
        not_kept += w->store->resend.dropped > before;
        kept += g.results[0] == PUT_STORED && w->store->resend.dropped == before;
        put_until_stored(w, &g);
        free_group(&g);
    }
    assert_true(kept > 0 && not_kept > 0);
}

static void reading(void **state)
{
    struct world *w = *state;
    struct wish wishes[] = {{.time_ns = NOON, .content = 1}, {.time_ns = NOON, .content = 1}};
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

            fail_from(at, pass);
            scanned = see(w, &s, "", NOON, NOON + 1, SCAN_BODY);
            f = (struct fault){0};
            blocked = w->backend->read->symbols(w->store, STR("p"), STR("svc"), TODAY, TODAY, count_block, &n, &f);
            f = (struct fault){0};
            got = w->backend->read->original(w->store, STR("p"), a, &kept, &out, &f);
            more = fail_no_more() > at;
            assert_true(scanned == E_OK ? s.n == 1 : err_status(scanned) == 503);
            assert_true(blocked == E_OK ? n == 1 : err_status(blocked) == 503);
            assert_true(got == E_OK ? kept == ORIGINAL_OFF : err_status(got) == 503);
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
        put_one(w, &g, 1, (struct wish){.time_ns = NOON});
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(opening, setup, teardown),
        cmocka_unit_test_setup_teardown(putting, setup, teardown),
        cmocka_unit_test_setup_teardown(sending_again, setup, teardown),
        cmocka_unit_test_setup_teardown(marks_of_a_server_that_is_read_only, setup, teardown),
        cmocka_unit_test_setup_teardown(keeping_to_send_again, setup, teardown),
        cmocka_unit_test_setup_teardown(reading, setup, teardown),
        cmocka_unit_test_setup_teardown(expiring, setup, teardown),
    };
    int failed;

    fail_no_more();
    server_make();
    failed = cmocka_run_group_tests_name("postgres, no memory", tests, NULL, NULL);
    server_remove();
    return failed;
}
