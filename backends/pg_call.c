/* Waiting with poll(2), in steps, for a connection and for answers; the pool of connections under a lock. */
#include "backends/pg_call.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <uv.h>

enum { STEP_MS = 100, CONNECT_MS = 3000, IDLE_MAX = 4 };

struct pg_pool {
    uv_mutex_t lock;
    const struct pg_options *options;
    struct pg_wire *idle[IDLE_MAX];
    int n;
};

struct pg_call {
    struct pg_pool *pool;
    struct pg_wire *wire; /* NULL: not connected */
    const atomic_bool *cancel;
    bool reused; /* from the pool, and nothing has come over it yet */
};

/* One statement on its way. */
struct run {
    struct pg_call *call;
    const struct pg_statement *statement;
    enum pg_call_how how;
    int64_t until_ms;
    pg_row row;
    void *ctx;
    struct pg_fault *fault;
    bool failed, visited, stopped;
};

struct pg_pool *pg_pool_new(const struct pg_options *o)
{
    struct pg_pool *p = calloc(1, sizeof *p);

    if (p && uv_mutex_init(&p->lock)) {
        free(p);
        return NULL;
    }
    if (p)
        p->options = o;
    return p;
}

static struct pg_wire *take_idle(struct pg_pool *p)
{
    struct pg_wire *w;

    uv_mutex_lock(&p->lock);
    w = p->n ? p->idle[--p->n] : NULL;
    uv_mutex_unlock(&p->lock);
    return w;
}

void pg_pool_drop_idle(struct pg_pool *p)
{
    for (struct pg_wire *w; (w = take_idle(p));)
        pg_wire_finish(w);
}

void pg_pool_free(struct pg_pool *p)
{
    if (!p)
        return;
    pg_pool_drop_idle(p);
    uv_mutex_destroy(&p->lock);
    free(p);
}

struct pg_call *pg_call_take(struct pg_pool *p, const atomic_bool *cancel)
{
    struct pg_call *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->pool = p;
    c->cancel = cancel;
    c->wire = take_idle(p);
    c->reused = c->wire != NULL;
    return c;
}

static void hang_up(struct pg_call *c)
{
    pg_wire_finish(c->wire);
    c->wire = NULL;
}

void pg_call_give(struct pg_call *c)
{
    struct pg_pool *p = c->pool;

    uv_mutex_lock(&p->lock);
    if (c->wire && p->n < IDLE_MAX) {
        p->idle[p->n++] = c->wire;
        c->wire = NULL;
    }
    uv_mutex_unlock(&p->lock);
    hang_up(c);
    free(c);
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static enum pg_call_end lost(struct run *r, const char *why)
{
    *r->fault = (struct pg_fault){0};
    if (why)
        snprintf(r->fault->text, sizeof r->fault->text, "%s", why);
    else
        pg_wire_error(r->call->wire, r->fault->text, sizeof r->fault->text);
    return PG_CALL_LOST;
}

/* Until the socket is ready. OK, LOST (the deadline) or CANCELLED. */
static enum pg_call_end wait_for(struct run *r, bool write, int64_t until_ms)
{
    struct pollfd p = {.fd = pg_wire_socket(r->call->wire), .events = (short)(write ? POLLIN | POLLOUT : POLLIN)};

    for (;;) {
        int64_t left = until_ms - now_ms();
        int got;

        if (r->call->cancel && atomic_load_explicit(r->call->cancel, memory_order_relaxed))
            return PG_CALL_CANCELLED;
        if (left <= 0)
            return lost(r, "no answer within the deadline");
        got = poll(&p, 1, (int)(left < STEP_MS ? left : STEP_MS));
        if (got > 0)
            return PG_CALL_OK;
        if (got < 0 && errno != EINTR)
            return lost(r, "cannot wait for the connection");
    }
}

static enum pg_call_end connect_wire(struct run *r)
{
    int64_t until_ms = now_ms() + CONNECT_MS;
    enum pg_call_end e = PG_CALL_OK;

    r->call->wire = pg_wire_start(r->call->pool->options, false);
    if (!r->call->wire)
        return lost(r, "no memory");
    while (!e) {
        enum pg_progress p = pg_wire_connect(r->call->wire);

        if (p == PG_READY)
            return PG_CALL_OK;
        e = p == PG_BROKEN ? lost(r, NULL) : wait_for(r, p == PG_WRITING, until_ms);
    }
    return e;
}

static enum pg_call_end send_all(struct run *r)
{
    enum pg_call_end e = PG_CALL_OK;

    if (!pg_wire_send(r->call->wire, r->statement, r->how == PG_SINGLE))
        return lost(r, NULL);
    while (!e) {
        enum pg_progress p = pg_wire_flush(r->call->wire);

        if (p == PG_READING)
            return PG_CALL_OK;
        if (p == PG_BROKEN)
            return lost(r, NULL);
        e = wait_for(r, true, r->until_ms);
        if (!e && !pg_wire_consume(r->call->wire))
            e = lost(r, NULL);
    }
    return e;
}

static enum pg_call_end visit(struct run *r, struct pg_result *rows)
{
    enum pg_call_end e = PG_CALL_OK;

    r->call->reused = false;
    for (int i = 0; r->row && !e && i < pg_rows(rows); i++) {
        r->visited = true;
        if (r->row(r->ctx, rows, i))
            e = PG_CALL_STOPPED;
        else if (r->how == PG_SINGLE && r->call->cancel && atomic_load_explicit(r->call->cancel, memory_order_relaxed))
            e = PG_CALL_CANCELLED;
    }
    return e;
}

static enum pg_call_end fail(struct run *r, struct pg_result *result)
{
    pg_result_fault(r->call->wire, result, r->fault);
    r->failed = true;
    return r->fault->state[0] ? PG_CALL_OK : PG_CALL_LOST;
}

/* Visits what comes until the statement is over. What a stop leaves behind is dropped with the connection, unless all
 * of it is here already. */
static enum pg_call_end receive(struct run *r)
{
    enum pg_call_end e = PG_CALL_OK;

    while (!e) {
        struct pg_result *result;

        switch (pg_wire_next(r->call->wire, &result)) {
        case PG_WAIT:
            e = wait_for(r, false, r->until_ms);
            if (!e && !pg_wire_consume(r->call->wire))
                e = lost(r, NULL);
            break;
        case PG_ROWS:
            if (!r->stopped)
                e = visit(r, result);
            if (e == PG_CALL_STOPPED && r->how == PG_WHOLE) {
                r->stopped = true;
                e = PG_CALL_OK;
            }
            break;
        case PG_FAIL:
            e = fail(r, result);
            break;
        default:
            return r->failed ? PG_CALL_FAILED : r->stopped ? PG_CALL_STOPPED : PG_CALL_OK;
        }
        pg_result_clear(result);
    }
    return e;
}

static enum pg_call_end run_once(struct run *r)
{
    enum pg_call_end e = r->call->wire ? PG_CALL_OK : connect_wire(r);

    if (!e)
        e = send_all(r);
    if (!e)
        e = receive(r);
    /* A failed statement may mean a server that goes away, or a pool that has no connection to it: start anew. */
    if (e && !r->stopped)
        hang_up(r->call);
    return e;
}

enum pg_call_end pg_call_run(struct pg_call *c, const struct pg_statement *s, enum pg_call_how how, int64_t deadline_ms,
                             pg_row row, void *ctx, struct pg_fault *f)
{
    struct run r = {
        .call = c, .statement = s, .how = how, .until_ms = now_ms() + deadline_ms, .row = row, .ctx = ctx, .fault = f};
    bool reused = c->reused;
    enum pg_call_end e;

    *f = (struct pg_fault){0};
    if (pg_statement_failed(s)) {
        snprintf(f->text, sizeof f->text, "no memory");
        return PG_CALL_LOST;
    }
    e = run_once(&r);
    if (reused && !r.visited && !r.stopped && (e == PG_CALL_LOST || e == PG_CALL_FAILED) && now_ms() < r.until_ms) {
        c->reused = r.failed = false;
        pg_pool_drop_idle(c->pool);
        e = run_once(&r);
    }
    return e;
}
