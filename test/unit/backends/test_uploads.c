/* The upload ledger over each of its stores, a real Redis among them: what is added is listed, by project, capped by
 * kind, after reopening, and past a store that was away; and entries as bytes. */
#include "backends/uploads.h"

#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <uv.h>

enum { KEEP = 500, QUEUE = 256 << 10 };

static struct world {
    char dir[64], redis[128], sqlite[128];
    pid_t server;
    struct hash_key key;
    atomic_int away, connected;
} w;

static void on_log(void *ctx, int level, const char *text)
{
    (void)ctx;
    if (strstr(text, "ev=away")) {
        assert_int_equal(level, 1);
        w.away++;
    } else {
        assert_non_null(strstr(text, "ev=connected"));
        w.connected++;
    }
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
               "no", (char *)NULL);
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
    snprintf(w.dir, sizeof w.dir, "/tmp/flamegate-uploads-XXXXXX");
    if (!mkdtemp(w.dir))
        return 1;
    snprintf(w.redis, sizeof w.redis, "redis://%s/socket", w.dir);
    snprintf(w.sqlite, sizeof w.sqlite, "sqlite:%s/data", w.dir);
    hash_key_derive(&w.key, STR("test"));
    start_server();
    return 0;
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *f)
{
    (void)st;
    (void)kind;
    (void)f;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    kill_server();
    return nftw(w.dir, drop, 8, FTW_DEPTH | FTW_PHYS);
}

static struct uploads *open_at(const char *address, uint64_t writer, uint32_t keep)
{
    struct fault f = {0};
    struct uploads_options o = {
        .data_dir = "/nowhere", .key = &w.key, .writer = writer, .keep = keep, .queue_bytes = QUEUE, .log = on_log};
    struct uploads *u = uploads_open(&o, str_of(address), &f);

    if (!u)
        fail_msg("%s", f.text);
    return u;
}

static void add(struct uploads *u, const char *project, enum upload_verdict verdict, int64_t time_ns)
{
    struct upload_entry e = {
        .verdict = verdict, .time_ns = time_ns, .status = 200, .key = STR("shop"), .n_services = 1};

    e.services[0] = STR("checkout");
    uploads_add(u, str_of(project), &e);
}

struct seen {
    uint32_t n, of[UPLOAD_VERDICTS];
    int64_t first[UPLOAD_VERDICTS], last[UPLOAD_VERDICTS]; /* in the order of the list */
};

static enum err on_seen(void *ctx, const struct upload_entry *e, struct str packed)
{
    struct seen *s = ctx;

    assert_true(packed.len > 0);
    assert_true(str_eq(e->key, STR("shop")));
    if (s->of[e->verdict]++ == 0)
        s->first[e->verdict] = e->time_ns;
    s->last[e->verdict] = e->time_ns;
    s->n++;
    return E_OK;
}

static struct seen list(struct uploads *u, const char *project)
{
    struct seen s = {0};
    struct fault f = {0};

    if (uploads_list(u, str_of(project), on_seen, &s, &f) != E_OK)
        fail_msg("%s", f.text);
    return s;
}

static void check_store(const char *address)
{
    struct uploads *u = open_at(address, 1, KEEP);
    struct seen s = list(u, "a");

    assert_int_equal(s.n, 0);
    add(u, "a", VERDICT_ACCEPTED, 1);
    add(u, "a", VERDICT_REFUSED, 2);
    add(u, "b", VERDICT_CUT, 3);
    s = list(u, "a"); /* at once: it waits for what was added before */
    assert_int_equal(s.n, 2);
    assert_int_equal(s.of[VERDICT_ACCEPTED] + s.of[VERDICT_REFUSED], 2);
    assert_int_equal(list(u, "b").of[VERDICT_CUT], 1);
    assert_int_equal(list(u, "").n, 0);
    uploads_close(u);

    /* Another process, at the same time as a third. */
    u = open_at(address, 2, KEEP);
    struct uploads *v = open_at(address, 3, KEEP);
    assert_int_equal(list(u, "a").n, 2);
    add(v, "a", VERDICT_PARTIAL, 4);
    assert_int_equal(list(v, "a").n, 3);
    assert_int_equal(list(u, "a").n, 3);
    uploads_close(v);

    /* The newest of each kind stay. */
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2 * KEEP / 3; i++)
            add(u, "a", VERDICT_FAILED, 10 + round * KEEP + i);
        (void)list(u, "a");
    }
    s = list(u, "a");
    assert_int_equal(s.of[VERDICT_ACCEPTED], 1);
    assert_int_equal(s.of[VERDICT_REFUSED], 0);
    assert_true(s.of[VERDICT_FAILED] >= KEEP && s.of[VERDICT_FAILED] <= KEEP + KEEP / 2);
    assert_int_equal(s.first[VERDICT_FAILED], 10 + 2 * KEEP + 2 * KEEP / 3 - 1);
    assert_int_equal(list(u, "b").n, 1);
    struct uploads_stats stats;
    uploads_stats(u, &stats);
    assert_int_equal(stats.kept, 2 * KEEP / 3 * 3);
    assert_true(stats.healthy && !stats.dropped && !stats.failed && !stats.waiting);
    uploads_close(u);
}

static void test_sqlite(void **state)
{
    (void)state;
    check_store(w.sqlite);
}

static void test_redis(void **state)
{
    (void)state;
    check_store(w.redis);
}

static void test_none(void **state)
{
    const char *const addresses[] = {"null:", "sqlite:/nowhere", "redis:", ""};

    (void)state;
    for (size_t i = 0; i < COUNTOF(addresses); i++) {
        struct uploads *u = open_at(addresses[i], 1, i == 0 || !addresses[i][0] ? KEEP : 0);
        struct uploads_stats stats;

        assert_string_equal(uploads_scheme(u), "null");
        assert_int_equal(uploads_keep(u), 0);
        add(u, "a", VERDICT_ACCEPTED, 1);
        assert_int_equal(list(u, "a").n, 0);
        uploads_stats(u, &stats);
        assert_int_equal(stats.kept + stats.dropped + stats.waiting, 0);
        uploads_close(u);
    }
}

static uint64_t waiting(struct uploads *u, uint64_t *dropped)
{
    struct uploads_stats s;

    uploads_stats(u, &s);
    *dropped = s.dropped;
    return s.waiting;
}

/* Away: adding goes on, the newest wait, reading says so; back: they are there. */
static void test_redis_away(void **state)
{
    struct uploads *u = open_at(w.redis, 4, 100000);
    struct fault f = {0};
    struct seen s = {0};
    uint64_t dropped;
    uint32_t n = 20000;

    (void)state;
    w.away = w.connected = 0;
    kill_server();
    for (uint32_t i = 0; i < n; i++)
        add(u, "c", VERDICT_ACCEPTED, i + 1);
    for (int i = 0; i < 300 && !w.away; i++)
        usleep(10000);
    assert_int_equal(w.away, 1);
    uint64_t begun = uv_hrtime();
    assert_int_equal(uploads_list(u, STR("c"), on_seen, &s, &f), E_STORE_DOWN);
    assert_true(uv_hrtime() - begun < UINT64_C(2000000000));
    uint64_t left = waiting(u, &dropped);
    assert_true(left > 100 && left < n);
    assert_int_equal(left + dropped, n);
    start_server();
    for (int i = 0; i < 500 && waiting(u, &dropped); i++)
        usleep(10000);
    assert_int_equal(w.connected, 1);
    assert_int_equal(w.away, 1);
    s = list(u, "c");
    assert_true(s.n >= left - 200); /* the store's own thread may have had some in its hand */
    assert_int_equal(s.first[VERDICT_ACCEPTED], n);
    uploads_close(u);
}

/* A folder that cannot be made: adding goes on; nothing but the ledger suffers. Then it can. */
static void test_sqlite_away(void **state)
{
    char file[96], address[128];
    uint64_t dropped;

    (void)state;
    snprintf(file, sizeof file, "%s/file", w.dir);
    snprintf(address, sizeof address, "sqlite:%s", file);
    fclose(fopen(file, "w"));
    w.away = w.connected = 0;
    struct uploads *u = open_at(address, 5, KEEP);
    add(u, "a", VERDICT_ACCEPTED, 1);
    for (int i = 0; i < 300 && !w.away; i++)
        usleep(10000);
    assert_int_equal(w.away, 1);
    assert_int_equal(waiting(u, &dropped), 1);
    unlink(file);
    for (int i = 0; i < 500 && waiting(u, &dropped); i++)
        usleep(10000);
    assert_int_equal(list(u, "a").n, 1);
    uploads_close(u);

    /* Closing does not wait for ever, and counts nothing as kept. */
    snprintf(address, sizeof address, "sqlite:%s/uploads.sqlite", file);
    u = open_at(address, 6, KEEP);
    add(u, "a", VERDICT_ACCEPTED, 1);
    uint64_t begun = uv_hrtime();
    uploads_close(u);
    assert_true(uv_hrtime() - begun < UINT64_C(8000000000));
}

/* The loop's share of it, with the thread at work beside it. */
static void test_never_blocks(void **state)
{
    struct uploads *u = open_at(w.sqlite, 7, KEEP);
    uint64_t worst = 0, begun = uv_hrtime();
    enum { N = 50000 };

    (void)state;
    for (int i = 0; i < N; i++) {
        uint64_t at = uv_hrtime();
        add(u, "d", VERDICT_REFUSED, i + 1);
        uint64_t took = uv_hrtime() - at;
        worst = took > worst ? took : worst;
    }
    print_message("%.0f ns an entry, at worst %.1f ms\n", (double)(uv_hrtime() - begun) / N, (double)worst / 1e6);
    assert_true((uv_hrtime() - begun) / N < 100000);
    struct seen s = list(u, "d");
    assert_int_equal(s.first[VERDICT_REFUSED], N);
    uploads_close(u);
}

static void fill(struct upload_entry *e)
{
    *e = (struct upload_entry){.writer = UINT64_MAX,
                               .number = 7,
                               .time_ns = -5,
                               .verdict = VERDICT_CUT,
                               .status = 503,
                               .content = 9,
                               .bytes = UINT64_MAX,
                               .inflated = 3,
                               .profiles = 1,
                               .stored = 2,
                               .empty = 3,
                               .refused = 4,
                               .failed = 5,
                               .first_ns = INT64_MIN,
                               .last_ns = INT64_MAX,
                               .key = STR("k"),
                               .reason = STR("r"),
                               .message = STR("\x1b\xff"),
                               .route = STR("push"),
                               .format = STR("f"),
                               .client = STR("c/1"),
                               .name = STR("n{a=b}"),
                               .profile = STR("p"),
                               .n_services = UPLOAD_NAMES_MAX,
                               .n_types = 1,
                               .more_services = 3,
                               .more_types = 4};
    for (int i = 0; i < UPLOAD_NAMES_MAX; i++)
        e->services[i] = STR("service");
    e->types[0] = STR("a:b:c:d:e");
}

static void test_entry(void **state)
{
    struct upload_entry e, back;
    struct buf packed = {0}, again = {0};

    (void)state;
    fill(&e);
    upload_entry_pack(&e, &packed);
    assert_false(packed.failed);
    assert_true(upload_entry_unpack(buf_view(&packed), &back));
    upload_entry_pack(&back, &again);
    assert_true(str_eq(buf_view(&packed), buf_view(&again)));
    assert_int_equal(back.time_ns, -5);
    assert_int_equal(back.first_ns, INT64_MIN);
    assert_true(str_eq(back.services[UPLOAD_NAMES_MAX - 1], STR("service")));
    assert_true(str_eq(back.message, STR("\x1b\xff")));
    /* Anything else is refused or read within its bounds: every cut, every byte changed. */
    for (size_t cut = 0; cut < packed.len; cut++)
        assert_false(upload_entry_unpack((struct str){packed.p, cut}, &back));
    for (size_t at = 0; at < packed.len; at++) {
        char was = packed.p[at];
        packed.p[at] = (char)(was ^ 0xff);
        if (upload_entry_unpack(buf_view(&packed), &back))
            assert_true(back.n_services <= UPLOAD_NAMES_MAX && back.verdict < UPLOAD_VERDICTS);
        packed.p[at] = was;
    }
    packed.p[0] = 2; /* a version to come */
    assert_false(upload_entry_unpack(buf_view(&packed), &back));
    buf_free(&packed);
    buf_free(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_entry),       cmocka_unit_test(test_none),
                                       cmocka_unit_test(test_sqlite),      cmocka_unit_test(test_redis),
                                       cmocka_unit_test(test_redis_away),  cmocka_unit_test(test_sqlite_away),
                                       cmocka_unit_test(test_never_blocks)};

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
