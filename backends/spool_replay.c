/*
 * What waits in the files, oldest first: read, put into the inner store as soon as that has nothing else to do, and
 * passed over once it is there. The store's time is shared: while clients send, each group is followed by a pause twice
 * as long as its put, so that theirs have most of it. A group that a healthy store turns away TRIES_MAX times does not
 * hold up those behind it: it stays in its file and has another turn behind them, after a while that grows.
 */
#include "backends/spool_store.h"

enum { TRIES_MAX = 4, AGAIN_FIRST_MS = 10000, AGAIN_MAX_MS = 600000 };
enum { PAUSE_FACTOR = 2, PAUSE_MAX_MS = 500, BACKOFF_MS = 500, PROBE_MS = 5000, TRIM_MS = 1000 };

static uint64_t now_ms(const struct spool *s)
{
    return uv_now(s->host->loop);
}

static void pause_for(struct spool *s, uint64_t ms)
{
    s->next_ms = now_ms(s) + ms;
    spool_wake(s, ms);
}

/* Of this process, and dealt with: its mark may go the straight way. */
static void forget_own(struct spool *s, const struct group *g)
{
    if (!s->own_n || g->boot != s->own_boot)
        return;
    s->own_n--;
    s->own_first = g->id + 1;
}

static void dealt_with(struct spool *s, enum spool_move how)
{
    s->move = how;
    s->refused = 0;
    s->replay = REPLAY_IDLE;
    s->replayed_ms = now_ms(s);
}

void spool_replay_drop(struct spool *s)
{
    struct spool_read_job *r = &s->read;

    if (s->replay != REPLAY_READY && s->replay != REPLAY_PUTTING)
        return;
    for (uint16_t i = 0; i < r->entry.group.n; i++)
        record_free(r->entry.group.records[i]);
    s->host->account(s->host->ctx, "records", -r->bytes);
    s->replay = REPLAY_IDLE;
}

/* Clients are not to wait for it either: whether the store takes theirs is found out by asking. */
static void put_off(struct spool *s, const struct group *g)
{
    store_log(s->host, 0, "spool ev=put_off boot=%016llx group=%llu records=%u tries=%u", (unsigned long long)g->boot,
              (unsigned long long)g->id, (unsigned)g->n, s->refused);
    s->outcomes[SPOOL_OUTCOME_put_off]++;
    s->n_put_off++;
    s->suspect = false;
    forget_own(s, g);
    dealt_with(s, SPOOL_PUT_OFF);
}

/* Everything has been read: those that were put off are next, but not at once. */
static void wait_for_again(struct spool *s)
{
    uint64_t twice = s->again_after_ms * 2;

    if (!s->n_put_off) {
        s->again_after_ms = s->again_ms ? s->again_after_ms : 0;
        return;
    }
    s->again_after_ms = !twice ? AGAIN_FIRST_MS : twice < AGAIN_MAX_MS ? twice : AGAIN_MAX_MS;
    s->again_ms = now_ms(s) + s->again_after_ms;
    s->n_put_off = 0;
}

void spool_replay_done(struct spool *s)
{
    uint64_t took = now_ms(s) - s->put_ms, pause = s->clients ? took * PAUSE_FACTOR : 0;
    struct group *g = &s->read.entry.group;

    spool_replay_drop(s);
    if (s->suspect) { /* the put was turned away: read again then, so that nothing waits in memory */
        s->refused += s->asked_well;
        if (s->refused >= TRIES_MAX)
            put_off(s, g);
        pause_for(s, BACKOFF_MS);
        return;
    }
    s->outcomes[SPOOL_OUTCOME_replayed]++;
    forget_own(s, g);
    dealt_with(s, SPOOL_NEXT);
    s->clients = false;
    pause_for(s, pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS);
}

static void on_read(struct pg_job *j)
{
    struct spool_read_job *r = (struct spool_read_job *)j;
    struct spool *s = r->job.spool;

    r->job.busy = false;
    spool_look(s, &r->job);
    s->replay = REPLAY_IDLE;
    if (r->step == SPOOL_END) {
        s->empty = true;
        s->own_n = 0;
        wait_for_again(s);
        s->replayed_ms = s->replayed_ms ? s->replayed_ms : now_ms(s);
    } else if (r->step == SPOOL_TORN) {
        pause_for(s, BACKOFF_MS);
    } else if (r->entry.kind == SPOOL_GROUP) {
        s->replay = REPLAY_READY;
    } else {
        s->inner_ops->mark(s->inner, &r->entry.group, r->entry.told);
        dealt_with(s, SPOOL_NEXT);
    }
    spool_run(s);
}

static void on_tended(struct pg_job *j)
{
    struct spool_tend_job *t = (struct spool_tend_job *)j;
    struct spool *s = t->job.spool;

    t->job.busy = false;
    spool_look(s, &t->job);
    if (!t->trim && !t->more)
        s->looked_over = true;
    spool_run(s);
}

static bool tend(struct spool *s, bool trim)
{
    if (s->tend.job.busy)
        return false;
    s->tend.trim = trim;
    spool_submit(s, &s->tend.job, spool_work_tend, on_tended);
    return true;
}

/* A store that turned a put away is asked again when it calls itself healthy; one that never does, now and then. */
static bool may_try(const struct spool *s)
{
    return s->inner_ops->healthy(s->inner) || now_ms(s) >= s->put_ms + PROBE_MS;
}

void spool_replay_run(struct spool *s)
{
    if (!s->looked_over) {
        tend(s, false);
        return;
    }
    /* Marks are handed over, not answered: their segment stays until the store has had time for them. */
    if (s->replayed_ms && now_ms(s) >= s->replayed_ms + TRIM_MS && tend(s, true))
        s->replayed_ms = s->empty ? 0 : now_ms(s);
    if (s->replay == REPLAY_IDLE && s->empty && s->again_ms && now_ms(s) >= s->again_ms) {
        s->empty = false;
        s->again_ms = 0;
        s->move = SPOOL_REWIND;
    }
    if (s->replay == REPLAY_IDLE && !s->empty && now_ms(s) >= s->next_ms && may_try(s)) {
        s->replay = REPLAY_READING;
        s->read.move = s->move;
        s->move = SPOOL_STAY;
        spool_submit(s, &s->read.job, spool_work_read, on_read);
    }
    if (s->replay == REPLAY_READY && s->inner_state == INNER_FREE && s->caller != CALLER_WAITING) {
        s->replay = REPLAY_PUTTING;
        s->asked_well = s->inner_ops->healthy(s->inner);
        spool_put_inner(s, INNER_REPLAY, &s->read.entry.group);
    }
}
