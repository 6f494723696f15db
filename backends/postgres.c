/*
 * The store's life on the loop: what has happened (a connection came up or went, a batch or a job is done, patience is
 * over) is noted, and then pg_pump does whatever can be done.
 */
#include "backends/postgres.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/postgres_read.h"
#include "backends/postgres_store.h"

enum { FAILED_MS = 5000 };

bool pg_away(const struct sample_store *s)
{
    return !s->prepared || !pg_link_up(s->link);
}

bool pg_given_up(const struct sample_store *s)
{
    return pg_away(s) && uv_now(s->host->loop) >= s->away_since_ms + PG_PATIENCE_MS;
}

static void free_store(struct sample_store *s)
{
    pg_mark_free(s);
    pg_resend_free(s);
    pg_stored_free(s->stored);
    pg_pool_free(s->pool);
    pg_options_free(&s->options);
    free(s->expire.dropped);
    free(s->days);
    free(s);
}

static void on_part_closed(void *ctx)
{
    struct sample_store *s = ctx;
    void (*closed)(void *ctx) = s->closed;
    void *closed_ctx = s->closed_ctx;

    if (--s->open_parts)
        return;
    free_store(s);
    if (closed)
        closed(closed_ctx);
}

static void on_timer_closed(uv_handle_t *h)
{
    on_part_closed(h->data);
}

/* Closes what there is of threads and handles; the last one frees the store. */
static void shut(struct sample_store *s)
{
    s->shutting = true;
    s->open_parts = 1 + (s->packer != NULL) + (s->upkeep != NULL) + (s->link != NULL);
    if (!s->link || pg_away(s))
        atomic_store(&s->hurry, true);
    if (s->packer)
        pg_worker_close(s->packer, on_part_closed, s);
    if (s->upkeep)
        pg_worker_close(s->upkeep, on_part_closed, s);
    if (s->link)
        pg_link_close(s->link, on_part_closed, s);
    uv_close((uv_handle_t *)&s->timer, on_timer_closed);
}

void pg_pump(struct sample_store *s)
{
    if (s->shutting)
        return;
    pg_mark_send(s);
    pg_put_step(s);
    pg_put_settle(s);
    pg_resend_step(s);
    pg_upkeep_expire(s);
    if (s->closing && !s->shutting && s->put.phase == PG_PUT_NONE && !s->marks.sent &&
        (!s->marks.n || pg_given_up(s)) && (!pg_resend_busy(s) || pg_given_up(s)) &&
        (!s->expire.wanted || pg_given_up(s)) && !pg_link_busy(s->link))
        shut(s);
}

static void on_timer(uv_timer_t *t)
{
    pg_pump(t->data);
}

/* To look again once patience with the server is over, at the earliest in the loop's next turn. */
static void arm(struct sample_store *s)
{
    uint64_t now = uv_now(s->host->loop), due = s->away_since_ms + PG_PATIENCE_MS;

    uv_timer_start(&s->timer, on_timer, pg_away(s) && due > now ? due - now : 0, 0);
}

void pg_reconnect(struct sample_store *s)
{
    if (s->shutting)
        return;
    s->away_since_ms = uv_now(s->host->loop);
    s->was_up = false;
    pg_link_reconnect(s->link);
    arm(s);
}

static void on_up(void *ctx)
{
    struct sample_store *s = ctx;

    store_log(s->host, 2, "store=postgres ev=connected");
    s->was_up = true;
    s->failed_ms = 0;
    pg_resend_up(s);
    pg_mark_again(s); /* their commits do not wait for the disk */
    if (!s->prepared)
        pg_upkeep_prepare(s);
    pg_pump(s);
}

static void on_down(void *ctx, const char *why)
{
    struct sample_store *s = ctx;

    /* Of attempts that go on failing only the reasons are told. */
    if (s->was_up || strncmp(why, s->down_why, sizeof s->down_why - 1) != 0)
        store_log(s->host, 1, "store=postgres ev=disconnected why=\"%s\"", why);
    snprintf(s->down_why, sizeof s->down_why, "%s", why);
    pg_pool_drop_idle(s->pool);
    if (s->shutting)
        return;
    if (s->was_up)
        s->away_since_ms = uv_now(s->host->loop);
    s->was_up = false;
    arm(s);
    pg_pump(s);
}

static void on_done(void *ctx, bool ok, const struct pg_fault *f)
{
    struct sample_store *s = ctx;

    if (s->marks.sent)
        pg_mark_done(s, ok, f);
    else if (s->resend.sent)
        pg_resend_done(s, ok, f);
    else
        pg_put_done(s, ok, f);
    pg_pump(s);
}

/* Libpq's own waiting and notions are kept out: Kerberos would ask its servers while the loop waits. */
static bool set_options(struct sample_store *s, struct str rest, struct fault *f)
{
    static const char *const defaults[][2] = {{"fallback_application_name", "flamegate"},
                                              {"client_encoding", "UTF8"},
                                              {"gssencmode", "disable"},
                                              {"keepalives_idle", "30"},
                                              {"tcp_user_timeout", "15000"}};
    struct buf address = {0};
    bool ok;

    buf_str(&address, STR("postgresql:"));
    buf_str(&address, rest);
    buf_char(&address, '\0');
    ok = !address.failed && !pg_options_parse(&s->options, address.p, f);
    buf_free(&address);
    for (size_t i = 0; ok && i < COUNTOF(defaults); i++)
        if (!pg_options_get(&s->options, defaults[i][0]))
            ok = pg_options_set(&s->options, defaults[i][0], defaults[i][1]);
    if (!ok)
        fault_set(f, E_NO_MEMORY, NULL);
    return ok;
}

static bool open_parts(struct sample_store *s, struct fault *f)
{
    static const struct pg_link_events events = {.up = on_up, .down = on_down, .done = on_done};

    s->packer = pg_worker_new(s->host->loop);
    s->upkeep = pg_worker_new(s->host->loop);
    if (s->packer && s->upkeep)
        s->link = pg_link_open(s->host->loop, &s->options, &events, s);
    if (!s->link)
        fault_set(f, E_NO_MEMORY, "cannot start the store's threads");
    return s->link != NULL;
}

/* A server that is away now is no reason not to start; one that must not be written to is. */
static bool prepare(struct sample_store *s, struct fault *f)
{
    struct fault why = {0};
    enum err e = pg_upkeep_prepare_now(s, &why);

    s->prepared = !e;
    if (e == E_INTERNAL) {
        fault_set(f, e, "%s", why.text);
        return false;
    }
    if (e)
        store_log(s->host, 1, "store=postgres ev=away why=\"%s\"", why.text);
    return true;
}

static struct sample_store *postgres_open(const struct store_host *h, struct str address, struct fault *f)
{
    struct sample_store *s = calloc(1, sizeof *s);
    struct hash_key random;

    *f = (struct fault){0};
    if (!s) {
        fault_set(f, E_NO_MEMORY, NULL);
        return NULL;
    }
    s->host = h;
    atomic_init(&s->hurry, false);
    atomic_init(&s->raw_since, INT64_MIN);
    hash_key_random(&random);
    s->writer = hash64(&random, "writer", 6);
    if (!set_options(s, address, f) || !(s->pool = pg_pool_new(&s->options)) || !(s->stored = pg_stored_new(h)) ||
        !prepare(s, f)) {
        fault_set(f, E_NO_MEMORY, NULL);
        free_store(s);
        return NULL;
    }
    uv_update_time(h->loop);
    s->away_since_ms = uv_now(h->loop);
    uv_timer_init(h->loop, &s->timer);
    s->timer.data = s;
    if (open_parts(s, f))
        return s;
    shut(s);
    return NULL;
}

static enum err postgres_migrate(const struct store_host *h, struct str address, int64_t *was, int64_t *is,
                                 struct fault *f)
{
    struct sample_store *s = calloc(1, sizeof *s);
    struct pg_versions v = {0};
    struct pg_call *c = NULL;
    enum err e = E_NO_MEMORY;

    *f = (struct fault){0};
    if (!s)
        return fault_set(f, E_NO_MEMORY, NULL);
    s->host = h;
    if (set_options(s, address, f) && (s->pool = pg_pool_new(&s->options)) && (c = pg_call_take(s->pool, NULL)))
        e = pg_schema_prepare(c, h->key, false, &v, f);
    if (c)
        pg_call_give(c);
    free_store(s);
    *was = v.was;
    *is = v.is;
    return e ? fault_set(f, e, NULL) : E_OK;
}

static void postgres_put(struct sample_store *s, struct group *g)
{
    pg_put_start(s, g);
    pg_put_step(s);
    arm(s);
}

static void postgres_mark(struct sample_store *s, const struct group *g, uint64_t told)
{
    pg_mark_add(s, g, told);
    pg_mark_send(s);
}

static void postgres_expire(struct sample_store *s, int64_t now_ns)
{
    s->expire.wanted = true;
    s->expire.now_ns = now_ns;
    pg_upkeep_expire(s);
}

static void postgres_close(struct sample_store *s, void (*closed)(void *ctx), void *ctx)
{
    s->closing = true;
    s->closed = closed;
    s->closed_ctx = ctx;
    arm(s);
}

/* A failure is forgotten after a while: whoever sends nothing to what is not healthy would never learn that it is. */
static bool postgres_healthy(const struct sample_store *s)
{
    bool failed = s->failed_ms && uv_now(s->host->loop) < s->failed_ms + FAILED_MS;

    return !pg_away(s) && !failed;
}

static int64_t pg_raw_since(const struct sample_store *s)
{
    return atomic_load_explicit(&s->raw_since, memory_order_relaxed);
}

static const struct sample_store_ops write_ops = {
    .scheme = "postgres",
    .open = postgres_open,
    .migrate = postgres_migrate,
    .put = postgres_put,
    .mark = postgres_mark,
    .expire = postgres_expire,
    .close = postgres_close,
    .healthy = postgres_healthy,
};
static const struct sample_reader_ops read_ops = {
    .scan = pg_scan,
    .symbols = pg_symbols,
    .original = pg_original,
    .raw_since = pg_raw_since,
};
const struct backend backend_postgres = {
    .remote = true, .write = &write_ops, .read = &read_ops, .hours = &pg_hours_ops};
