/* The share store in Redis against a real one on a socket of its own: what is added is there, byte by byte, through its
 * death, its emptying and its standing still; and addresses. */
#include "backends/redis_store.h"
#include "test/oracle/made_profile.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/redis.h"

enum { MINUTES = 8, RECORDS = 40 };
static const int64_t MINUTE_NS = INT64_C(60000000000);

static struct world {
    char dir[64], address[128];
    pid_t server;
    struct hash_key key;
    struct store_host host;
    atomic_llong charged;
    struct arena *arena;
    int64_t now_ns;
    struct shares want[MINUTES];
} w;

static void on_log(void *ctx, int level, const char *text)
{
    (void)ctx;
    print_message("level=%d %s\n", level, text);
}

static void on_account(void *ctx, const char *account, int64_t delta)
{
    (void)ctx;
    assert_string_equal(account, "minutes");
    atomic_fetch_add(&w.charged, delta);
}

static void start_server(void)
{
    char socket[96];

    snprintf(socket, sizeof socket, "%s/socket", w.dir);
    unlink(socket);
    w.server = fork();
    assert_true(w.server >= 0);
    if (w.server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)!freopen("/dev/null", "w", stdout);
        execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly",
               "no", "--requirepass", "a made-up/pass", (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 500 && access(socket, F_OK) != 0; i++)
        usleep(10000);
    usleep(50000);
}

static void kill_server(void)
{
    kill(w.server, SIGKILL);
    waitpid(w.server, NULL, 0);
}

static int set_up(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    snprintf(w.dir, sizeof w.dir, "/tmp/flamegate-redis-XXXXXX");
    if (!mkdtemp(w.dir))
        return 1;
    snprintf(w.address, sizeof w.address, "//:a%%20made-up%%2Fpass@%s/socket", w.dir);
    hash_key_derive(&w.key, STR("test"));
    w.host = (struct store_host){.key = &w.key, .minutes_memory = 16 << 20, .log = on_log, .account = on_account};
    start_server();
    return 0;
}

static int tear_down(void **state)
{
    char socket[96];

    (void)state;
    kill_server();
    snprintf(socket, sizeof socket, "%s/socket", w.dir);
    unlink(socket);
    return rmdir(w.dir);
}

static int set_up_case(void **state)
{
    struct timespec t;

    (void)state;
    clock_gettime(CLOCK_REALTIME, &t);
    w.now_ns = (int64_t)t.tv_sec * 1000000000 / MINUTE_NS * MINUTE_NS - 30 * MINUTE_NS;
    w.arena = arena_new(SIZE_MAX);
    memset(w.want, 0, sizeof w.want);
    return !w.arena;
}

static int tear_down_case(void **state)
{
    (void)state;
    arena_free(w.arena);
    assert_int_equal(atomic_load(&w.charged), 0);
    return 0;
}

static struct share_store *open_store(void)
{
    struct fault f = {0};
    struct share_store *s = share_store_redis.open(&w.host, str_of(w.address), &f);

    assert_non_null(s);
    return s;
}

static struct record *made(unsigned seed, int minute)
{
    const struct recipe recipe = {
        .seed = seed, .functions = 50, .stacks = 60, .depth = 12, .sets = 1, .samples = 60, .types = 2};
    struct profile *p = made_profile(w.arena, &recipe);
    struct record_origin o = {.format = STR("pprof"), .content_id = {.hi = seed}};

    p->series.project = STR("p");
    p->series.service = STR("s");
    p->time_ns = w.now_ns + minute * MINUTE_NS + seed;
    struct record *r = record_seal(p, &o, &w.key);
    assert_non_null(r);
    return r;
}

/* The id of the first type, by which everything here is asked for. */
static struct str type_id(void)
{
    struct record *r = made(1, 0);
    struct str id;

    assert_true(arena_str(w.arena, r->types[0].id, &id));
    record_free(r);
    return id;
}

/* Adds records number first..last; what must be there is kept. */
static void add(struct share_store *s, unsigned first, unsigned last)
{
    for (unsigned i = first; i <= last; i++) {
        struct record *r = made(i, (int)(i % MINUTES));
        struct attempt a = {.boot = 7, .group = i, .place = 3};
        struct shares *mine, *want = &w.want[i % MINUTES];
        struct fault f = {0};

        assert_int_equal(shares_of(r, &w.key, w.arena, &mine, &f), E_OK);
        mine[0].check = share_check(7, i, 3);
        assert_int_equal(shares_add(want, &mine[0], w.arena, want, &f), E_OK);
        share_store_redis.add(s, r, a);
    }
}

static enum err on_row(void *ctx, int64_t minute, struct str packed)
{
    struct shares *got = ctx, piece;
    int64_t i = minute - share_minute(w.now_ns);
    struct fault f = {0};

    assert_true(i >= 0 && i < MINUTES);
    assert_int_equal(shares_unpack(packed, w.arena, &piece, &f), E_OK);
    assert_int_equal(shares_add(&got[i], &piece, w.arena, &got[i], &f), E_OK);
    return E_OK;
}

static bool same(const struct shares *a, const struct shares *b)
{
    return a->n == b->n && a->total == b->total && a->check == b->check &&
           (a->n == 0 || memcmp(a->rows, b->rows, a->n * sizeof *a->rows) == 0);
}

static bool all_there(struct share_store *s)
{
    const struct share_of of = {STR("p"), STR("s"), type_id()};
    struct shares got[MINUTES] = {0};
    struct fault f = {0};
    int64_t first = share_minute(w.now_ns);

    if (redis_read_ops.minutes(s, &of, first, first + MINUTES - 1, on_row, got, &f) != E_OK)
        return false;
    for (int i = 0; i < MINUTES; i++)
        if (!same(&got[i], &w.want[i]))
            return false;
    return true;
}

static void wait_for(struct share_store *s)
{
    for (int i = 0; i < 100 && !all_there(s); i++)
        usleep(100000);
    assert_true(all_there(s));
}

static void run(const char *command)
{
    struct redis_address a;
    struct fault f = {0};
    assert_int_equal(redis_address_parse(&a, str_of(w.address), &f), E_OK);
    struct redis_link *l = redis_link_new(&a, 2000);

    REDIS_COMMAND(l, str_of(command));
    assert_int_equal(redis_run(l, NULL, NULL, &f), E_OK);
    redis_link_free(l);
}

static void test_adds_up(void **state)
{
    struct share_store *s = open_store();
    struct share_stats stats;

    (void)state;
    add(s, 1, RECORDS);
    wait_for(s);
    share_store_redis.stats(s, &stats);
    assert_true(stats.healthy && stats.memory > 0 && stats.dropped == 0 && stats.failed == 0);
    add(s, RECORDS + 1, 2 * RECORDS);
    share_store_redis.close(s); /* puts the rest */
    s = open_store();
    wait_for(s);
    add(s, 2 * RECORDS + 1, 3 * RECORDS); /* another writer, the same minutes */
    wait_for(s);
    share_store_redis.close(s);
    run("FLUSHALL");
}

static void test_comes_back(void **state)
{
    struct share_store *s = open_store();
    struct share_stats stats;

    (void)state;
    add(s, 1, RECORDS);
    wait_for(s);
    run("FLUSHALL");
    wait_for(s);
    kill_server();
    add(s, RECORDS + 1, 2 * RECORDS);
    usleep(1500000);
    share_store_redis.stats(s, &stats);
    assert_true(!stats.healthy && stats.failed > 0);
    assert_false(all_there(s));
    start_server();
    wait_for(s);
    share_store_redis.stats(s, &stats);
    assert_true(stats.healthy && stats.emptied == 2);
    kill(w.server, SIGSTOP);
    add(s, 2 * RECORDS + 1, 3 * RECORDS);
    usleep(200000);
    kill(w.server, SIGCONT);
    wait_for(s);
    share_store_redis.close(s);
    run("FLUSHALL");
}

/* Away from the first to the last moment: nothing waits for it, and memory stays under the bound. */
static void test_never_there(void **state)
{
    struct share_stats stats;
    struct share_store *s;

    (void)state;
    kill_server();
    w.host.minutes_memory = 64 << 10;
    s = open_store();
    add(s, 1, 20 * RECORDS);
    for (int i = 0; i < 50; i++) {
        usleep(100000);
        share_store_redis.stats(s, &stats);
        if (stats.failed > 1 && stats.memory <= 64 << 10)
            break;
    }
    assert_true(stats.memory <= 64 << 10);
    share_store_redis.close(s);
    w.host.minutes_memory = 16 << 20;
    start_server();
}

static enum err on_hour(void *ctx, int64_t hour, struct str packed)
{
    struct shares *got = ctx;
    struct fault f = {0};

    assert_int_equal(hour, 4711);
    return shares_unpack(packed, w.arena, got, &f);
}

static void test_hours(void **state)
{
    struct share_store *s = open_store();
    const struct share_of of = {STR("p"), STR("s"), STR("t")}, other = {STR("p"), STR("s2"), STR("t")};
    struct share rows[] = {{1, 2, 3}, {4, 5, 6}};
    struct shares hour = {rows, 2, 7, 99}, got = {0};
    struct fault f = {0};

    (void)state;
    for (int i = 0; i < 50 && !redis_healthy(s); i++)
        usleep(50000);
    assert_int_equal(share_store_redis.put_hour(s, &of, 4711, &hour, 3, &f), E_OK);
    assert_int_equal(redis_read_ops.hours(s, &of, 4700, 4800, on_hour, &got, &f), E_OK);
    assert_true(same(&got, &hour));
    got = (struct shares){0};
    assert_int_equal(redis_read_ops.hours(s, &other, 4700, 4800, on_hour, &got, &f), E_OK);
    assert_int_equal(got.n, 0);
    share_store_redis.close(s);
}

static void test_addresses(void **state)
{
    static const struct {
        const char *text, *host, *user, *password;
        unsigned port, db;
    } good[] = {
        {"//h", "h", "", "", 6379, 0},
        {"//h:1/15", "h", "", "", 1, 15},
        {"//u:p@h", "h", "u", "p", 6379, 0},
        {"//:p%40%2f@h:7", "h", "", "p@/", 7, 0},
        {"//u:a@b@h", "h", "u", "a@b", 6379, 0},
        {"//pass@h/", "h", "", "pass", 6379, 0},
        {"//[::1]:9/2", "::1", "", "", 9, 2},
        {"//[::1]", "::1", "", "", 6379, 0},
        {"///run/redis.sock", "/run/redis.sock", "", "", 6379, 0},
        {"//u:p@/run/r", "/run/r", "u", "p", 6379, 0},
    };
    static const char *const bad[] = {"",          "h",     "/h",        "//",          "//:1",   "//h:0",
                                      "//h:65536", "//h:x", "//h/x",     "//h/9999999", "//[::1", "//[::1]x",
                                      "//h?a",     "//h#a", "//u:%00@h", "//@"};
    struct redis_address a;
    struct fault f;

    (void)state;
    for (size_t i = 0; i < COUNTOF(good); i++) {
        f = (struct fault){0};
        assert_int_equal(redis_address_parse(&a, str_of(good[i].text), &f), E_OK);
        assert_string_equal(a.host, good[i].host);
        assert_string_equal(a.user, good[i].user);
        assert_string_equal(a.password, good[i].password);
        assert_int_equal(a.port, good[i].port);
        assert_int_equal(a.db, good[i].db);
    }
    for (size_t i = 0; i < COUNTOF(bad); i++) {
        f = (struct fault){0};
        if (redis_address_parse(&a, str_of(bad[i]), &f) != E_BAD_INPUT)
            fail_msg("%s is taken", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_adds_up, set_up_case, tear_down_case),
        cmocka_unit_test_setup_teardown(test_comes_back, set_up_case, tear_down_case),
        cmocka_unit_test_setup_teardown(test_never_there, set_up_case, tear_down_case),
        cmocka_unit_test_setup_teardown(test_hours, set_up_case, tear_down_case),
        cmocka_unit_test(test_addresses),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
