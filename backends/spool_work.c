/* What the spool's thread does. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backends/spool_store.h"

void spool_submit(struct spool *s, struct spool_job *j, void (*run)(struct pg_job *j), void (*done)(struct pg_job *j))
{
    ASSERT(!j->busy);
    j->busy = true;
    j->spool = s;
    j->why[0] = '\0';
    j->job = (struct pg_job){.run = run, .done = done};
    pg_worker_submit(s->worker, &j->job);
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void report(struct spool_job *j, bool bad)
{
    spool_log_stats(j->spool->log, &j->stats);
    bad |= j->stats.corrupt > j->spool->corrupt_told;
    j->spool->corrupt_told = j->stats.corrupt;
    if (bad)
        snprintf(j->why, sizeof j->why, "%s", spool_log_why(j->spool->log));
}

/* What was written is what the caller gets: so the way back is known to be good, too. */
static bool copy_records(struct spool_append *a, struct str payload)
{
    struct spool_entry e;
    struct fault f = {0};

    if (!spool_entry_read(payload, &e) || spool_entry_records(&e, &f) != E_OK)
        return false;
    memcpy(a->copies, e.group.records, sizeof a->copies);
    return true;
}

void spool_work_append(struct pg_job *j)
{
    struct spool_append *a = (struct spool_append *)j;
    struct spool *s = a->job.spool;
    struct spool_entry e = {.kind = SPOOL_GROUP, .group.n = a->group->n};
    struct buf payload = {0};

    spool_pack_group(&payload, a->group, now_ns());
    s->host->account(s->host->ctx, "records", (int64_t)payload.cap);
    a->result = payload.failed || payload.len > UINT32_MAX ? SPOOL_FAILED : SPOOL_OK;
    if (a->result == SPOOL_OK)
        a->result = spool_log_append(s->log, buf_view(&payload), &e);
    if (a->result == SPOOL_OK)
        a->result = spool_log_sync(s->log);
    a->copied = a->result == SPOOL_OK && a->copy && copy_records(a, buf_view(&payload));
    s->host->account(s->host->ctx, "records", -(int64_t)payload.cap);
    report(&a->job, a->result != SPOOL_OK);
    if (payload.failed)
        snprintf(a->job.why, sizeof a->job.why, "no memory");
    buf_free(&payload);
}

/* Not synced: a mark that a crash of the machine takes leaves its group untold, which is allowed. */
void spool_work_marks(struct pg_job *j)
{
    struct spool_mark_job *m = (struct spool_mark_job *)j;
    struct spool_entry e = {.kind = SPOOL_MARK};
    struct buf payload = {0};

    for (m->written = 0; m->written < m->marks.n; m->written++) {
        const struct spool_marked *mark = &m->marks.list[m->written];

        payload.len = 0;
        spool_pack_mark(&payload, &mark->group, mark->told, now_ns());
        if (payload.failed || spool_log_append(m->job.spool->log, buf_view(&payload), &e) != SPOOL_OK)
            break;
    }
    buf_free(&payload);
    report(&m->job, false);
}

static void move(struct spool_log *l, enum spool_move to)
{
    if (to == SPOOL_NEXT)
        spool_log_next(l);
    else if (to == SPOOL_PUT_OFF)
        spool_log_put_off(l);
    else if (to == SPOOL_REWIND)
        spool_log_rewind(l);
}

void spool_work_read(struct pg_job *j)
{
    struct spool_read_job *r = (struct spool_read_job *)j;
    struct spool *s = r->job.spool;
    struct buf bytes = {0};
    struct fault f = {0};
    enum err err;

    move(s->log, r->move);
    r->bytes = 0;
    do {
        err = E_OK;
        r->step = spool_log_read(s->log, &bytes, &r->entry);
        if (r->step == SPOOL_ENTRY && r->entry.kind == SPOOL_GROUP)
            err = spool_entry_records(&r->entry, &f);
        if (err == E_BAD_INPUT) { /* whole, and yet not records: written by another version */
            spool_log_refuse(s->log);
            spool_log_next(s->log);
        }
    } while (err == E_BAD_INPUT);
    if (err)
        r->step = SPOOL_TORN;
    for (uint16_t i = 0; r->step == SPOOL_ENTRY && r->entry.kind == SPOOL_GROUP && i < r->entry.group.n; i++)
        r->bytes += (int64_t)r->entry.group.records[i]->bytes;
    s->host->account(s->host->ctx, "records", r->bytes);
    buf_free(&bytes);
    report(&r->job, false);
}

void spool_work_tend(struct pg_job *j)
{
    struct spool_tend_job *t = (struct spool_tend_job *)j;

    if (t->trim)
        spool_log_trim(t->job.spool->log);
    else
        t->more = spool_log_scan(t->job.spool->log);
    report(&t->job, false);
}
