/*
 * Marks go out in small transactions of their own as soon as the connection is free, ahead of the next put. Their
 * commit does not wait for the disk: a mark that a crash takes leaves its group untold, which is allowed.
 */
#include <stdlib.h>

#include "backends/pg_array.h"
#include "backends/pg_sql.h"
#include "backends/postgres_store.h"

enum { MARKS_MAX = 16384, BATCH_MARKS = 256, LOOK_BACK = 64, MARK_TRIES = 5 };

static void log_lost(struct sample_store *s, uint64_t group)
{
    pg_log(s, 0, "store=postgres ev=mark_lost group=%llu", (unsigned long long)group);
}

/* A mark of the group that waits already: one statement cannot change a row twice. */
static struct pg_mark *find(struct pg_marks *m, const struct group *g)
{
    for (size_t i = m->n; i > m->sent && i + LOOK_BACK > m->n; i--)
        if (m->list[i - 1].group == g->id && m->list[i - 1].boot == g->boot)
            return &m->list[i - 1];
    return NULL;
}

void pg_mark_add(struct sample_store *s, const struct group *g, uint64_t told)
{
    struct pg_marks *m = &s->marks;
    struct pg_mark *waits = find(m, g);

    if (waits) {
        waits->told &= told;
        return;
    }
    if (m->n == m->cap && m->n < MARKS_MAX) {
        size_t cap = m->cap ? m->cap * 2 : 64;
        struct pg_mark *list = realloc(m->list, cap * sizeof *list);

        if (list) {
            m->list = list;
            m->cap = cap;
        }
    }
    if (m->n == m->cap) {
        log_lost(s, g->id);
        return;
    }
    m->list[m->n++] =
        (struct pg_mark){.class_days = g->class_days, .day = g->day, .boot = g->boot, .group = g->id, .told = told};
}

/* How many of the first go together: none twice. */
static size_t run_length(const struct pg_marks *m)
{
    size_t n = m->alone ? 1 : m->n < BATCH_MARKS ? m->n : BATCH_MARKS;

    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j-- > 0 && i - j <= LOOK_BACK * 2;)
            if (m->list[j].group == m->list[i].group && m->list[j].boot == m->list[i].boot)
                return i;
    return n;
}

static void fill(struct pg_batch *b, const struct pg_mark *marks, size_t n)
{
    struct pg_statement *s;
    struct buf *classes, *days, *boots, *groups, *told;

    pg_batch_add(b, pg_sql[SQL_HEAD_MARK]);
    s = pg_batch_add(b, pg_sql[SQL_PUT_MARK]);
    classes = pg_param_array(s, PG_INT2, (uint32_t)n);
    days = pg_param_array(s, PG_DATE, (uint32_t)n);
    boots = pg_param_array(s, PG_INT8, (uint32_t)n);
    groups = pg_param_array(s, PG_INT8, (uint32_t)n);
    told = pg_param_array(s, PG_INT8, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        pg_array_int(classes, PG_INT2, marks[i].class_days);
        pg_array_int(days, PG_DATE, marks[i].day);
        pg_array_int(boots, PG_INT8, (int64_t)marks[i].boot);
        pg_array_int(groups, PG_INT8, (int64_t)marks[i].group);
        pg_array_int(told, PG_INT8, (int64_t)marks[i].told);
    }
}

void pg_mark_send(struct sample_store *s)
{
    struct pg_marks *m = &s->marks;

    if (!m->n || m->sent || pg_away(s) || pg_link_busy(s->link))
        return;
    pg_batch_free(&m->batch);
    m->sent = run_length(m);
    fill(&m->batch, m->list, m->sent);
    if (pg_batch_failed(&m->batch))
        m->sent = 0;
    else
        pg_link_run(s->link, &m->batch, PG_STATEMENT_MS);
}

static void drop_sent(struct pg_marks *m)
{
    m->n -= m->sent;
    memmove(m->list, m->list + m->sent, m->n * sizeof *m->list);
    m->alone -= m->alone < m->sent ? m->alone : m->sent;
    m->sent = 0;
    m->tries = 0;
}

void pg_mark_done(struct sample_store *s, bool ok, const struct pg_fault *f)
{
    struct pg_marks *m = &s->marks;

    if (ok) {
        drop_sent(m);
    } else if (!f->state[0] && ++m->tries < MARK_TRIES) {
        m->sent = 0;
    } else if (m->sent > 1) { /* find the one that cannot be written */
        m->alone = m->sent;
        m->sent = 0;
    } else if (strcmp(f->state, "23514") == 0) { /* its day has expired */
        drop_sent(m);
    } else if (++m->tries < MARK_TRIES) {
        m->sent = 0;
    } else {
        log_lost(s, m->list[0].group);
        drop_sent(m);
    }
}

void pg_mark_free(struct sample_store *s)
{
    for (size_t i = 0; i < s->marks.n; i++)
        log_lost(s, s->marks.list[i].group);
    free(s->marks.list);
    pg_batch_free(&s->marks.batch);
    s->marks = (struct pg_marks){0};
}
