/* Which hours a put or a mark leaves to be compacted (backends/hours.h). On the lane, in the transaction of its cause.
 */
#include "backends/hours.h"
#include "backends/sqlite_store.h"

static int64_t shift(int64_t ns, int64_t by)
{
    bool over = false;

    return add_sat(ns, by, &over);
}

static bool put_dirty(const struct sample_store *s, struct file *t, int64_t service, int64_t hour)
{
    struct db_stmt *q = file_stmt(t, FILE_PUT_DIRTY);

    db_bind_int(q, 1, service);
    db_bind_int(q, 2, hour);
    db_bind_int(q, 3, s->dirty_gen);
    return db_step(q) == DB_DONE;
}

bool sqlite_put_dirty(struct sample_store *s, struct file *t, const struct group *g, const int64_t *services,
                      uint64_t inserted)
{
    int64_t service = 0, from = 0, until = -1; /* done last */

    if (t->raw_gone)
        return true;
    for (uint16_t i = 0; i < g->n; i++) {
        int64_t first = hour_of(shift(g->records[i]->time_ns, -HOUR_MARGIN_NS));
        int64_t last = hour_of(shift(g->records[i]->time_ns, HOUR_MARGIN_NS));

        if (!(inserted >> i & 1) || (services[i] == service && first >= from && last <= until))
            continue;
        for (int64_t hour = first; hour <= last; hour++)
            if (!put_dirty(s, t, services[i], hour))
                return false;
        service = services[i];
        from = first;
        until = last;
    }
    return true;
}

bool sqlite_mark_dirty(struct sample_store *s, struct file *t, const struct mark_job *m)
{
    static const int64_t margins[] = {-HOUR_MARGIN_NS, HOUR_MARGIN_NS};

    if (t->raw_gone || (m->boot == s->listed_boot && m->group > s->listed_group))
        return true;
    for (size_t i = 0; i < COUNTOF(margins); i++) {
        struct db_stmt *q = file_stmt(t, FILE_PUT_DIRTY_GROUP);

        db_bind_int(q, 1, (int64_t)m->boot);
        db_bind_int(q, 2, (int64_t)m->group);
        db_bind_int(q, 3, s->dirty_gen);
        db_bind_int(q, 4, margins[i]);
        if (db_step(q) != DB_DONE)
            return false;
    }
    return true;
}
