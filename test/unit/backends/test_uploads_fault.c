/* Every allocation of the upload ledger failing in turn, once and from then on: entries are kept, wait, or are counted
 * as lost; never a crash, a leak, or a list that claims to be whole. */
#include "test/oracle/failing_malloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/uploads.h"

enum { ENTRIES = 5 };

static struct world {
    char dir[64], sqlite[128], redis[128];
    struct hash_key key;
} w;

static void on_log(void *ctx, int level, const char *text)
{
    (void)ctx;
    (void)level;
    (void)text;
}

static int set_up(void **state)
{
    (void)state;
    snprintf(w.dir, sizeof w.dir, "/tmp/flamegate-uploads-fault-XXXXXX");
    if (!mkdtemp(w.dir))
        return 1;
    snprintf(w.sqlite, sizeof w.sqlite, "sqlite:%s", w.dir);
    snprintf(w.redis, sizeof w.redis, "redis://%s/nobody-listens", w.dir);
    hash_key_derive(&w.key, STR("test"));
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"uploads.sqlite", "uploads.sqlite-wal", "uploads.sqlite-shm"};
    char path[128];

    (void)state;
    for (size_t i = 0; i < COUNTOF(names); i++) {
        snprintf(path, sizeof path, "%s/%s", w.dir, names[i]);
        unlink(path);
    }
    return rmdir(w.dir);
}

static enum err on_entry(void *ctx, const struct upload_entry *e, struct str packed)
{
    (void)packed;
    *(uint32_t *)ctx += str_eq(e->key, STR("shop"));
    return E_OK;
}

/* One life of a ledger. Returns what it had been given before the failures stopped, or -1 where it did not open. */
static int live(const char *address, const char *project, struct uploads_stats *stats, enum err *listed, uint32_t *n)
{
    struct fault f = {0};
    struct uploads_options o = {
        .data_dir = w.dir, .key = &w.key, .writer = 1, .keep = 1000, .queue_bytes = 1 << 20, .log = on_log};
    struct uploads *u = uploads_open(&o, str_of(address), &f);

    if (!u) {
        assert_int_equal(f.err, E_NO_MEMORY);
        return -1;
    }
    for (int i = 0; i < ENTRIES; i++) {
        struct upload_entry e = {.key = STR("shop"), .time_ns = i};
        uploads_add(u, str_of(project), &e);
    }
    *n = 0;
    *listed = uploads_list(u, str_of(project), on_entry, n, &f);
    fail_at = -1;
    uploads_stats(u, stats);
    uploads_close(u);
    return ENTRIES;
}

static uint32_t count_kept(const char *project)
{
    struct uploads_options o = {
        .data_dir = w.dir, .key = &w.key, .writer = 2, .keep = 1000, .queue_bytes = 1 << 20, .log = on_log};
    struct fault f = {0};
    struct uploads *u = uploads_open(&o, str_of(w.sqlite), &f);
    uint32_t n = 0;

    assert_non_null(u);
    assert_int_equal(uploads_list(u, str_of(project), on_entry, &n, &f), E_OK);
    uploads_close(u);
    return n;
}

static void test_sqlite(void **state)
{
    (void)state;
    for (int pass = 0; pass < 2; pass++) {
        bool more = true;

        for (long at = 0; more; at++) {
            struct uploads_stats stats = {0};
            enum err listed = E_OK;
            char project[32];
            uint32_t n = 0;

            snprintf(project, sizeof project, "p%d-%ld", pass, at);
            calls = 0;
            sticky = pass;
            fail_at = at;
            int added = live(w.sqlite, project, &stats, &listed, &n);
            fail_at = -1;
            more = calls > at;
            assert_true(at < 200);
            if (added < 0)
                continue;
            assert_true(listed == E_OK || listed == E_NO_MEMORY || listed == E_STORE_DOWN);
            uint32_t kept = count_kept(project);
            assert_true(kept + stats.dropped == ENTRIES); /* what waited was written at the close */
            assert_true(listed != E_OK || n <= kept);
        }
    }
}

static void test_redis(void **state)
{
    (void)state;
    bool more = true;

    for (long at = 0; more && at < 40; at++) {
        struct uploads_stats stats = {0};
        enum err listed = E_OK;
        uint32_t n = 0;

        calls = 0;
        sticky = true;
        fail_at = at;
        int added = live(w.redis, "p", &stats, &listed, &n);
        fail_at = -1;
        more = added < 0; /* from there on it only waits for a Redis, for seconds */
        if (added >= 0)
            assert_true(listed != E_OK && n == 0);
    }
    assert_false(more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sqlite), cmocka_unit_test(test_redis)};

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
