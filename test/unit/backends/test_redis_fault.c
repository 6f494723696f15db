/*
 * Every allocation of the share store in Redis failing in turn, once and from then on, against a real server: minutes
 * that could not be put are put the next time, a run without memory leaves nothing behind for the one after it, and
 * opening says that there was none; never a crash or a leak. (Hiredis's own are behind the wrapping.)
 */
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
#include "test/oracle/failing_malloc.h"

enum { MINUTES = 3 };
static const int64_t MINUTE_NS = INT64_C(60000000000);

static struct world {
    char dir[64], socket[96];
    pid_t server;
    struct hash_key key;
    struct redis_address address;
    struct redis_link *link;
    struct redis_minutes minutes;
    struct arena *arena;
    uint64_t asked;
    int64_t answers[4];
} w;

static int set_up(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    snprintf(w.dir, sizeof w.dir, "/tmp/flamegate-redis-XXXXXX");
    if (!mkdtemp(w.dir))
        return 1;
    snprintf(w.socket, sizeof w.socket, "%s/socket", w.dir);
    w.server = fork();
    if (w.server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)!freopen("/dev/null", "w", stdout);
        execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", w.socket, "--save", "", (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 500 && access(w.socket, F_OK) != 0; i++)
        usleep(10000);
    usleep(50000);
    hash_key_derive(&w.key, STR("test"));
    snprintf(w.address.host, sizeof w.address.host, "%s", w.socket);
    return access(w.socket, F_OK);
}

static int tear_down(void **state)
{
    (void)state;
    kill(w.server, SIGKILL);
    waitpid(w.server, NULL, 0);
    unlink(w.socket);
    return rmdir(w.dir);
}

static int set_up_case(void **state)
{
    (void)state;
    w.arena = arena_new(SIZE_MAX);
    w.link = redis_link_new(&w.address, 2000);
    return !w.arena || !w.link || !redis_minutes_init(&w.minutes, &w.key);
}

static int tear_down_case(void **state)
{
    (void)state;
    redis_minutes_free(&w.minutes);
    redis_link_free(w.link);
    arena_free(w.arena);
    return 0;
}

static struct record *made(int minute)
{
    const struct recipe recipe = {
        .seed = 7, .functions = 20, .stacks = 30, .depth = 6, .sets = 1, .samples = 30, .types = 1};
    struct record_origin o = {.format = STR("pprof")};
    struct profile *p = made_profile(w.arena, &recipe);

    p->series.project = STR("p");
    p->series.service = STR("s");
    p->time_ns = minute * MINUTE_NS;
    struct record *r = record_seal(p, &o, &w.key);
    assert_non_null(r);
    return r;
}

static void add(uint64_t group)
{
    for (int i = 0; i < MINUTES; i++) {
        struct record *r = made(i);

        assert_true(redis_minutes_add(&w.minutes, r, (struct attempt){.boot = 1, .group = group}, MINUTE_NS));
        record_free(r);
    }
}

static enum err on_answer(void *ctx, unsigned number, const struct redis_reply *r)
{
    (void)ctx;
    assert_false(redis_is_error(r));
    w.answers[number] = (int64_t)redis_items(r);
    w.asked++;
    return E_OK;
}

/* Answers belong to what was asked: nothing of an earlier run is in the way. */
static int64_t keys(void)
{
    struct fault f = {0};

    w.asked = 0;
    REDIS_COMMAND(w.link, STR("KEYS"), STR("*"));
    for (int i = 0; redis_run(w.link, on_answer, NULL, &f) != E_OK; i++) {
        assert_true(i < 50);
        usleep(20000); /* a connection that was lost is not made again at once */
        REDIS_COMMAND(w.link, STR("KEYS"), STR("*"));
    }
    assert_int_equal(w.asked, 1);
    return w.answers[0];
}

static void empty(void)
{
    struct fault f = {0};

    (void)keys();
    REDIS_COMMAND(w.link, STR("FLUSHALL"));
    assert_int_equal(redis_run(w.link, NULL, NULL, &f), E_OK);
}

static void flushing(void **state)
{
    int failed = 0;

    (void)state;
    for (int pass = 0; pass < 2; pass++) {
        bool more = true;

        for (long at = 0; more; at++) {
            uint64_t flushed = 0;
            struct fault f = {0};
            bool left = false;
            enum err e;

            empty();
            add((uint64_t)at);
            fail_from(at, pass);
            e = redis_minutes_flush(&w.minutes, w.link, &flushed, &left, &f);
            more = fail_no_more() > at;
            assert_int_equal(flushed, e ? 0 : MINUTES);
            assert_int_equal(w.minutes.n_changed, e ? MINUTES : 0);
            assert_true(e == E_OK || e == E_NO_MEMORY);
            assert_int_equal(keys(), e ? 0 : MINUTES);
            failed += e != E_OK;
            if (e)
                assert_int_equal(redis_minutes_flush(&w.minutes, w.link, &flushed, &left, &f), E_OK);
            assert_true(flushed == MINUTES && !left && keys() == MINUTES);
            assert_true(at < 100);
        }
    }
    assert_true(failed >= 4);
}

/* What could not be added is not there, or all of it is: other minutes are what they were. */
static void adding(void **state)
{
    struct record *r = made(0);

    (void)state;
    for (int pass = 0; pass < 2; pass++) {
        bool more = true, ok = false;

        for (long at = 0; more; at++) {
            fail_from(at, pass);
            ok = redis_minutes_add(&w.minutes, r, (struct attempt){.boot = 1, .group = (uint64_t)at}, MINUTE_NS);
            more = fail_no_more() > at;
            assert_true(more || ok);
            assert_true(at < 1000);
        }
    }
    record_free(r);
}

static void on_log(void *ctx, int level, const char *text)
{
    (void)ctx;
    (void)level;
    assert_true(text[0]);
}

static void on_account(void *ctx, const char *account, int64_t delta)
{
    (void)account;
    atomic_fetch_add((atomic_llong *)ctx, delta);
}

/* The whole store, its thread too, while memory is short now and then; it ends well, and owes nothing. */
static void serving(void **state)
{
    atomic_llong charged = 0;
    struct store_host host = {
        .key = &w.key, .minutes_memory = 1 << 20, .log = on_log, .account = on_account, .ctx = &charged};
    char address[128];
    bool more = true;

    (void)state;
    snprintf(address, sizeof address, "//%s", w.socket);
    for (long at = 0; more; at++) {
        struct share_store *s;
        struct fault f = {0};

        fail_from(at, at % 2);
        s = share_store_redis.open(&host, str_of(address), &f);
        more = fail_no_more() > at && at < 12;
        assert_true(s || f.err == E_NO_MEMORY);
        if (!s)
            continue;
        const struct share_of of = {STR("p"), STR("s"), STR("t")};
        struct share rows[] = {{1, 2, 3}};
        struct shares hour = {rows, 1, 3, 9};
        struct record *r = made((int)(at % MINUTES));

        f = (struct fault){0};
        fail_from(at, false);
        share_store_redis.add(s, r, (struct attempt){.boot = 1, .group = (uint64_t)at});
        (void)!share_store_redis.put_hour(s, &of, 1, &hour, 1, &f);
        share_store_redis.close(s);
        fail_no_more();
        assert_int_equal(atomic_load(&charged), 0);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up_case, tear_down_case)

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(flushing), CASE(adding), CASE(serving)};

    return cmocka_run_group_tests_name("redis, no memory", tests, set_up, tear_down);
}
