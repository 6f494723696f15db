/*
 * The PostgreSQL store against a real server of its own: the conformance suite, then what only it can get wrong:
 * connections that go, servers that stop or hang, PgBouncer, many replicas at once, plans of its statements.
 */
#include "test/unit/backends/conformance.c"

#include "backends/pg_sql.h"
#include "test/unit/backends/postgres_server.h"

const char *conformance_address;

static int setup_tcp(void **state)
{
    use_database(server.port, "localhost");
    return world_setup(state);
}

static int setup_bouncer(void **state)
{
    if (!server.bouncer)
        bouncer_start();
    use_database(server.bouncer_port, "127.0.0.1");
    return world_setup(state);
}

static int64_t milliseconds(void)
{
    return (int64_t)(uv_hrtime() / 1000000);
}

static void run_for(struct world *w, int64_t ms)
{
    for (int64_t until = milliseconds() + ms; milliseconds() < until; usleep(1000))
        uv_run(&w->loop, UV_RUN_NOWAIT);
}

static void projects_and_originals(void **state)
{
    struct world *w = *state;
    static struct seeing s;
    struct buf out = {0};
    struct fault f = {0};
    enum original_state kept = ORIGINAL_KEPT;
    struct group g;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON, .project = "other", .original = "secret"});
    struct attempt a = {.boot = g.boot, .group = g.id};
    struct selection sel = {.project = STR("p"), .profile = &a};

    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    assert_int_equal(count(w, NOON, NOON + 1), 1);
    assert_int_equal(w->backend->read->scan(w->store, &sel, SCAN_META, on_row, &s, &f), E_NOT_FOUND);
    f = (struct fault){0};
    assert_int_equal(w->backend->read->original(w->store, STR("p"), a, &kept, &out, &f), E_NOT_FOUND);
    f = (struct fault){0};
    assert_int_equal(w->backend->read->original(w->store, STR("other"), a, &kept, &out, &f), E_OK);
    assert_int_equal(kept, ORIGINAL_OFF);
    assert_int_equal(out.len, 0);
}

/* Of every second put the connections are cut just before, of the others while it is under way. */
static void cut_connections_lose_nothing(void **state)
{
    struct world *w = *state;
    struct group g;

    for (int i = 0; i < 20; i++) {
        struct wish wishes[] = {{.time_ns = NOON + 2 * i, .stacks = 200, .first_stack = (uint32_t)i * 50},
                                {.time_ns = NOON + 2 * i + 1}};

        make_group(w, &g, 15, wishes, 2);
        if (i % 2) {
            start_put(w, &g);
            for (int turns = 0; turns < i; turns++)
                uv_run(&w->loop, UV_RUN_NOWAIT);
        }
        ask("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()");
        if (i % 2)
            for (int before = i; w->dones == before;)
                uv_run(&w->loop, UV_RUN_ONCE);
        w->dones = 0;
        put_until_stored(w, &g);
        w->dones = i + 1;
        free_group(&g);
    }
    assert_int_equal(count(w, NOON, NOON + 100), 40);
    assert_true(w->backend->write->healthy(w->store));
}

static void a_crashed_server_comes_back(void **state)
{
    struct world *w = *state;
    struct group g, h;
    int64_t began;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    server_stop(SIGQUIT);
    make_group(w, &h, 15, &(struct wish){.time_ns = NOON + 1}, 1);
    began = milliseconds();
    put_group(w, &h);
    assert_int_equal(h.results[0], PUT_AGAIN);
    assert_true(milliseconds() - began < 2500);
    assert_false(w->backend->write->healthy(w->store));
    began = milliseconds();
    put_group(w, &h); /* away for long: at once */
    assert_int_equal(h.results[0], PUT_AGAIN);
    assert_true(milliseconds() - began < 300);
    server_start();
    for (int i = 0; i < 100 && !w->backend->write->healthy(w->store); i++) /* by itself: nobody sends before */
        run_for(w, 50);
    assert_true(w->backend->write->healthy(w->store));
    put_group(w, &h);
    assert_int_equal(h.results[0], PUT_STORED);
    free_group(&h);
    assert_true(w->backend->write->healthy(w->store));
    assert_int_equal(count(w, NOON, NOON + 2), 2);
}

static void it_starts_while_the_server_is_away(void **state)
{
    struct world *w = *state;
    static struct seeing s;
    struct group g, h;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    world_close(w);
    server_stop(SIGINT);
    world_open(w);
    assert_false(w->backend->write->healthy(w->store));
    assert_int_equal(see(w, &s, "svc", NOON, NOON + 2, SCAN_META), E_STORE_DOWN);
    make_group(w, &h, 15, &(struct wish){.time_ns = NOON + 1}, 1);
    put_group(w, &h);
    assert_int_equal(h.results[0], PUT_AGAIN);
    server_start();
    put_until_stored(w, &h);
    free_group(&h);
    assert_true(w->backend->write->healthy(w->store));
    assert_int_equal(count(w, NOON, NOON + 2), 2);
}

static void closing_does_not_wait_for_a_server_that_is_away(void **state)
{
    struct world *w = *state;
    struct group g;
    int64_t began;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    server_stop(SIGQUIT);
    w->backend->write->mark(w->store, &g, 1);
    w->backend->write->expire(w->store, NOON);
    began = milliseconds();
    world_close(w);
    assert_true(milliseconds() - began < 4000);
    assert_int_equal(atomic_load(&w->errors), 1); /* the mark that is lost */
    server_start();
    world_open(w);
}

/* The writer's backend stops in the middle of everything for three seconds. */
static void a_hanging_server_is_not_waited_for(void **state)
{
    struct world *w = *state;
    struct group g, h;
    int64_t began;
    pid_t pid;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    pid = (pid_t)strtol(ask("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE"
                            " 'INSERT INTO profile%'"),
                        NULL, 10);
    assert_true(pid > 0);
    kill(pid, SIGSTOP);
    make_group(w, &h, 15, &(struct wish){.time_ns = NOON + 1}, 1);
    began = milliseconds();
    put_group(w, &h);
    /* Not heard of within the deadline, it is sent again over a new connection. */
    assert_int_equal(h.results[0], PUT_STORED);
    assert_in_range(milliseconds() - began, 2000, 4500);
    kill(pid, SIGCONT);
    put_until_stored(w, &h);
    free_group(&h);
    run_for(w, 300);
    assert_int_equal(count(w, NOON, NOON + 2), 2);
    assert_int_equal(strtol(ask("SELECT count(*) FROM profile"), NULL, 10), 2);
}

struct waiting {
    struct world *w;
    atomic_bool cancel;
    atomic_int ended;
    enum err err;
};

static void read_and_wait(void *arg)
{
    struct waiting *r = arg;
    struct fault f = {0};
    static struct seeing s;
    struct selection sel = {.project = STR("p"), .from_ns = NOON, .until_ns = NOON + 1, .cancel = &r->cancel};

    r->err = r->w->backend->read->scan(r->w->store, &sel, SCAN_BODY, on_row, &s, &f);
    atomic_store(&r->ended, 1);
}

static void a_blocked_read_can_be_cancelled(void **state)
{
    struct world *w = *state;
    struct waiting r = {.w = w};
    uv_thread_t thread;
    char info[160];
    int64_t began;
    struct group g;
    PGconn *c;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    snprintf(info, sizeof info, "host=%s port=%d user=postgres dbname=%s", server.dir, server.port, database);
    c = PQconnectdb(info);
    PQclear(PQexec(c, "BEGIN; LOCK TABLE profile IN ACCESS EXCLUSIVE MODE"));
    assert_int_equal(uv_thread_create(&thread, read_and_wait, &r), 0);
    usleep(300000);
    assert_int_equal(atomic_load(&r.ended), 0);
    began = milliseconds();
    atomic_store(&r.cancel, true);
    uv_thread_join(&thread);
    assert_int_equal(r.err, E_CANCELLED);
    assert_true(milliseconds() - began < 400);
    PQfinish(c);
}

static struct sample_store *open_again(struct world *w, struct fault *f)
{
    struct str rest;

    *f = (struct fault){0};
    return backend_find(str_of(address), &rest)->write->open(&w->host, rest, f);
}

static void what_is_not_ours_is_refused(void **state)
{
    struct world *w = *state;
    struct hash_key other;
    struct fault f;

    world_close(w);
    hash_key_derive(&other, STR("another"));
    w->host.key = &other;
    assert_null(open_again(w, &f));
    assert_non_null(strstr(f.text, "hash_key_file"));
    w->host.key = &w->key;
    ask("UPDATE meta SET value = '99' WHERE key = 'version'");
    assert_null(open_again(w, &f));
    assert_non_null(strstr(f.text, "99"));
    ask("UPDATE meta SET value = '2' WHERE key = 'version'");
    world_open(w);
}

/* As version 1 left it. Whatever is there is to be compacted. */
static void the_first_version_is_migrated(void **state)
{
    struct world *w = *state;
    struct group g;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    put_one(w, &g, 7, (struct wish){.time_ns = NOON + 1, .content = 3});
    put_one(w, &g, 15, (struct wish){.time_ns = NOON - 5 * DAY});
    world_close(w);
    ask("DROP TABLE hour, dirty_hour, raw_gone; DROP SEQUENCE hour_id;"
        " UPDATE meta SET value = '1' WHERE key = 'version'");
    world_open(w);
    assert_string_equal(ask("SELECT value FROM meta WHERE key = 'version'"), "2");
    assert_string_equal(ask("SELECT count(*) FROM dirty_hour"), "2");
    assert_int_equal(count(w, NOON - 5 * DAY, NOON + 2), 3);
    put_one(w, &g, 15, (struct wish){.time_ns = NOON + 2});
    assert_int_equal(count(w, NOON, NOON + 3), 3);
    assert_string_equal(ask("SELECT count(*) FROM pg_class WHERE relname = 'hour_c15_20261130'"), "1");
}

static void a_bad_row_fails_itself(void **state)
{
    struct world *w = *state;
    struct wish wishes[16];
    struct str names[16];
    struct group g;

    for (int i = 0; i < 16; i++)
        wishes[i] = (struct wish){.time_ns = NOON + i};
    make_group(w, &g, 15, wishes, 16);
    for (int i = 0; i < 16; i++)
        names[i] = g.records[i]->series.spy;
    g.records[3]->series.spy = STR("\xff\xfe");
    g.records[3]->series_id = 12345;
    g.records[10]->trace_id = STR("a\0b");
    g.records[12]->time_ns += DAY;
    put_group(w, &g);
    for (int i = 0; i < 16; i++)
        assert_int_equal(g.results[i], i == 3 || i == 10 || i == 12 ? PUT_BAD : PUT_STORED);
    assert_true(w->backend->write->healthy(w->store));
    assert_int_equal(count(w, 0, INT64_MAX), 13);
    g.records[3]->series.spy = names[3];
    free_group(&g);
}

/* A failover, or a restore: what this writer has stored may not be there. */
static void another_database_gets_the_symbols_again(void **state)
{
    struct world *w = *state;
    struct group g;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    put_one(w, &g, 15, (struct wish){.time_ns = NOON + 1});
    assert_int_equal(blocks(w, "svc"), 1);
    ask("DELETE FROM symbols");
    ask("DELETE FROM series");
    ask("UPDATE meta SET value = 'restored' WHERE key = 'store'");
    put_one(w, &g, 15, (struct wish){.time_ns = NOON + 2});
    assert_int_equal(blocks(w, "svc"), 1);
    assert_int_equal(strtol(ask("SELECT count(*) FROM series"), NULL, 10), 1);
    assert_int_equal(count(w, NOON, NOON + 3), 3);
    put_one(w, &g, 15, (struct wish){.time_ns = NOON + 3});
    assert_int_equal(blocks(w, "svc"), 1);
}

static void a_day_that_another_dropped_is_made_again(void **state)
{
    struct world *w = *state;
    struct group g;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    ask("DROP TABLE profile_c15_20261130, series_c15_20261130, symbols_c15_20261130, mark_c15_20261130");
    w->backend->write->mark(w->store, &g, 1); /* of a day that is gone: nobody misses it */
    put_one(w, &g, 15, (struct wish){.time_ns = NOON + 1});
    assert_int_equal(count(w, NOON, NOON + 2), 1);
    assert_int_equal(blocks(w, "svc"), 1);
    assert_int_equal(atomic_load(&w->errors), 0);
}

static void days_are_made_ahead_and_dropped_behind(void **state)
{
    static const char of_two_classes[] =
        "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname ~ '_c(1|15)_2026'";
    struct world *w = *state;
    struct group g;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    put_one(w, &g, 1, (struct wish){.time_ns = NOON + DAY});
    w->backend->write->expire(w->store, NOON);
    for (int i = 0; i < 200 && strcmp(ask(of_two_classes), "40") != 0; i++)
        run_for(w, 20);
    assert_string_equal(ask(of_two_classes), "40"); /* 5 tables, 4 days, 2 classes */
    w->backend->write->expire(w->store, (TODAY + 16) * DAY);
    world_reopen(w);
    assert_string_equal(ask("SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname ~ '_c15_20261130'"), "0");
    assert_string_equal(ask("SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname ~ '_c15_20261201'"), "5");
    assert_int_equal(count(w, 0, INT64_MAX), 0);
    assert_int_equal(atomic_load(&w->errors), 0);
}

static PGconn *connect_to(const char *name)
{
    char info[160];
    PGconn *c;

    snprintf(info, sizeof info, "host=%s port=%d user=postgres dbname=%s", server.dir, server.port, name);
    c = PQconnectdb(info);
    assert_int_equal(PQstatus(c), CONNECTION_OK);
    return c;
}

static void expect_count(struct world *w, const char *sql, const char *wanted)
{
    for (int i = 0; i < 300 && strcmp(ask(sql), wanted) != 0; i++)
        run_for(w, 20);
    assert_string_equal(ask(sql), wanted);
}

/* A detach that broke off, one that is done without its drop, and one whose parent somebody reads for long. */
static void expiry_goes_on_where_it_broke_off(void **state)
{
    static const char expired[] = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname ~ '_20261130$'";
    struct world *w = *state;
    PGconn *reader = connect_to(database), *dropper = connect_to(database);
    struct group g;
    int64_t began;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    put_one(w, &g, 15, (struct wish){.time_ns = NOON + DAY});
    PQclear(PQexec(reader, "BEGIN; SELECT count(*) FROM profile; SELECT count(*) FROM mark"));
    PQclear(PQexec(dropper, "SET statement_timeout = 200"));
    PQclear(PQexec(dropper, "ALTER TABLE profile_c15 DETACH PARTITION profile_c15_20261130 CONCURRENTLY"));
    PQclear(PQexec(dropper, "ALTER TABLE symbols_c15 DETACH PARTITION symbols_c15_20261130 CONCURRENTLY"));
    assert_string_equal(ask("SELECT count(*) FROM pg_inherits WHERE inhdetachpending"), "1");
    assert_string_equal(ask("SELECT count(*) FROM pg_inherits WHERE inhrelid = 'symbols_c15_20261130'::regclass"), "0");
    w->backend->write->expire(w->store, NOON + 16 * DAY);
    run_for(w, 300); /* it waits for the reader, and nobody waits for it */
    began = milliseconds();
    put_one(w, &g, 15, (struct wish){.time_ns = NOON + DAY + 1});
    assert_int_equal(count(w, NOON + DAY, NOON + DAY + 2), 2);
    assert_true(milliseconds() - began < 400);
    assert_string_equal(ask("SELECT count(*) FROM pg_class WHERE relname = 'profile_c15_20261130'"), "1");
    PQfinish(reader);
    expect_count(w, expired, "0");
    assert_int_equal(count(w, 0, INT64_MAX), 2);
    assert_string_equal(ask("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"), "0");
    assert_int_equal(atomic_load(&w->errors), 0);
    PQfinish(dropper);
}

enum { REPLICAS_MAX = 10, GROUPS = 12, ROWS = 8 };

/* A gateway of its own: a loop, a store, and groups that are there before it starts. */
struct replica {
    struct world w;
    struct group groups[GROUPS];
    atomic_int *starting;
    int again;
    bool opened;
};

static void run_replica(void *arg)
{
    struct replica *r = arg;
    struct fault f = {0};
    struct str rest;

    atomic_fetch_sub(r->starting, 1);
    while (atomic_load(r->starting) > 0)
        usleep(100);
    r->w.backend = backend_find(str_of(address), &rest);
    r->w.store = r->w.backend->write->open(&r->w.host, rest, &f);
    r->opened = r->w.store != NULL;
    if (!r->opened) {
        fprintf(stderr, "open: %s\n", f.text);
        return;
    }
    for (int i = 0; i < GROUPS; i++) {
        r->again += put_until_stored(&r->w, &r->groups[i]);
        r->w.backend->write->mark(r->w.store, &r->groups[i], 255);
    }
    world_close(&r->w);
    uv_run(&r->w.loop, UV_RUN_DEFAULT);
}

/* n replicas start at once on what `address` names, and store the same stacks of the same services. */
static int run_replicas(struct world *w, int n)
{
    static struct replica replicas[REPLICAS_MAX];
    uv_thread_t threads[REPLICAS_MAX];
    atomic_int starting = n;
    int again = 0;

    for (int i = 0; i < n; i++) {
        struct replica *r = &replicas[i];

        *r = (struct replica){.starting = &starting};
        assert_int_equal(uv_loop_init(&r->w.loop), 0);
        r->w.host = w->host;
        r->w.host.loop = &r->w.loop;
        r->w.host.ctx = &r->w;
        r->w.key = w->key;
        for (int k = 0; k < GROUPS; k++) {
            struct wish wishes[ROWS];

            for (int row = 0; row < ROWS; row++)
                wishes[row] = (struct wish){.time_ns = NOON + (i * GROUPS + k) * ROWS + row,
                                            .service = row % 2 ? "one" : "two",
                                            .pod = row % 3 ? "a" : "b",
                                            .stacks = 300,
                                            .first_stack = (uint32_t)k * 100};
            make_group(&r->w, &r->groups[k], 15, wishes, ROWS);
            r->groups[k].id = (uint64_t)k + 1;
            r->groups[k].boot = (uint64_t)i + 1000;
        }
    }
    for (int i = 0; i < n; i++)
        assert_int_equal(uv_thread_create(&threads[i], run_replica, &replicas[i]), 0);
    for (int i = 0; i < n; i++) {
        uv_thread_join(&threads[i]);
        assert_true(replicas[i].opened);
        assert_int_equal(uv_loop_close(&replicas[i].w.loop), 0);
        assert_int_equal(atomic_load(&replicas[i].w.errors), 0);
        again += replicas[i].again;
        for (int k = 0; k < GROUPS; k++)
            free_group(&replicas[i].groups[k]);
    }
    return again;
}

static void ten_replicas_start_at_once(void **state)
{
    struct world *w = *state;

    world_close(w);
    use_database(0, NULL);
    run_replicas(w, REPLICAS_MAX);
    world_open(w);
    assert_string_equal(ask("SELECT count(*) FROM profile"), "960");
    assert_int_equal(count(w, NOON, NOON + 500), 500);
    assert_string_equal(ask("SELECT value FROM meta WHERE key = 'version'"), "2");
    assert_string_equal(ask("SELECT count(*) FROM mark"), "120");
}

static void three_replicas_do_not_block_each_other_for_good(void **state)
{
    struct world *w = *state;
    int again;

    world_close(w);
    use_database(0, NULL);
    again = run_replicas(w, 3);
    world_open(w);
    assert_string_equal(ask("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"), "0");
    print_message("deadlocks: 0, groups put again: %d\n", again);
    assert_string_equal(ask("SELECT count(*) FROM profile"), "288");
}

/* The plan of a read statement, with parameters as they are sent. */
static void explain(enum pg_sql which, const char *const *values, int n, char *plan, size_t size)
{
    char info[160];
    struct buf sql = {0};
    PGconn *c;
    PGresult *r;
    size_t len = 0;

    snprintf(info, sizeof info, "host=%s port=%d user=postgres dbname=%s", server.dir, server.port, database);
    c = PQconnectdb(info);
    PQclear(PQexec(c, "ANALYZE"));
    PQclear(PQexec(c, "SET enable_seqscan = off")); /* the tables of a test are small */
    buf_printf(&sql, "EXPLAIN (COSTS OFF) %s", pg_sql[which]);
    buf_char(&sql, '\0');
    r = PQexecParams(c, sql.p, n, NULL, values, NULL, NULL, 0);
    if (PQresultStatus(r) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql.p, PQerrorMessage(c));
    plan[0] = '\0';
    for (int i = 0; i < PQntuples(r) && len < size; i++)
        len += (size_t)snprintf(plan + len, size - len, "%s\n", PQgetvalue(r, i, 0));
    PQclear(r);
    PQfinish(c);
    buf_free(&sql);
}

static void statements_use_indexes_and_prune(void **state)
{
    static const struct {
        enum pg_sql which;
        int n;
        const char *values[4], *index;
        bool prunes;
    } wanted[] = {
        {SQL_GET_WINDOW, 3, {"{5}", "1796040000000000000", "1796040000000000100"}, "service_time_ns_idx", true},
        {SQL_GET_META, 4, {"{5}", "1796040000000000000", "1796040000000000100", "{7}"}, "service_time_ns_idx", true},
        {SQL_GET_META_NEWEST,
         4,
         {"{5}", "1796040000000000000", "1796040000000000100", "{7}"},
         "service_time_ns_idx",
         true},
        {SQL_GET_BODY, 4, {"{5}", "1796040000000000000", "1796040000000000100", "{7}"}, "service_time_ns_idx", true},
        {SQL_GET_BODY_NEWEST,
         4,
         {"{5}", "1796040000000000000", "1796040000000000100", "{7}"},
         "service_time_ns_idx",
         true},
        {SQL_GET_SERIES, 4, {"{5}", "{7}", "2026-11-30", "2026-11-30"}, "_pkey", true},
        {SQL_GET_MARKS, 4, {"{5}", "{7}", "2026-11-30", "2026-11-30"}, "_pkey", true},
        {SQL_GET_HOURS, 4, {"{5}", "2026-11-30", "498900", "498923"}, "service_hour_idx", true},
        {SQL_GET_HOURS, 4, {"{5}", "2026-11-30", "498900", "498923"}, "dirty_hour_pkey", true},
        {SQL_GET_HOUR_META, 2, {"2026-11-30", "{7}"}, "_pkey", true},
        {SQL_GET_HOUR_BODY, 2, {"2026-11-30", "{7}"}, "_pkey", true},
        {SQL_END_HOURS, 4, {"1", "5", "498900", "2026-11-30"}, "service_hour_idx", true},
        {SQL_DROP_DIRTY, 3, {"5", "498900", "{}"}, "dirty_hour_pkey", false},
        {SQL_GET_SYMBOLS, 3, {"5", "2026-11-30", "2026-11-30"}, "_pkey", true},
        {SQL_GET_ATTEMPT, 3, {"5", "6", "7"}, "_pkey", false},
        {SQL_GET_TYPESETS, 1, {"{5}"}, "typeset_pkey", false},
        {SQL_GET_SERVICES, 1, {"p"}, "service_project", false},
        {SQL_GET_SERVICE, 2, {"5", "p"}, "service_", false},
    };
    struct world *w = *state;
    static char plan[65536];
    struct group g;

    for (int day = 0; day < 5; day++)
        for (int i = 0; i < 5; i++)
            put_one(w, &g, day % 2 ? 15 : 7, (struct wish){.time_ns = NOON - day * DAY + i, .content = 3});
    ask("INSERT INTO hour(class, day, service, hour, first_ns, boot, grp, place, about, body) SELECT 7, '2026-11-30',"
        " s, h, h, 1, s, 1, '', '' FROM generate_series(1, 100) s, generate_series(498900, 498923) h");
    for (size_t i = 0; i < COUNTOF(wanted); i++) {
        explain(wanted[i].which, wanted[i].values, wanted[i].n, plan, sizeof plan);
        if (!strstr(plan, wanted[i].index) || strstr(plan, "Seq Scan"))
            fail_msg("no %s in the plan of %s:\n%s", wanted[i].index, pg_sql[wanted[i].which], plan);
        if (wanted[i].prunes && (strstr(plan, "20261129") || strstr(plan, "20261128") || strstr(plan, "20261127")))
            fail_msg("%s looks at other days:\n%s", pg_sql[wanted[i].which], plan);
        if (wanted[i].prunes && !strstr(plan, "20261130"))
            fail_msg("%s does not look at its day:\n%s", pg_sql[wanted[i].which], plan);
    }
}

/* The loop turns on while a put waits for a slow answer. */
static void on_tick(uv_timer_t *t)
{
    int64_t *worst = t->data, now = (int64_t)uv_hrtime(), late = now - worst[1];

    if (worst[1] && late > worst[0])
        worst[0] = late;
    worst[1] = now;
}

static void the_loop_is_not_held_up(void **state)
{
    struct world *w = *state;
    int64_t worst[2] = {0, 0};
    uv_timer_t tick;
    struct group g;

    uv_timer_init(&w->loop, &tick);
    tick.data = worst;
    make_group(w, &g, 15, &(struct wish){.time_ns = NOON}, 1);
    server_ask(database, "SELECT 1");
    uv_timer_start(&tick, on_tick, 2, 2);
    put_group(w, &g); /* makes the day's partitions, too */
    free_group(&g);
    uv_timer_stop(&tick);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_true(worst[0] > 0);
    assert_true(worst[0] < 50 * 1000000);
}

static void addresses(void **state)
{
    struct world *w = *state;
    struct fault f = {0};
    struct str rest;

    assert_ptr_equal(backend_find(STR("postgres://h/d"), &rest), backend_find(STR("postgresql://h/d"), &rest));
    assert_true(str_eq(rest, STR("//h/d")));
    assert_null(backend_find(STR("postgresqlx://h/d"), &rest));
    assert_null(w->backend->write->open(&w->host, STR("//u:secret@h/d?nonsense=1"), &f));
    assert_null(strstr(f.text, "secret"));
}

/* Somebody who takes the connection and says nothing. */
static void a_silent_server_is_not_waited_for(void **state)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t len = sizeof a;
    struct world *w = *state;
    char silent[96];
    struct group g;
    int64_t began;

    world_close(w);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    snprintf(silent, sizeof silent, "postgres://postgres@127.0.0.1:%d/x", ntohs(a.sin_port));
    conformance_address = silent;
    began = milliseconds();
    world_open(w);
    assert_in_range(milliseconds() - began, 2000, 4500);
    make_group(w, &g, 15, &(struct wish){.time_ns = NOON}, 1);
    began = milliseconds();
    put_group(w, &g);
    assert_int_equal(g.results[0], PUT_AGAIN);
    assert_true(milliseconds() - began < 2000);
    free_group(&g);
    world_close(w);
    close(fd);
    conformance_address = address;
    world_open(w);
}

static void a_name_that_nobody_knows(void **state)
{
    struct world *w = *state;
    struct group g;

    world_close(w);
    conformance_address = "postgres://postgres@no-such-host.invalid/x";
    world_open(w);
    assert_false(w->backend->write->healthy(w->store));
    make_group(w, &g, 15, &(struct wish){.time_ns = NOON}, 1);
    put_group(w, &g);
    assert_int_equal(g.results[0], PUT_AGAIN);
    free_group(&g);
    world_close(w);
    conformance_address = address;
    world_open(w);
}

/* Somebody drops all tables; they are made again without a restart. */
static void a_schema_that_is_gone_is_made_again(void **state)
{
    struct world *w = *state;
    struct group g;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    ask("SET client_min_messages = warning; DROP SCHEMA public CASCADE");
    ask("CREATE SCHEMA public");
    make_group(w, &g, 15, &(struct wish){.time_ns = NOON + 1}, 1);
    put_until_stored(w, &g);
    free_group(&g);
    assert_int_equal(count(w, NOON, NOON + 2), 1);
    assert_true(blocks(w, "svc") >= 1);
}

/* A standby, to which a name led by mistake: nothing is written, and when it may be, it is. */
static void a_server_that_may_not_be_written_to(void **state)
{
    struct world *w = *state;
    struct group g;
    char sql[96];

    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    snprintf(sql, sizeof sql, "ALTER DATABASE %s SET default_transaction_read_only = on", database);
    server_ask("postgres", sql);
    server_ask("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 't%'");
    make_group(w, &g, 15, &(struct wish){.time_ns = NOON + 1}, 1);
    put_group(w, &g);
    assert_int_equal(g.results[0], PUT_AGAIN);
    snprintf(sql, sizeof sql, "ALTER DATABASE %s RESET default_transaction_read_only", database);
    server_ask("postgres", sql);
    put_until_stored(w, &g);
    free_group(&g);
    assert_int_equal(count(w, NOON, NOON + 2), 2);
}

#define OWN(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
static const struct CMUnitTest own_tests[] = {
    OWN(projects_and_originals),
    OWN(addresses),
    OWN(what_is_not_ours_is_refused),
    OWN(the_first_version_is_migrated),
    OWN(a_bad_row_fails_itself),
    OWN(another_database_gets_the_symbols_again),
    OWN(a_day_that_another_dropped_is_made_again),
    OWN(days_are_made_ahead_and_dropped_behind),
    OWN(expiry_goes_on_where_it_broke_off),
    OWN(statements_use_indexes_and_prune),
    OWN(the_loop_is_not_held_up),
    OWN(a_blocked_read_can_be_cancelled),
    OWN(ten_replicas_start_at_once),
    OWN(three_replicas_do_not_block_each_other_for_good),
    OWN(cut_connections_lose_nothing),
    OWN(a_hanging_server_is_not_waited_for),
    cmocka_unit_test_setup_teardown(cut_connections_lose_nothing, setup_tcp, teardown),
    cmocka_unit_test_setup_teardown(a_crashed_server_comes_back, setup_tcp, teardown),
    cmocka_unit_test_setup_teardown(cut_connections_lose_nothing, setup_bouncer, teardown),
    OWN(a_silent_server_is_not_waited_for),
    OWN(a_name_that_nobody_knows),
    OWN(a_schema_that_is_gone_is_made_again),
    OWN(a_server_that_may_not_be_written_to),
    OWN(it_starts_while_the_server_is_away),
    OWN(closing_does_not_wait_for_a_server_that_is_away),
};

/* Of conformance, what keeps originals is the embedded store's alone. */
static bool keeps_originals(const char *name)
{
    static const char *const names[] = {"originals_are_kept_to_the_byte", "originals_keep_to_their_budget",
                                        "projects_do_not_see_each_other"};

    for (size_t i = 0; i < COUNTOF(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static int run_conformance(const char *title, CMFixtureFunction with)
{
    struct CMUnitTest tests[64];
    size_t n = 0;

    for (size_t i = 0; i < conformance_n_tests; i++) {
        if (keeps_originals(conformance_tests[i].name))
            continue;
        tests[n] = conformance_tests[i];
        tests[n].setup_func = with;
        tests[n++].teardown_func = teardown;
    }
    return _cmocka_run_group_tests(title, tests, n, NULL, NULL);
}

int main(int argc, char **argv)
{
    int failed;

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);

    server_make();
    failed = run_conformance("conformance: postgres", setup);
    failed += run_conformance("conformance: postgres through pgbouncer", setup_bouncer);
    failed += cmocka_run_group_tests_name("postgres", own_tests, NULL, NULL);
    server_remove();
    return failed;
}
