/* A list of transactions, oldest first; while some go again, `next` is the one whose turn it is. */
#include "backends/pg_resend.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/pg_array.h"
#include "backends/pg_sql.h"
#include "backends/postgres_store.h"

enum { RESEND_TRIES = 4, DAY_TRIES = 20 };

/* Statements one behind the other, each: its text's address, how many parameters, and those behind their lengths. */
struct pg_kept {
    struct pg_kept *next;
    uint64_t at_ms;
    size_t bytes;
    int32_t day;
    uint16_t class_days;
    uint64_t boot, group;
    int n;
    char data[];
};

struct statement_head {
    const char *sql;
    int n;
    size_t lengths[PG_PARAMS_MAX];
};

static size_t bytes_of(const struct pg_batch *b)
{
    size_t n = 0;

    for (int i = 0; i < b->n; i++) {
        n += sizeof(struct statement_head);
        for (int j = 0; j < b->statements[i].n; j++)
            n += b->statements[i].params[j].len;
    }
    return n;
}

static char *put(char *at, const void *p, size_t n)
{
    if (n)
        memcpy(at, p, n);
    return at + n;
}

static void write_batch(char *at, const struct pg_batch *b)
{
    for (int i = 0; i < b->n; i++) {
        const struct pg_statement *s = &b->statements[i];
        struct statement_head head = {.sql = s->sql, .n = s->n};

        for (int j = 0; j < s->n; j++)
            head.lengths[j] = s->params[j].len;
        at = put(at, &head, sizeof head);
        for (int j = 0; j < s->n; j++)
            at = put(at, s->params[j].p, s->params[j].len);
    }
}

/* By now its hours may have been compacted without it. */
static void add_dirty(const struct pg_kept *k, struct pg_batch *b)
{
    struct pg_statement *s = pg_batch_add(b, pg_sql[SQL_DIRTY_GROUPS]);

    pg_array_int(pg_param_array(s, PG_INT8, 1), PG_INT8, (int64_t)k->boot);
    pg_array_int(pg_param_array(s, PG_INT8, 1), PG_INT8, (int64_t)k->group);
    pg_array_int(pg_param_array(s, PG_DATE, 1), PG_DATE, k->day);
}

static void read_batch(const struct pg_kept *k, struct pg_batch *b)
{
    const char *at = k->data;

    for (int i = 0; i < k->n; i++) {
        struct statement_head head;

        memcpy(&head, at, sizeof head);
        at += sizeof head;
        struct pg_statement *s = pg_batch_add(b, head.sql);
        for (int j = 0; j < head.n; j++, s->n++) {
            buf_add(&s->params[j], at, head.lengths[j]);
            at += head.lengths[j];
        }
    }
    add_dirty(k, b);
}

static void drop_first(struct sample_store *s)
{
    struct pg_resend *r = &s->resend;
    struct pg_kept *k = r->first;

    ASSERT(k != r->next || !r->sent);
    if (r->next == k) {
        r->next = k->next;
        r->n_lost++;
    }
    r->first = k->next;
    if (!r->first)
        r->last = NULL;
    r->bytes -= k->bytes;
    s->host->account(s->host->ctx, "records", -(int64_t)k->bytes);
    free(k);
}

static bool may_drop(const struct pg_resend *r)
{
    return r->first && !(r->sent && r->first == r->next);
}

void pg_resend_keep(struct sample_store *s, const struct pg_batch *b, const struct group *g)
{
    struct pg_resend *r = &s->resend;
    uint64_t now = uv_now(s->host->loop);
    size_t max = s->host->symbols_memory / 2, bytes = sizeof(struct pg_kept) + bytes_of(b);
    struct pg_kept *k = s->host->resend_ms && bytes <= max ? malloc(bytes) : NULL;

    while (!r->next && may_drop(r) && now - r->first->at_ms > s->host->resend_ms)
        drop_first(s);
    if (!k) {
        r->dropped++;
        return;
    }
    for (; may_drop(r) && r->bytes + bytes > max; r->dropped++)
        drop_first(s);
    *k = (struct pg_kept){.at_ms = now,
                          .bytes = bytes,
                          .day = g->day,
                          .class_days = g->class_days,
                          .boot = g->boot,
                          .group = g->id,
                          .n = b->n};
    write_batch(k->data, b);
    if (r->last)
        r->last->next = k;
    else
        r->first = k;
    r->last = k;
    r->bytes += bytes;
    s->host->account(s->host->ctx, "records", (int64_t)bytes);
}

void pg_resend_up(struct sample_store *s)
{
    s->resend.ask = s->identity[0] != '\0';
}

void pg_resend_start(struct sample_store *s)
{
    struct pg_resend *r = &s->resend;

    r->next = r->first;
    r->n_sent = r->n_lost = 0;
    r->tries = 0;
    r->ask = false;
    pg_mark_again(s);
}

/* What is behind it in the list was committed by the new database already; sending it once more costs little. */
static void advance(struct sample_store *s)
{
    struct pg_resend *r = &s->resend;

    r->tries = 0;
    r->next = r->next->next;
    if (r->next)
        return;
    store_log(s->host, r->n_lost ? 0 : 1, "store=postgres ev=sent_again groups=%llu lost=%llu not_kept=%llu",
              (unsigned long long)r->n_sent, (unsigned long long)r->n_lost, (unsigned long long)r->dropped);
    r->dropped = 0;
}

/* A transaction that this database does not take: its day has expired, or its tables are not ours. */
static void give_up(struct sample_store *s, const char *why)
{
    if (!s->resend.n_lost++)
        store_log(s->host, 1, "store=postgres ev=not_sent_again why=\"%s\"", why);
    advance(s);
}

static void make_day(struct sample_store *s)
{
    struct pg_resend *r = &s->resend;

    if (s->day.running)
        return;
    if (r->tries > DAY_TRIES) {
        give_up(s, "its day cannot be made");
    } else if (r->tries++ && !r->waited) { /* not at once */
        r->waited = true;
        pg_reconnect(s);
    } else {
        r->waited = false;
        pg_upkeep_make_day(s, r->next->class_days, r->next->day, false);
    }
}

void pg_resend_step(struct sample_store *s)
{
    struct pg_resend *r = &s->resend;

    if (r->sent || (!r->ask && !r->next) || pg_away(s) || pg_link_busy(s->link))
        return;
    if (!r->ask && !pg_upkeep_has_day(s, r->next->class_days, r->next->day)) {
        make_day(s);
        return;
    }
    pg_batch_free(&r->batch);
    if (r->ask)
        pg_batch_add(&r->batch, pg_sql[SQL_HEAD_PUT]);
    else
        read_batch(r->next, &r->batch);
    if (pg_batch_failed(&r->batch)) {
        pg_batch_free(&r->batch);
        return; /* the next time something happens */
    }
    r->sent = true;
    pg_link_run(s->link, &r->batch, PG_STATEMENT_MS);
}

void pg_resend_done(struct sample_store *s, bool ok, const struct pg_fault *f)
{
    struct pg_resend *r = &s->resend;
    bool other = ok && strcmp(s->identity, r->batch.head) != 0;

    r->sent = false;
    if (other) {
        pg_identity_changed(s, r->batch.head);
    } else if (r->ask) {
        r->ask = !ok && pg_passing(f);
    } else if (ok) {
        r->n_sent++;
        advance(s);
    } else if (strcmp(f->state, "23514") == 0 && !r->tries++) {
        pg_upkeep_forget_day(s, r->next->class_days, r->next->day);
    } else if (!pg_passing(f) && ++r->tries >= RESEND_TRIES) {
        give_up(s, f->text);
    }
    pg_batch_free(&r->batch);
    if (!ok && f->state[0] && pg_passing(f))
        pg_reconnect(s);
}

bool pg_resend_busy(const struct sample_store *s)
{
    return s->resend.next || s->resend.sent;
}

void pg_resend_free(struct sample_store *s)
{
    s->resend.sent = false;
    s->resend.next = NULL;
    while (s->resend.first)
        drop_first(s);
    pg_batch_free(&s->resend.batch);
}
