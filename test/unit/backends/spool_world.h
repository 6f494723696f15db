/*
 * A spool around a store that does as the test says: answers at once, turns everything away, keeps a group until it is
 * let go, calls itself away; and remembers which attempts it has stored, with what body, and which marks.
 */
#ifndef TEST_UNIT_BACKENDS_SPOOL_WORLD_H
#define TEST_UNIT_BACKENDS_SPOOL_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/spool_store.h"
#include "test/oracle/made_profile.h"

enum { PLACES = 8, GROUPS_MAX = 256, DAY_0 = 20787, AFTER_MS = 30, PATIENCE_MS = 8000 };
enum inner_mode { STORES, TURNS_AWAY, HOLDS };

struct sample_store {
    struct group *held;
    enum inner_mode mode;
    bool away;
    uv_timer_t turn;
    int puts;
    uint64_t n_stored[GROUPS_MAX]; /* how often, by group */
    uint64_t bodies[GROUPS_MAX][PLACES], told[GROUPS_MAX];
    int marks[GROUPS_MAX];
    int order[4 * GROUPS_MAX], n_order; /* groups as they were stored */
    int bad_place;                      /* -1: none */
    uint64_t refused_group;             /* 0: none */
    int refusals;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

struct spool_world {
    uv_loop_t loop;
    struct store_host host;
    struct hash_key key;
    char dir[64], spool_dir[80];
    uint64_t max_bytes;
    struct sample_store inner;
    struct sample_store *spool;
    uint64_t boot;
    bool closed;
    int dones, lines;
    atomic_llong account;
    struct group group;
    struct record *given[PLACES]; /* what the group was put with */
};

static uint64_t body_hash(const struct spool_world *w, const struct record *r)
{
    return hash64(&w->key, r->body.p, r->body.len) ^ r->symbols->n_stacks ^ (uint64_t)r->time_ns;
}

static struct spool_world *world_of(struct sample_store *inner)
{
    return (struct spool_world *)((char *)inner - offsetof(struct spool_world, inner));
}

static void store_group(struct sample_store *s, struct group *g)
{
    struct spool_world *w = world_of(s);

    assert_true(g->id < GROUPS_MAX && g->n <= PLACES);
    s->n_stored[g->id]++;
    s->order[s->n_order++ % COUNTOF(s->order)] = (int)g->id;
    for (uint16_t i = 0; i < g->n; i++) {
        uint64_t hash = body_hash(w, g->records[i]);

        assert_true(!s->bodies[g->id][i] || s->bodies[g->id][i] == hash);
        s->bodies[g->id][i] = hash;
    }
}

/* Ends the put under way. */
static void inner_answer(struct sample_store *s, bool stored)
{
    struct group *g = s->held;

    assert_non_null(g);
    s->held = NULL;
    if (stored)
        store_group(s, g);
    for (uint16_t i = 0; i < g->n; i++)
        g->results[i] = i == s->bad_place ? PUT_BAD : stored ? PUT_STORED : PUT_AGAIN;
    g->done(g);
}

static void on_turn(uv_timer_t *t)
{
    struct sample_store *s = t->data;

    bool refused = s->held && s->held->id == s->refused_group;

    s->refusals += refused;
    if (s->held && s->mode != HOLDS)
        inner_answer(s, s->mode == STORES && !refused);
}

static void inner_put(struct sample_store *s, struct group *g)
{
    assert_null(s->held);
    s->held = g;
    s->puts++;
    uv_timer_start(&s->turn, on_turn, 0, 0);
}

static void inner_mark(struct sample_store *s, const struct group *g, uint64_t told)
{
    s->told[g->id] = s->marks[g->id]++ ? s->told[g->id] & told : told;
}

static void inner_expire(struct sample_store *s, int64_t now_ns)
{
    (void)s;
    (void)now_ns;
}

static void on_turn_closed(uv_handle_t *h)
{
    struct sample_store *s = h->data;

    s->closed(s->closed_ctx);
}

static void inner_close(struct sample_store *s, void (*closed)(void *ctx), void *ctx)
{
    assert_null(s->held);
    s->closed = closed;
    s->closed_ctx = ctx;
    uv_close((uv_handle_t *)&s->turn, on_turn_closed);
}

static bool inner_healthy(const struct sample_store *s)
{
    return !s->away;
}

static const struct sample_store_ops inner_ops = {
    .scheme = "fake",
    .put = inner_put,
    .mark = inner_mark,
    .expire = inner_expire,
    .close = inner_close,
    .healthy = inner_healthy,
};

static void on_log(void *ctx, int level, const char *text)
{
    struct spool_world *w = ctx;

    (void)level;

    assert_true(text[0]);
    w->lines++;
}

static void on_account(void *ctx, const char *account, int64_t delta)
{
    struct spool_world *w = ctx;

    (void)account;
    atomic_fetch_add(&w->account, delta);
}

static bool try_open(struct spool_world *w, struct fault *f)
{
    struct spool_options o = {.dir = w->spool_dir, .after_ms = AFTER_MS, .max_bytes = w->max_bytes};

    uv_update_time(&w->loop);
    w->spool = spool_open(&w->host, &o, &inner_ops, &w->inner, f);
    if (w->spool)
        ((struct spool *)w->spool)->opened_ms -= AFTER_MS; /* the store has had its time to connect */
    return w->spool;
}

static void world_open(struct spool_world *w)
{
    struct fault f = {0};

    w->boot++;
    uv_timer_init(&w->loop, &w->inner.turn);
    w->inner.turn.data = &w->inner;
    if (!try_open(w, &f))
        fail_msg("%s", f.text);
}

static void on_closed(void *ctx)
{
    struct spool_world *w = ctx;

    w->closed = true;
}

static void world_close(struct spool_world *w)
{
    w->closed = false;
    spool_ops.close(w->spool, on_closed, w);
    while (!w->closed)
        uv_run(&w->loop, UV_RUN_ONCE);
    w->spool = NULL;
    assert_int_equal(atomic_load(&w->account), 0);
}

static int spool_setup(void **state)
{
    struct spool_world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    assert_int_equal(uv_loop_init(&w->loop), 0);
    snprintf(w->dir, sizeof w->dir, "/tmp/flamegate-spool-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(w->spool_dir, sizeof w->spool_dir, "%s/spool", w->dir);
    hash_key_derive(&w->key, STR("spool"));
    w->host = (struct store_host){
        .loop = &w->loop, .data_dir = w->dir, .key = &w->key, .log = on_log, .account = on_account, .ctx = w};
    w->max_bytes = 64 << 20;
    w->inner.bad_place = -1;
    world_open(w);
    *state = w;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static int spool_teardown(void **state)
{
    struct spool_world *w = *state;

    if (w->spool)
        world_close(w);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    assert_int_equal(nftw(w->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    free(w);
    return 0;
}

static struct record *make_record(struct spool_world *w, uint64_t seed)
{
    struct arena *a = arena_new(SIZE_MAX);
    struct recipe recipe = {
        .seed = seed, .functions = 20, .stacks = 30, .depth = 8, .sets = 3, .samples = 60, .types = 2};
    struct record_origin o = {.format = STR("pprof"), .content_id = {seed, seed}};

    assert_non_null(a);
    struct profile *p = made_profile(a, &recipe);
    p->time_ns = DAY_0 * 86400 * INT64_C(1000000000) + (int64_t)seed;
    struct record *r = record_seal(p, &o, &w->key);
    assert_non_null(r);
    arena_free(a);
    return r;
}

static void on_done(struct group *g)
{
    struct spool_world *w = g->owner;

    w->dones++;
}

/* Hands group `id` with n records to the spool. */
static void start_put(struct spool_world *w, uint64_t id, uint16_t n)
{
    w->group =
        (struct group){.n = n, .class_days = 15, .day = DAY_0, .id = id, .boot = w->boot, .done = on_done, .owner = w};
    for (uint16_t i = 0; i < n; i++)
        w->group.records[i] = w->given[i] = make_record(w, w->boot << 32 | id << 8 | i);
    uv_update_time(&w->loop);
    spool_ops.put(w->spool, &w->group);
}

/* Until its answer; the records are freed. */
static enum put_result end_put(struct spool_world *w)
{
    int before = w->dones;
    uint64_t hashes[PLACES];

    for (uint16_t i = 0; i < w->group.n; i++)
        hashes[i] = body_hash(w, w->given[i]);
    for (uint64_t until = uv_hrtime() / 1000000 + PATIENCE_MS; w->dones == before;) {
        assert_true(uv_hrtime() / 1000000 < until);
        uv_run(&w->loop, UV_RUN_ONCE);
    }
    for (uint16_t i = 0; i < w->group.n; i++) {
        assert_int_equal(body_hash(w, w->group.records[i]), hashes[i]); /* copies, maybe, but equal ones */
        record_free(w->group.records[i]);
    }
    return w->group.results[0];
}

static enum put_result put(struct spool_world *w, uint64_t id, uint16_t n)
{
    start_put(w, id, n);
    return end_put(w);
}

static struct spool_stats stats_of(struct spool_world *w)
{
    struct spool_stats s;

    spool_stats(w->spool, &s);
    return s;
}

#define UNTIL(w, condition)                                                                                            \
    for (uint64_t until_ = uv_hrtime() / 1000000 + PATIENCE_MS; !(condition);) {                                       \
        assert_true(uv_hrtime() / 1000000 < until_);                                                                   \
        uv_run(&(w)->loop, UV_RUN_ONCE);                                                                               \
    }

#endif
