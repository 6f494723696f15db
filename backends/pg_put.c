/*
 * One put: packed, sent, committed, and known. A bad row fails itself: its range is halved until it stands alone. What
 * failed for another reason is tried again as long as that is soon; then the caller is asked to come again, which is
 * safe whatever has become of it, since rows are named by their attempt.
 */
#include <stdio.h>

#include "backends/day.h"
#include "backends/postgres_store.h"

enum { TRIES_MAX = 4 };

static bool state_is(const struct pg_fault *f, const char *prefix)
{
    return strncmp(f->state, prefix, strlen(prefix)) == 0;
}

bool pg_passing(const struct pg_fault *f)
{
    static const char *const states[] = {"08", "25006", "53", "55000", "57P", "58"};
    bool passing = !f->state[0];

    for (size_t i = 0; i < COUNTOF(states); i++)
        passing |= state_is(f, states[i]);
    return passing;
}

static void finish(struct sample_store *s)
{
    struct group *g = s->put.group;

    s->put.group = NULL;
    s->put.phase = PG_PUT_NONE;
    pg_batch_free(&s->put.pack.batch);
    g->done(g);
}

/* No more ranges: what has no result yet keeps PUT_AGAIN. */
static void give_up(struct sample_store *s, const char *why)
{
    store_log(s->host, 1, "store=postgres ev=put_failed group=%llu why=\"%s\"", (unsigned long long)s->put.group->id,
              why);
    s->failed_ms = uv_now(s->host->loop);
    s->put.n_ranges = 0;
    s->put.phase = PG_PUT_NEXT;
}

static void push_range(struct pg_put *p, uint16_t from, uint16_t n)
{
    p->ranges[p->n_ranges].from = from;
    p->ranges[p->n_ranges++].n = n;
    p->tries = 0;
}

static void next_range(struct pg_put *p)
{
    p->n_ranges--;
    p->tries = 0;
    p->phase = PG_PUT_NEXT;
}

static void on_packed(struct pg_job *j)
{
    struct sample_store *s = ((struct pg_pack *)j)->owner;

    s->put.phase = PG_PUT_READY;
    if (!s->put.pack.ok)
        give_up(s, "no memory");
    pg_pump(s);
}

static void on_learned(struct pg_job *j)
{
    struct sample_store *s = ((struct pg_pack *)j)->owner;

    next_range(&s->put);
    pg_pump(s);
}

static void start_packing(struct sample_store *s)
{
    struct pg_put *p = &s->put;

    p->pack.owner = s;
    p->pack.stored = s->stored;
    p->pack.host = s->host;
    p->pack.group = p->group;
    p->pack.from = p->ranges[p->n_ranges - 1].from;
    p->pack.n = p->ranges[p->n_ranges - 1].n;
    p->pack.writer = s->writer;
    p->pack.seq = &s->seq;
    p->pack.job = (struct pg_job){.run = pg_pack_run, .done = on_packed};
    p->phase = PG_PUT_PACKING;
    pg_worker_submit(s->packer, &p->pack.job);
}

void pg_put_start(struct sample_store *s, struct group *g)
{
    uint16_t good = 0;

    ASSERT(s->put.phase == PG_PUT_NONE && !s->closing);
    s->put.group = g;
    s->put.phase = PG_PUT_NEXT;
    s->put.n_ranges = 0;
    for (uint16_t i = 0; i < g->n; i++) {
        bool fits = day_of(g->records[i]->time_ns) == g->day;

        g->results[i] = fits ? PUT_AGAIN : PUT_BAD;
        good += fits;
    }
    pg_mark_fresh(s, g);
    if (good)
        push_range(&s->put, 0, g->n);
}

void pg_put_step(struct sample_store *s)
{
    struct pg_put *p = &s->put;

    if (p->phase == PG_PUT_NEXT && p->n_ranges) {
        if (pg_upkeep_has_day(s, p->group->class_days, p->group->day)) {
            start_packing(s);
        } else if (!pg_away(s) && !s->day.running) {
            p->phase = PG_PUT_MAKING_DAY;
            pg_upkeep_make_day(s, p->group->class_days, p->group->day, true);
        }
    } else if (p->phase == PG_PUT_READY && !pg_away(s) && !pg_link_busy(s->link)) {
        p->phase = PG_PUT_SENT;
        pg_link_run(s->link, &p->pack.batch, PG_STATEMENT_MS);
    }
}

void pg_put_settle(struct sample_store *s)
{
    struct pg_put *p = &s->put;

    if ((p->phase == PG_PUT_NEXT || p->phase == PG_PUT_READY) && p->n_ranges && pg_given_up(s))
        give_up(s, "the server is away");
    if (p->phase == PG_PUT_NEXT && !p->n_ranges)
        finish(s);
}

static void commit_range(struct sample_store *s)
{
    struct pg_put *p = &s->put;

    for (uint16_t i = p->pack.from; i < p->pack.from + p->pack.n; i++)
        if (p->group->results[i] != PUT_BAD)
            p->group->results[i] = PUT_STORED;
    s->failed_ms = 0;
    pg_resend_keep(s, &p->pack.batch, p->group);
    if (!p->pack.n_services && !p->pack.n_shared) {
        next_range(p);
        return;
    }
    p->phase = PG_PUT_LEARNING;
    p->pack.job = (struct pg_job){.run = pg_pack_learn, .done = on_learned};
    pg_worker_submit(s->packer, &p->pack.job);
}

void pg_identity_changed(struct sample_store *s, const char *identity)
{
    store_log(s->host, 1, "store=postgres ev=identity_changed from=%s to=%s", s->identity, identity);
    snprintf(s->identity, sizeof s->identity, "%s", identity);
    s->n_days = 0;
    pg_stored_forget_all(s->stored);
    pg_resend_start(s);
}

/* The range goes again, whole. */
static void change_identity(struct sample_store *s)
{
    struct pg_put *p = &s->put;

    pg_identity_changed(s, p->pack.batch.head);
    p->phase = PG_PUT_NEXT;
    if (++p->tries > TRIES_MAX)
        give_up(s, "the database changes again and again");
}

static void split(struct sample_store *s, const struct pg_fault *f)
{
    struct pg_put *p = &s->put;
    uint16_t from = p->pack.from, n = p->pack.n, half = n / 2;

    next_range(p);
    if (n > 1) {
        push_range(p, (uint16_t)(from + half), (uint16_t)(n - half));
        push_range(p, from, half);
        return;
    }
    store_log(s->host, 0, "store=postgres ev=bad_row state=%s why=\"%s\"", f->state, f->text);
    p->group->results[from] = PUT_BAD;
}

static void try_again(struct sample_store *s, enum pg_put_phase phase, const struct pg_fault *f)
{
    s->put.phase = phase;
    if (++s->put.tries >= TRIES_MAX)
        give_up(s, f->text);
}

/* SQLSTATEs by class: 22 and 23 are about values, 54 about sizes; 23514 here is a day without a partition; 40 says that
 * the transaction was in another's way; 08, 57P, 25006 and 55000 that this is not, or no longer, a server to write to;
 * 42 and 3F that the tables are gone. */
static void fail(struct sample_store *s, const struct pg_fault *f)
{
    const struct group *g = s->put.group;

    if (!f->state[0]) {
        try_again(s, PG_PUT_READY, f);
    } else if (state_is(f, "23514")) {
        pg_upkeep_forget_day(s, g->class_days, g->day);
        try_again(s, PG_PUT_NEXT, f);
    } else if (state_is(f, "22") || state_is(f, "23") || state_is(f, "54")) {
        split(s, f);
    } else if (state_is(f, "40")) {
        try_again(s, PG_PUT_READY, f);
    } else if (state_is(f, "08") || state_is(f, "57P") || state_is(f, "25006") || state_is(f, "55000")) {
        pg_reconnect(s);
        try_again(s, PG_PUT_READY, f);
    } else {
        if (state_is(f, "42") || state_is(f, "3F")) {
            s->prepared = false;
            pg_reconnect(s);
        }
        give_up(s, f->text);
    }
}

void pg_put_done(struct sample_store *s, bool ok, const struct pg_fault *f)
{
    const char *head = s->put.pack.batch.head;

    if (!ok) {
        fail(s, f);
    } else if (s->identity[0] && strcmp(s->identity, head) != 0) {
        change_identity(s);
    } else {
        snprintf(s->identity, sizeof s->identity, "%s", head);
        commit_range(s);
    }
}
