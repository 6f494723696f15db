/*
 * Marks go out in small transactions of their own as soon as the connection is free, ahead of the next put. Their
 * commit does not wait for the disk: a mark that a crash takes leaves its group untold, which is allowed.
 */
#include <stdlib.h>

#include "backends/day.h"
#include "backends/hours.h"
#include "backends/pg_array.h"
#include "backends/pg_sql.h"
#include "backends/postgres_store.h"

enum { MARKS_MAX = 16384, BATCH_MARKS = 256, LOOK_BACK = 64, MARK_TRIES = 5 };

static void log_lost(struct sample_store *s, uint64_t group)
{
    store_log(s->host, 0, "store=postgres ev=mark_lost group=%llu", (unsigned long long)group);
}

/* A mark of the group that waits already: one statement cannot change a row twice. */
static struct pg_mark *find(struct pg_marks *m, const struct group *g)
{
    for (size_t i = m->n; i > m->sent && i + LOOK_BACK > m->n; i--)
        if (m->list[i - 1].group == g->id && m->list[i - 1].boot == g->boot)
            return &m->list[i - 1];
    return NULL;
}

static bool append(struct pg_marks *m, const struct pg_mark *mark)
{
    if (m->n == m->cap && m->n < MARKS_MAX) {
        size_t cap = m->cap ? m->cap * 2 : 64;
        struct pg_mark *list = realloc(m->list, cap * sizeof *list);

        if (list) {
            m->list = list;
            m->cap = cap;
        }
    }
    if (m->n == m->cap)
        return false;
    m->list[m->n++] = *mark;
    return true;
}

void pg_mark_fresh(struct sample_store *s, const struct group *g)
{
    int64_t closes = INT64_MAX;
    size_t at = s->fresh.n++ % PG_FRESH_MAX;

    for (uint16_t i = 0; i < g->n; i++) {
        bool over = false;
        int64_t c = pg_hour_closes(hour_of(add_sat(g->records[i]->time_ns, -HOUR_MARGIN_NS, &over)));

        closes = c < closes ? c : closes;
    }
    s->fresh.list[at].boot = g->boot;
    s->fresh.list[at].group = g->id;
    s->fresh.list[at].closes_ns = closes;
}

/* INT64_MIN: not known any more. */
static int64_t closes_of(const struct sample_store *s, const struct group *g)
{
    for (size_t i = s->fresh.n; i > 0 && i + PG_FRESH_MAX > s->fresh.n; i--) {
        size_t at = (i - 1) % PG_FRESH_MAX;

        if (s->fresh.list[at].group == g->id && s->fresh.list[at].boot == g->boot)
            return s->fresh.list[at].closes_ns;
    }
    return INT64_MIN;
}

void pg_mark_add(struct sample_store *s, const struct group *g, uint64_t told)
{
    struct pg_mark *waits = find(&s->marks, g);
    struct pg_mark mark = {.class_days = g->class_days,
                           .day = g->day,
                           .boot = g->boot,
                           .group = g->id,
                           .told = told,
                           .at_ms = uv_now(s->host->loop),
                           .closes_ns = closes_of(s, g)};

    if (waits)
        waits->told &= told;
    else if (!append(&s->marks, &mark))
        log_lost(s, g->id);
}

/* Without memory, and what is older than resend_ms or than MARKS_MAX others, is not written again. */
static void keep(struct sample_store *s, const struct pg_mark *mark)
{
    struct pg_marks *m = &s->marks;
    uint64_t now = uv_now(s->host->loop);

    if (!m->kept && s->host->resend_ms && (m->kept = malloc(MARKS_MAX * sizeof *m->kept)))
        s->host->account(s->host->ctx, "records", (int64_t)(MARKS_MAX * sizeof *m->kept));
    if (!m->kept)
        return;
    while (m->n_kept &&
           (m->n_kept == MARKS_MAX || now - m->kept[m->kept_first % MARKS_MAX].at_ms > s->host->resend_ms)) {
        m->kept_first++;
        m->n_kept--;
    }
    m->kept[(m->kept_first + m->n_kept++) % MARKS_MAX] = *mark;
}

void pg_mark_again(struct sample_store *s)
{
    struct pg_marks *m = &s->marks;

    for (; m->n_kept; m->n_kept--, m->kept_first++)
        if (!append(m, &m->kept[m->kept_first % MARKS_MAX]))
            log_lost(s, m->kept[m->kept_first % MARKS_MAX].group);
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

/* Of marks that come when their group may have been listed already, the hours are dirty once more. */
static void fill_dirty(struct pg_batch *b, const struct pg_mark *marks, size_t n)
{
    int64_t now = day_now_ns();
    struct buf *boots, *groups, *days;
    struct pg_statement *s;
    uint32_t late = 0;

    for (size_t i = 0; i < n; i++)
        late += now >= marks[i].closes_ns;
    if (!late)
        return;
    s = pg_batch_add(b, pg_sql[SQL_DIRTY_GROUPS]);
    boots = pg_param_array(s, PG_INT8, late);
    groups = pg_param_array(s, PG_INT8, late);
    days = pg_param_array(s, PG_DATE, late);
    for (size_t i = 0; i < n; i++) {
        if (now < marks[i].closes_ns)
            continue;
        pg_array_int(boots, PG_INT8, (int64_t)marks[i].boot);
        pg_array_int(groups, PG_INT8, (int64_t)marks[i].group);
        pg_array_int(days, PG_DATE, marks[i].day);
    }
}

static void fill(struct pg_batch *b, const struct pg_mark *marks, size_t n)
{
    struct pg_statement *s;
    struct buf *classes, *days, *boots, *groups, *told;

    pg_batch_add(b, pg_sql[SQL_HEAD_MARK]);
    fill_dirty(b, marks, n);
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
        for (size_t i = 0; i < m->sent; i++)
            keep(s, &m->list[i]);
        drop_sent(m);
    } else if (pg_passing(f)) { /* a standby that is not promoted yet would use up all tries at once */
        m->sent = 0;
        if (f->state[0])
            pg_reconnect(s);
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
    if (s->marks.kept)
        s->host->account(s->host->ctx, "records", -(int64_t)(MARKS_MAX * sizeof *s->marks.kept));
    free(s->marks.kept);
    free(s->marks.list);
    pg_batch_free(&s->marks.batch);
    s->marks = (struct pg_marks){0};
}
