/*
 * AWAY -> RESOLVING -> CONNECTING -> UP <-> BUSY, and from each of them back to AWAY, where a timer waits. A poll
 * handle belongs to one socket: it is closed before its connection is finished, and before the next one has a handle.
 */
#include "backends/pg_link.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/pg_resolve.h"

enum { CONNECT_MS = 3000, BACKOFF_FIRST_MS = 50, BACKOFF_MAX_MS = 3000 };

enum link_state { LINK_AWAY, LINK_RESOLVING, LINK_CONNECTING, LINK_UP, LINK_BUSY, LINK_CLOSING };

/* A socket's handle; on the heap, since its closing outlives the connection it was of. */
struct watch {
    uv_poll_t poll;
    struct pg_link *link;
    struct pg_wire *finish; /* once the handle is closed */
    int socket;
};

struct pg_link {
    uv_loop_t *loop;
    struct pg_resolve *resolve;
    uv_timer_t timer; /* back-off, or the deadline of what is under way */
    enum link_state state;
    struct pg_wire *wire;
    struct watch *watch;
    int watches; /* handles not closed yet */
    uint64_t backoff_ms;

    struct pg_batch *batch;
    int statement; /* whose result comes next */
    struct pg_fault fault;
    bool failed;

    struct pg_link_events events;
    void *ctx;
    void (*closed)(void *ctx);
    void *closed_ctx;
    bool resolve_closed, timer_closed;
};

static void on_timer(uv_timer_t *t);
static void on_socket(uv_poll_t *p, int status, int events);

struct pg_statement *pg_batch_add(struct pg_batch *b, const char *sql)
{
    struct pg_statement *s = &b->statements[b->n];

    ASSERT(b->n < PG_BATCH_MAX);
    b->n++;
    *s = (struct pg_statement){.sql = sql};
    return s;
}

void pg_batch_free(struct pg_batch *b)
{
    for (int i = 0; i < b->n; i++)
        pg_statement_free(&b->statements[i]);
    b->n = 0;
}

bool pg_batch_failed(const struct pg_batch *b)
{
    for (int i = 0; i < b->n; i++)
        if (pg_statement_failed(&b->statements[i]))
            return true;
    return false;
}

static void free_when_closed(struct pg_link *l)
{
    void (*closed)(void *ctx) = l->closed;
    void *ctx = l->closed_ctx;

    if (l->watches || !l->resolve_closed || !l->timer_closed)
        return;
    free(l);
    closed(ctx);
}

static void on_watch_closed(uv_handle_t *h)
{
    struct watch *w = h->data;
    struct pg_link *l = w->link;

    pg_wire_finish(w->finish);
    free(w);
    l->watches--;
    if (l->state == LINK_CLOSING)
        free_when_closed(l);
}

/* Closes the handle, and behind it the connection where `finish` says so. */
static void unwatch(struct pg_link *l, struct pg_wire *finish)
{
    struct watch *w = l->watch;

    l->watch = NULL;
    if (!w) {
        pg_wire_finish(finish);
        return;
    }
    w->finish = finish;
    uv_close((uv_handle_t *)&w->poll, on_watch_closed);
}

/* A handle for the connection's socket, whichever that is now. */
static bool watch(struct pg_link *l, int events)
{
    int socket = pg_wire_socket(l->wire);

    if (l->watch && l->watch->socket != socket)
        unwatch(l, NULL);
    if (!l->watch) {
        struct watch *w = socket < 0 ? NULL : calloc(1, sizeof *w);

        if (!w || uv_poll_init(l->loop, &w->poll, socket)) {
            free(w);
            return false;
        }
        w->poll.data = w;
        w->link = l;
        w->socket = socket;
        l->watch = w;
        l->watches++;
    }
    return uv_poll_start(&l->watch->poll, events, on_socket) == 0;
}

static void drop_wire(struct pg_link *l)
{
    unwatch(l, l->wire);
    l->wire = NULL;
}

/* Some noise, so that replicas do not come back all at once. */
static uint64_t next_backoff(struct pg_link *l)
{
    uint64_t ms = l->backoff_ms;

    l->backoff_ms = ms * 2 < BACKOFF_MAX_MS ? ms * 2 : BACKOFF_MAX_MS;
    return ms / 2 + uv_hrtime() / 1000 % (ms / 2 + 1);
}

static void go_away(struct pg_link *l, const char *why)
{
    struct pg_fault f = {0};
    bool busy = l->state == LINK_BUSY;

    snprintf(f.text, sizeof f.text, "%s", why);
    drop_wire(l);
    l->state = LINK_AWAY;
    l->batch = NULL;
    uv_timer_start(&l->timer, on_timer, next_backoff(l), 0);
    l->events.down(l->ctx, f.text);
    if (busy)
        l->events.done(l->ctx, false, &f);
}

static void go_away_broken(struct pg_link *l)
{
    char why[200] = "no memory";

    if (l->wire)
        pg_wire_error(l->wire, why, sizeof why);
    go_away(l, why);
}

static void connect_step(struct pg_link *l)
{
    enum pg_progress p;

    /* libpq may close this socket and open another, even of the same number. */
    if (l->watch)
        uv_poll_stop(&l->watch->poll);
    p = pg_wire_connect(l->wire);
    if (p == PG_READY && watch(l, UV_READABLE)) {
        l->state = LINK_UP;
        uv_timer_stop(&l->timer);
        l->events.up(l->ctx);
    } else if (p == PG_READY || p == PG_BROKEN || !watch(l, p == PG_WRITING ? UV_WRITABLE : UV_READABLE)) {
        go_away_broken(l);
    }
}

static void on_resolved(void *ctx, bool ok, const struct pg_options *to)
{
    struct pg_link *l = ctx;

    if (l->state != LINK_RESOLVING)
        return;
    if (!ok) {
        go_away(l, "the host's name is not known");
        return;
    }
    l->wire = pg_wire_start(to, true);
    l->state = LINK_CONNECTING;
    if (l->wire)
        connect_step(l);
    else
        go_away_broken(l);
}

/* Sends what is left, and watches for room to send only while something is. */
static bool flush(struct pg_link *l)
{
    switch (pg_wire_flush(l->wire)) {
    case PG_WRITING:
        return watch(l, UV_READABLE | UV_WRITABLE);
    case PG_READING:
        return watch(l, UV_READABLE);
    default:
        return false;
    }
}

static void keep_head(struct pg_link *l, const struct pg_result *r)
{
    if (l->statement == 0 && pg_rows(r) == 1)
        snprintf(l->batch->head, sizeof l->batch->head, "%.*s", STR_ARG(pg_bytes(r, 0, 1)));
}

static void end_batch(struct pg_link *l)
{
    struct pg_fault f = l->fault;
    bool ok = !l->failed;

    l->batch = NULL;
    l->state = LINK_UP;
    uv_timer_stop(&l->timer);
    if (ok)
        l->backoff_ms = BACKOFF_FIRST_MS;
    l->events.done(l->ctx, ok, &f);
}

/* Everything that has come. false: the connection is lost. */
static bool receive(struct pg_link *l)
{
    for (;;) {
        struct pg_result *r;

        switch (pg_wire_next(l->wire, &r)) {
        case PG_WAIT:
            return true;
        case PG_ROWS:
            keep_head(l, r);
            break;
        case PG_FAIL:
            if (!l->failed)
                pg_result_fault(l->wire, r, &l->fault);
            l->failed = true;
            pg_result_clear(r);
            if (!r)
                return false;
            continue;
        case PG_GAP:
            l->statement++;
            break;
        case PG_SYNCED:
            end_batch(l);
            return true;
        }
        pg_result_clear(r);
    }
}

static void on_socket(uv_poll_t *p, int status, int events)
{
    struct watch *w = p->data;
    struct pg_link *l = w->link;

    (void)events;
    if (l->watch != w)
        return;
    if (l->state == LINK_CONNECTING) {
        connect_step(l);
        return;
    }
    /* What the server said last is worth reading even where the socket has failed. */
    bool alive = pg_wire_consume(l->wire) && status == 0;

    if (l->state == LINK_BUSY)
        alive = receive(l) && alive;
    if (l->state == LINK_UP && alive)
        alive = flush(l);
    else if (l->state == LINK_BUSY && alive)
        alive = flush(l);
    if (!alive && l->wire)
        go_away_broken(l);
}

static void on_timer(uv_timer_t *t)
{
    struct pg_link *l = t->data;

    switch (l->state) {
    case LINK_AWAY:
        l->state = LINK_RESOLVING;
        uv_timer_start(&l->timer, on_timer, CONNECT_MS, 0);
        pg_resolve_start(l->resolve, on_resolved, l);
        break;
    case LINK_RESOLVING: /* the thread that asks cannot be called off; wait on */
        uv_timer_start(&l->timer, on_timer, CONNECT_MS, 0);
        break;
    case LINK_CONNECTING:
        go_away(l, "no connection within the deadline");
        break;
    case LINK_BUSY:
        go_away(l, "no answer within the deadline");
        break;
    default:
        break;
    }
}

struct pg_link *pg_link_open(uv_loop_t *loop, const struct pg_options *options, const struct pg_link_events *events,
                             void *ctx)
{
    struct pg_link *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->resolve = pg_resolve_new(loop, options);
    if (!l->resolve) {
        free(l);
        return NULL;
    }
    l->loop = loop;
    l->events = *events;
    l->ctx = ctx;
    l->backoff_ms = BACKOFF_FIRST_MS;
    uv_timer_init(loop, &l->timer);
    l->timer.data = l;
    uv_timer_start(&l->timer, on_timer, 0, 0);
    return l;
}

bool pg_link_up(const struct pg_link *l)
{
    return l->state == LINK_UP || l->state == LINK_BUSY;
}

bool pg_link_busy(const struct pg_link *l)
{
    return l->state == LINK_BUSY;
}

void pg_link_run(struct pg_link *l, struct pg_batch *b, uint64_t deadline_ms)
{
    bool sent = true;

    ASSERT(l->state == LINK_UP);
    l->state = LINK_BUSY;
    l->batch = b;
    l->statement = 0;
    l->failed = false;
    l->fault = (struct pg_fault){0};
    b->head[0] = '\0';
    for (int i = 0; i < b->n && sent; i++)
        sent = pg_wire_send(l->wire, &b->statements[i], false);
    sent = sent && pg_wire_sync(l->wire) && flush(l);
    /* What could not be sent is told like what got no answer: by the timer, at once. */
    uv_timer_start(&l->timer, on_timer, sent ? deadline_ms : 0, 0);
}

void pg_link_reconnect(struct pg_link *l)
{
    if (l->state == LINK_UP) {
        drop_wire(l);
        l->state = LINK_AWAY;
        uv_timer_start(&l->timer, on_timer, next_backoff(l), 0);
    }
}

static void on_resolve_closed(void *ctx)
{
    struct pg_link *l = ctx;

    l->resolve_closed = true;
    free_when_closed(l);
}

static void on_timer_closed(uv_handle_t *h)
{
    struct pg_link *l = h->data;

    l->timer_closed = true;
    free_when_closed(l);
}

void pg_link_close(struct pg_link *l, void (*closed)(void *ctx), void *ctx)
{
    ASSERT(l->state != LINK_BUSY && l->state != LINK_CLOSING);
    l->state = LINK_CLOSING;
    l->closed = closed;
    l->closed_ctx = ctx;
    drop_wire(l);
    uv_close((uv_handle_t *)&l->timer, on_timer_closed);
    pg_resolve_close(l->resolve, on_resolve_closed, l);
}
