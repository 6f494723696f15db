/* The caller's group and the inner store's put, on the loop: spool_store.h has the states. */
#include "backends/spool.h"

#include <stdlib.h>

#include "backends/spool_store.h"

enum { MARKS_MAX = 1 << 16 };

static struct spool *spool_of(struct sample_store *s)
{
    return (struct spool *)s;
}

void spool_look(struct spool *s, const struct spool_job *j)
{
    bool was_full = s->stats.full;

    s->stats = j->stats;
    if (j->why[0] && (j->stats.full != was_full || !j->stats.full))
        store_log(s->host, 1, "spool ev=trouble why=\"%s\" bytes=%llu", j->why, (unsigned long long)j->stats.bytes);
}

/*
 * The inner store is not asked first: it is known not to answer, and what waits here will find out when it does. At the
 * start it has as long as any group waits for it, since a connection takes a moment.
 */
static bool away(const struct spool *s)
{
    return s->suspect || (!s->inner_ops->healthy(s->inner) && uv_now(s->host->loop) >= s->opened_ms + s->after_ms);
}

static void answer(struct spool *s)
{
    struct group *g = s->group;

    ASSERT(s->caller != CALLER_NONE);
    uv_timer_stop(&s->after);
    s->caller = CALLER_NONE;
    s->group = NULL;
    s->alone = false;
    g->done(g);
}

/* Rows that are neither stored nor bad are stored now; or not at all. */
static void answer_rest(struct spool *s, enum put_result as)
{
    for (uint16_t i = 0; i < s->group->n; i++)
        if (s->group->results[i] == PUT_AGAIN)
            s->group->results[i] = as;
    answer(s);
}

static bool any_again(const struct group *g)
{
    for (uint16_t i = 0; i < g->n; i++)
        if (g->results[i] == PUT_AGAIN)
            return true;
    return false;
}

static int64_t bytes_of(const struct group *g)
{
    int64_t n = 0;

    for (uint16_t i = 0; i < g->n; i++)
        n += (int64_t)g->records[i]->bytes;
    return n;
}

static void free_records(struct group *g)
{
    for (uint16_t i = 0; i < g->n; i++)
        record_free(g->records[i]);
}

static void on_put_done(struct group *g)
{
    struct spool *s = g->owner;
    enum spool_inner as = s->inner_state;

    s->inner_state = INNER_FREE;
    s->suspect = any_again(g);
    if (as == INNER_REPLAY) {
        spool_replay_done(s);
    } else if (as == INNER_LEFT) {
        s->host->account(s->host->ctx, "records", -bytes_of(g));
        free_records(g);
    } else {
        memcpy(s->group->results, g->results, sizeof g->results);
        s->put_over = true;
    }
    spool_run(s);
}

void spool_put_inner(struct spool *s, enum spool_inner as, const struct group *g)
{
    ASSERT(s->inner_state == INNER_FREE);
    s->put = (struct group){.n = g->n, .class_days = g->class_days, .day = g->day, .id = g->id, .boot = g->boot};
    memcpy(s->put.records, g->records, sizeof g->records[0] * g->n);
    s->put.done = on_put_done;
    s->put.owner = s;
    s->inner_state = as;
    s->put_ms = uv_now(s->host->loop);
    s->inner_ops->put(s->inner, &s->put);
}

/* The copies are not wanted. */
static void drop_copies(struct spool_append *a)
{
    for (uint16_t i = 0; a->copied && i < a->group->n; i++)
        record_free(a->copies[i]);
    a->copied = false;
}

/* The inner store goes on with the records, which are ours from now on; the caller has copies. */
static void leave_records(struct spool *s)
{
    struct spool_append *a = &s->append;

    s->host->account(s->host->ctx, "records", bytes_of(&s->put));
    memcpy(s->group->records, a->copies, sizeof a->copies[0] * s->group->n);
    a->copied = false;
    s->inner_state = INNER_LEFT;
}

static void count_own(struct spool *s, const struct group *g)
{
    if (!s->own_n++)
        s->own_first = g->id;
    s->own_boot = g->boot;
    s->own_last = g->id;
    s->empty = false;
}

static void ask_alone(struct spool *s)
{
    s->alone = true;
    s->caller = CALLER_WAITING;
}

static void on_appended(struct pg_job *j)
{
    static const enum spool_outcome outcomes[] = {
        [SPOOL_OK] = SPOOL_OUTCOME_spooled,
        [SPOOL_FULL] = SPOOL_OUTCOME_full,
        [SPOOL_NO_SPACE] = SPOOL_OUTCOME_no_space,
        [SPOOL_FAILED] = SPOOL_OUTCOME_failed,
    };
    struct spool_append *a = (struct spool_append *)j;
    struct spool *s = a->job.spool;
    bool held = s->inner_state == INNER_CALLER;

    a->job.busy = false;
    spool_look(s, &a->job);
    s->outcomes[outcomes[a->result]]++;
    if (a->result == SPOOL_OK)
        count_own(s, s->group);
    if (held && a->copied)
        leave_records(s);
    drop_copies(a);
    if (s->inner_state == INNER_CALLER)
        s->caller = CALLER_HELD;
    else if (a->result == SPOOL_OK)
        answer_rest(s, PUT_STORED);
    else if (s->empty && !s->put_over)
        ask_alone(s); /* nothing waits that would find out whether the store is back */
    else
        answer_rest(s, PUT_AGAIN);
    spool_run(s);
}

static void spool_group(struct spool *s)
{
    uv_timer_stop(&s->after);
    s->caller = CALLER_SPOOLING;
    s->append.group = s->group;
    s->append.copy = s->inner_state == INNER_CALLER;
    s->append.copied = false;
    spool_submit(s, &s->append.job, spool_work_append, on_appended);
}

/* Patience is over: whatever the inner store is doing, it takes too long. */
static void on_after(uv_timer_t *t)
{
    struct spool *s = t->data;

    if (s->inner_state != INNER_FREE)
        s->suspect = true;
    if (s->caller == CALLER_ASKING || (s->caller == CALLER_WAITING && !s->alone))
        spool_group(s);
}

static void ask(struct spool *s)
{
    s->caller = CALLER_ASKING;
    spool_put_inner(s, INNER_CALLER, s->group);
}

static void run_caller(struct spool *s)
{
    bool over = s->put_over && s->inner_state != INNER_CALLER;

    switch (s->caller) {
    case CALLER_WAITING:
        if (s->inner_state == INNER_FREE && (s->alone || !away(s)))
            ask(s);
        else if (!s->alone && (s->inner_state == INNER_FREE || s->suspect))
            spool_group(s);
        break;
    case CALLER_ASKING:
        if (over && any_again(s->group) && !s->alone)
            spool_group(s);
        else if (over)
            answer(s);
        break;
    case CALLER_HELD:
        if (over)
            answer_rest(s, s->append.result == SPOOL_OK ? PUT_STORED : PUT_AGAIN);
        break;
    default:
        break;
    }
}

static void on_marked(struct pg_job *j)
{
    struct spool_mark_job *m = (struct spool_mark_job *)j;
    struct spool *s = m->job.spool;

    m->job.busy = false;
    spool_look(s, &m->job);
    if (m->written)
        s->empty = false;
    for (size_t i = m->written; i < m->marks.n; i++)
        s->inner_ops->mark(s->inner, &m->marks.list[i].group, m->marks.list[i].told);
    m->marks.n = 0;
    spool_run(s);
}

static void send_marks(struct spool *s)
{
    struct spool_marks full = s->marks;

    if (!full.n || s->mark.job.busy)
        return;
    s->marks = s->mark.marks; /* which is empty */
    s->mark.marks = full;
    spool_submit(s, &s->mark.job, spool_work_marks, on_marked);
}

static void on_tick_closed(uv_handle_t *h)
{
    struct spool *s = h->data;

    s->inner_ops->close(s->inner, s->closed, s->closed_ctx);
    free(s);
}

static void on_after_closed(uv_handle_t *h)
{
    struct spool *s = h->data;

    uv_close((uv_handle_t *)&s->tick, on_tick_closed);
}

static void on_worker_closed(void *ctx)
{
    struct spool *s = ctx;

    spool_log_close(s->log);
    free(s->marks.list);
    free(s->mark.marks.list);
    uv_close((uv_handle_t *)&s->after, on_after_closed);
}

/* What waits here stays here, for the next process. */
static void shut(struct spool *s)
{
    bool busy = s->append.job.busy || s->mark.job.busy || s->read.job.busy || s->tend.job.busy;

    if (!s->closing || s->shut || busy || s->marks.n || s->caller != CALLER_NONE || s->inner_state != INNER_FREE)
        return;
    s->shut = true;
    spool_replay_drop(s);
    uv_timer_stop(&s->tick);
    if (s->stats.groups)
        store_log(s->host, 1, "spool ev=left groups=%llu records=%llu bytes=%llu", (unsigned long long)s->stats.groups,
                  (unsigned long long)s->stats.records, (unsigned long long)s->stats.bytes);
    pg_worker_close(s->worker, on_worker_closed, s);
}

void spool_run(struct spool *s)
{
    if (s->shut)
        return;
    run_caller(s);
    send_marks(s);
    if (!s->closing)
        spool_replay_run(s);
    shut(s);
}

static void on_tick(uv_timer_t *t)
{
    spool_run(t->data);
}

void spool_wake(struct spool *s, uint64_t ms)
{
    if (!s->shut)
        uv_timer_start(&s->tick, on_tick, ms < SPOOL_TICK_MS ? ms : SPOOL_TICK_MS, SPOOL_TICK_MS);
}

static bool start(struct spool *s, const struct spool_options *o, struct fault *f)
{
    s->log = spool_log_open(o->dir, o->max_bytes, f);
    if (!s->log)
        return false;
    spool_log_stats(s->log, &s->stats);
    if (s->stats.segments)
        store_log(s->host, 1, "spool ev=found segments=%llu bytes=%llu", (unsigned long long)s->stats.segments,
                  (unsigned long long)s->stats.bytes);
    s->empty = s->looked_over = !s->stats.segments;
    s->worker = pg_worker_new(s->host->loop);
    if (!s->worker)
        fault_set(f, E_NO_MEMORY, "cannot start the spool's thread");
    return s->worker;
}

struct sample_store *spool_open(const struct store_host *h, const struct spool_options *o,
                                const struct sample_store_ops *inner_ops, struct sample_store *inner, struct fault *f)
{
    struct spool *s = calloc(1, sizeof *s);

    *f = (struct fault){0};
    if (!s) {
        fault_set(f, E_NO_MEMORY, NULL);
        return NULL;
    }
    s->host = h;
    s->inner_ops = inner_ops;
    s->inner = inner;
    s->after_ms = o->after_ms;
    s->opened_ms = uv_now(h->loop);
    if (!start(s, o, f)) {
        spool_log_close(s->log);
        free(s);
        return NULL;
    }
    uv_timer_init(h->loop, &s->after);
    uv_timer_init(h->loop, &s->tick);
    s->after.data = s->tick.data = s;
    s->put_ms = uv_now(h->loop);
    spool_wake(s, 0);
    return (struct sample_store *)s;
}

static void spool_put(struct sample_store *store, struct group *g)
{
    struct spool *s = spool_of(store);
    uint64_t now = uv_now(s->host->loop), since = s->inner_state == INNER_FREE ? now : s->put_ms;

    ASSERT(s->caller == CALLER_NONE && !s->closing);
    s->group = g;
    s->caller = CALLER_WAITING;
    s->clients = true;
    s->put_over = false;
    for (uint16_t i = 0; i < g->n; i++)
        g->results[i] = PUT_AGAIN;
    uv_timer_start(&s->after, on_after, now < since + s->after_ms ? since + s->after_ms - now : 0, 0);
    run_caller(s);
}

/* Behind its group: in the spool where that is, or may be. */
static void spool_mark(struct sample_store *store, const struct group *g, uint64_t told)
{
    struct spool *s = spool_of(store);
    struct spool_marks *m = &s->marks;
    bool here = s->own_n && g->boot == s->own_boot && g->id >= s->own_first && g->id <= s->own_last;

    if (here && m->n == m->cap && m->cap < MARKS_MAX) {
        size_t cap = m->cap ? m->cap * 2 : 64;
        struct spool_marked *list = realloc(m->list, cap * sizeof *list);

        if (list) {
            m->list = list;
            m->cap = cap;
        }
    }
    if (!here || m->n == m->cap) {
        s->inner_ops->mark(s->inner, g, told);
        return;
    }
    m->list[m->n++] = (struct spool_marked){
        .group = {.n = g->n, .class_days = g->class_days, .day = g->day, .id = g->id, .boot = g->boot}, .told = told};
    send_marks(s);
}

static void spool_expire(struct sample_store *store, int64_t now_ns)
{
    struct spool *s = spool_of(store);

    s->inner_ops->expire(s->inner, now_ns);
}

static void spool_close(struct sample_store *store, void (*closed)(void *ctx), void *ctx)
{
    struct spool *s = spool_of(store);

    s->closing = true;
    s->closed = closed;
    s->closed_ctx = ctx;
    spool_run(s);
}

/* Whether groups can be taken: by the store, or in its place. */
static bool spool_healthy(const struct sample_store *store)
{
    const struct spool *s = (const struct spool *)store;

    return s->inner_ops->healthy(s->inner) || !s->stats.full;
}

void spool_stats(const struct sample_store *store, struct spool_stats *out)
{
    const struct spool *s = (const struct spool *)store;

    *out = s->stats;
    out->in_use = away(s);
    memcpy(out->outcomes, s->outcomes, sizeof out->outcomes);
}

const struct sample_store_ops spool_ops = {
    .scheme = "spool",
    .put = spool_put,
    .mark = spool_mark,
    .expire = spool_expire,
    .close = spool_close,
    .healthy = spool_healthy,
};
