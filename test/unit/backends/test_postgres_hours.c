/* Hour compaction over a real PostgreSQL, also through PgBouncer, and what only it can get wrong. */
#include "test/unit/backends/conformance.c"

#include "test/unit/backends/hours.c"

#include "backends/pg_sql.h"
#include "test/unit/backends/postgres_server.h"

const char *conformance_address;

static int setup_bouncer(void **state)
{
    if (!server.bouncer)
        bouncer_start();
    use_database(server.bouncer_port, "127.0.0.1");
    return world_setup(state);
}

static const char *rows_alive = "SELECT count(*) FROM hour WHERE dead_ns = 0";

static void run_for(struct world *w, int ms)
{
    for (uint64_t until = uv_hrtime() + (uint64_t)ms * 1000000; uv_hrtime() < until; usleep(1000))
        uv_run(&w->loop, UV_RUN_NOWAIT);
}

static void expect(struct world *w, const char *sql, const char *wanted)
{
    for (int i = 0; i < 250 && strcmp(ask(sql), wanted) != 0; i++)
        run_for(w, 20);
    assert_string_equal(ask(sql), wanted);
}

/* One row of a process is enough for an open hour; into one that is over, each group leaves one of its own. */
static void open_hours_are_dirty_once(void **state)
{
    struct world *w = *state;
    int64_t middle = (day_now_ns() / HOUR) * HOUR + HOUR / 2;
    struct group g;

    for (int i = 0; i < 5; i++)
        put_one(w, &g, 15, (struct wish){.time_ns = middle + i});
    assert_string_equal(ask("SELECT count(*) FROM dirty_hour"), "1");
    for (int i = 0; i < 5; i++)
        put_one(w, &g, 15, (struct wish){.time_ns = middle - 48 * HOUR + i});
    assert_string_equal(ask("SELECT count(*) FROM dirty_hour"), "6");
    w->backend->write->mark(w->store, &g, 1);
    expect(w, "SELECT count(*) FROM dirty_hour", "7");
    ask("UPDATE meta SET value = 'restored' WHERE key = 'store'"); /* where the row need not be */
    put_one(w, &g, 15, (struct wish){.time_ns = middle + 9});
    assert_string_equal(ask("SELECT count(*) FROM dirty_hour"), "8");
}

struct compactor {
    struct world *w;
    const struct hour_todo *todo;
    struct hour_result result;
    enum err err;
};

static void run_compactor(void *arg)
{
    struct compactor *c = arg;
    struct fault f = {0};

    c->err = hour_compact(c->w->backend, c->w->store, &c->w->key, c->todo, PLENTY, NULL, &c->result, &f);
}

static void of_two_compactors_one_writes(void **state)
{
    struct world *w = *state;
    struct group groups[4];
    struct tallied raw, hours;
    struct due_list due;

    fill(w, groups, 4);
    raw = tally(w, NOON, NOON + HOUR, SCAN_BODY);
    due = list_due(w, hour_of(NOON));
    assert_true(due.n > 1);
    for (uint32_t i = 0; i < due.n; i++) {
        struct compactor both[2] = {{.w = w, .todo = &due.list[i]}, {.w = w, .todo = &due.list[i]}};
        uv_thread_t threads[2];

        for (int k = 0; k < 2; k++)
            assert_int_equal(uv_thread_create(&threads[k], run_compactor, &both[k]), 0);
        for (int k = 0; k < 2; k++)
            uv_thread_join(&threads[k]);
        assert_int_equal(both[0].err, E_OK);
        assert_int_equal(both[1].err, E_OK);
        assert_int_equal(both[0].result.written + both[1].result.written, 1);
        run_compactor(&both[0]); /* and one that comes later, with what it listed before */
        assert_int_equal(both[0].err, E_OK);
        assert_false(both[0].result.written);
    }
    hours = tally(w, NOON, NOON + HOUR, SCAN_BODY | SCAN_HOURS);
    assert_int_equal(hours.rows, hours.hours);
    assert_same(&raw, &hours);
    assert_string_equal(ask("SELECT count(*) FROM hour WHERE dead_ns > 0"), "0");
    arena_free(due.arena);
    for (int i = 0; i < 4; i++)
        free_group(&groups[i]);
}

/* The server's end of the connection dies in each statement of a write, and at its commit. */
static void a_write_that_dies_changes_nothing(void **state)
{
    static const char *const triggers[] = {
        "CREATE TRIGGER dies BEFORE DELETE ON dirty_hour FOR EACH ROW EXECUTE FUNCTION die()",
        "CREATE TRIGGER dies BEFORE UPDATE ON hour FOR EACH ROW EXECUTE FUNCTION die()",
        "CREATE TRIGGER dies BEFORE INSERT ON hour FOR EACH ROW EXECUTE FUNCTION die()",
        "CREATE CONSTRAINT TRIGGER dies AFTER INSERT ON hour DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
        " EXECUTE FUNCTION die()",
    };
    struct world *w = *state;
    struct group groups[5];
    char before[32];

    ask("CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END'");
    put_one(w, &groups[0], 15, (struct wish){.time_ns = NOON + 30 * MINUTE, .pod = "a"});
    compact_all(w, PLENTY);
    for (size_t i = 0; i < COUNTOF(triggers); i++) {
        struct due_list due;
        struct hour_result r;
        struct fault f = {0};

        put_one(w, &groups[i + 1], 15, (struct wish){.time_ns = NOON + (31 + (int)i) * MINUTE, .pod = "a"});
        snprintf(before, sizeof before, "%s", ask("SELECT sum(id) FROM hour WHERE dead_ns = 0"));
        ask(triggers[i]);
        due = list_due(w, hour_of(NOON));
        assert_int_equal(due.n, 1);
        assert_int_equal(hour_compact(w->backend, w->store, &w->key, &due.list[0], PLENTY, NULL, &r, &f), E_STORE_DOWN);
        assert_false(r.written);
        ask(i == 0 ? "DROP TRIGGER dies ON dirty_hour" : "DROP TRIGGER dies ON hour");
        assert_string_equal(ask("SELECT sum(id) FROM hour WHERE dead_ns = 0"), before);
        assert_string_equal(ask("SELECT count(*) FROM dirty_hour"), "1");
        assert_int_equal(tally(w, NOON, NOON + HOUR, SCAN_HOURS).profiles, i + 2);
        compact_listed(w, &due, PLENTY);
        assert_int_equal(tally(w, NOON, NOON + HOUR, SCAN_HOURS).profiles, i + 2);
        assert_string_equal(ask(rows_alive), "1");
    }
    for (size_t i = 0; i < COUNTOF(groups); i++)
        free_group(&groups[i]);
}

static struct world *between;

/* Asked behind the listing, before anything is fetched. */
static bool compact_meanwhile(void *ctx, int64_t time_ns)
{
    (void)time_ns;
    if (!(*(int *)ctx)++) {
        ask("INSERT INTO dirty_hour(service, hour) SELECT service, hour FROM hour");
        compact_all(between, PLENTY);
    }
    return true;
}

static void a_reader_has_what_it_listed(void **state)
{
    struct world *w = *state;
    int asked = 0;
    struct selection sel = {
        .project = STR("p"), .from_ns = NOON, .until_ns = NOON + HOUR, .time_match = compact_meanwhile, .ctx = &asked};
    struct tallied t = {.in_order = true, .last_time = INT64_MIN};
    struct fault f = {0};
    struct group a;

    put_one(w, &a, 15, (struct wish){.time_ns = NOON + 30 * MINUTE, .pod = "a"});
    compact_all(w, PLENTY);
    between = w;
    assert_int_equal(tally(w, NOON, NOON + HOUR, SCAN_HOURS).hours, 1);
    assert_int_equal(w->backend->read->scan(w->store, &sel, SCAN_BODY | SCAN_HOURS, on_tallied, &t, &f), E_OK);
    assert_int_equal(t.profiles, 1);
    assert_int_equal(t.hours, 1);
    assert_true(t.columns > 0);
    assert_string_equal(ask("SELECT count(*) FROM hour WHERE dead_ns > 0"), "1");
    free_group(&a);
}

/* A nanosecond before the end of its time a day is there; with it only that class's day goes, hours and all. */
static void expiry_at_midnight(void **state)
{
    static const char days[] = "SELECT string_agg(c, ' ' ORDER BY c) FROM (SELECT substring(relname from 7) AS c FROM"
                               " pg_class WHERE relkind = 'r' AND relname ~ '^hour_c[0-9]+_202611(29|30)$') x";
    int64_t end = (TODAY + 16) * DAY;
    struct world *w = *state;
    struct group groups[4];

    put_one(w, &groups[0], 15, (struct wish){.time_ns = TODAY * DAY - 1, .pod = "a"});
    put_one(w, &groups[1], 15, (struct wish){.time_ns = TODAY * DAY, .pod = "a"});
    put_one(w, &groups[2], 30, (struct wish){.time_ns = TODAY * DAY - 1, .pod = "b", .service = "other"});
    compact_all(w, PLENTY);
    assert_string_equal(ask(rows_alive), "3");
    w->backend->write->expire(w->store, end - 1);
    expect(w, days, "15_20261130 30_20261129");
    assert_string_equal(ask(rows_alive), "2");
    put_one(w, &groups[3], 15, (struct wish){.time_ns = (TODAY + 1) * DAY - 1, .pod = "a"}); /* late, and in time */
    assert_int_equal(tally(w, 0, INT64_MAX, SCAN_HOURS).profiles, 3);
    w->backend->write->expire(w->store, end);
    expect(w, days, "30_20261129");
    assert_int_equal(tally(w, 0, INT64_MAX, SCAN_HOURS).profiles, 1);
    compact_all(w, PLENTY); /* of days that are gone: nothing to be written */
    assert_string_equal(ask("SELECT count(*) FROM dirty_hour"), "0");
    assert_string_equal(ask(rows_alive), "1");
    for (int i = 0; i < 4; i++)
        free_group(&groups[i]);
}

/* retention.raw: told of first; not while an hour is dirty; hours that were never made are made first. */
static void profiles_go_before_their_hours(void **state)
{
    static const char of_day[] = "SELECT gone FROM raw_gone WHERE day = '2026-11-30'";
    struct world *w = *state;
    const struct hour_ops *ops = w->backend->hours;
    struct group groups[4];
    struct tallied before;
    struct fault f = {0};
    bool more = false;

    fill(w, groups, 3);
    before = tally(w, NOON, NOON + HOUR, SCAN_BODY | SCAN_HOURS);
    assert_int_equal(ops->drop_raw(w->store, TODAY + 1, &more, &f), E_OK); /* dirty */
    assert_false(more);
    ask("DELETE FROM dirty_hour"); /* as if they had been lost */
    assert_int_equal(ops->drop_raw(w->store, TODAY + 1, &more, &f), E_OK);
    assert_true(more);
    assert_string_equal(ask(of_day), "f");
    assert_int_equal(w->backend->read->raw_since(w->store), (TODAY + 1) * DAY);
    assert_true(strtol(ask("SELECT count(*) FROM dirty_hour"), NULL, 10) > 0);
    compact_all(w, PLENTY);
    assert_int_equal(ops->drop_raw(w->store, TODAY + 1, &more, &f), E_OK); /* not told of for long enough */
    assert_false(more);
    ask("UPDATE raw_gone SET told_ns = 0");
    assert_int_equal(ops->drop_raw(w->store, TODAY + 1, &more, &f), E_OK);
    assert_true(more);
    assert_string_equal(ask(of_day), "t");
    assert_string_equal(ask("SELECT count(*) FROM profile"), "0");
    struct tallied after = tally(w, NOON, NOON + HOUR, SCAN_BODY | SCAN_HOURS);
    assert_same(&before, &after);
    put_one(w, &groups[3], 15, (struct wish){.time_ns = NOON + MINUTE, .pod = "late"}); /* beside them */
    assert_string_equal(ask("SELECT count(*) FROM dirty_hour"), "0");
    assert_int_equal(tally(w, NOON, NOON + HOUR, SCAN_HOURS).profiles, before.profiles + 1);
    world_reopen(w);
    assert_int_equal(w->backend->read->raw_since(w->store), (TODAY + 1) * DAY);
    assert_int_equal(ops->drop_raw(w->store, TODAY - 5, &more, &f), E_OK); /* what is gone stays so */
    assert_string_equal(ask(of_day), "t");
    for (int i = 0; i < 4; i++)
        free_group(&groups[i]);
}

#define OWN(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
static const struct CMUnitTest own_tests[] = {
    OWN(open_hours_are_dirty_once),   OWN(of_two_compactors_one_writes), OWN(a_write_that_dies_changes_nothing),
    OWN(a_reader_has_what_it_listed), OWN(expiry_at_midnight),           OWN(profiles_go_before_their_hours),
};

static int run_suite(const char *title, CMFixtureFunction with)
{
    struct CMUnitTest tests[32];

    for (size_t i = 0; i < hours_n_tests; i++) {
        tests[i] = hours_tests[i];
        tests[i].setup_func = with;
        tests[i].teardown_func = teardown;
    }
    return _cmocka_run_group_tests(title, tests, hours_n_tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    int failed;

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    server_make();
    failed = run_suite("hours: postgres", setup);
    failed += run_suite("hours: postgres through pgbouncer", setup_bouncer);
    failed += cmocka_run_group_tests_name("hours: postgres alone", own_tests, NULL, NULL);
    server_remove();
    return failed;
}
