/* Hours among the rows of a day. First the hour rows that are there, then what is dirty: never the other way round. */
#include <stdlib.h>

#include "backends/day.h"
#include "backends/hours.h"
#include "backends/sqlite_scan.h"

enum { HOURS_A_DAY = 24 };

static const size_t ROW_MAX_BYTES = (size_t)64 << 20;

static struct once_row *add_hour(struct scan *s)
{
    if (s->n_hours == s->cap_hours) {
        size_t cap = s->cap_hours ? s->cap_hours * 2 : 64;
        struct once_row *hours = realloc(s->hours, cap * sizeof *hours);

        if (!hours)
            return NULL;
        s->hours = hours;
        s->cap_hours = cap;
    }
    s->hours[s->n_hours] = (struct once_row){.hour = true, .counts = true};
    return &s->hours[s->n_hours++];
}

/* Hour rows of one file; `at` of each is kept in series_id until it is known what is dirty. */
static enum err list_file(struct scan *s, uint32_t file, int64_t service, int64_t first, int64_t last)
{
    struct file *t = s->files[file];
    struct db_stmt *q = file_stmt(t, FILE_GET_HOURS);
    enum db_result r;

    db_bind_int(q, 1, service);
    db_bind_int(q, 2, first);
    db_bind_int(q, 3, last);
    while ((r = db_step(q)) == DB_ROW) {
        struct once_row *row = add_hour(s);

        if (!row)
            return scan_no_memory(s);
        row->file = file;
        row->id = db_int(q, 0);
        row->series_id = db_int(q, 1);
        row->time_ns = db_int(q, 2);
        row->attempt = (struct attempt){(uint64_t)db_int(q, 3), (uint64_t)db_int(q, 4), (uint16_t)db_int(q, 5)};
    }
    db_reset(q);
    return r == DB_DONE ? E_OK : scan_broken(s, t);
}

static enum err find_dirty(struct scan *s, struct file *t, int64_t service, int64_t day, int64_t first, int64_t last,
                           uint32_t *dirty)
{
    struct db_stmt *q = file_stmt(t, FILE_GET_DIRTY);
    enum db_result r;

    db_bind_int(q, 1, service);
    db_bind_int(q, 2, first);
    db_bind_int(q, 3, last);
    while ((r = db_step(q)) == DB_ROW)
        *dirty |= UINT32_C(1) << (db_int(q, 0) - day);
    db_reset(q);
    return r == DB_DONE ? E_OK : scan_broken(s, t);
}

enum err scan_list_hours(struct scan *s, int64_t service, int64_t from, int64_t last_ns, uint32_t *taken)
{
    int64_t day = (int64_t)day_of(from) * HOURS_A_DAY; /* its first hour */
    int64_t first = hour_of(from) + (from > hour_of(from) * HOUR_NS);
    int64_t last = hour_of(last_ns) - (last_ns < (hour_of(last_ns) + 1) * HOUR_NS - 1);
    size_t before = s->n_hours, kept = s->n_hours;
    uint32_t dirty = 0;
    enum err e = E_OK;

    for (uint32_t i = 0; !e && i < s->n_files && first <= last; i++)
        if (s->files[i]->has_hours)
            e = list_file(s, i, service, first, last);
    for (uint32_t i = 0; !e && i < s->n_files && s->n_hours > before; i++)
        if (s->files[i]->has_hours)
            e = find_dirty(s, s->files[i], service, day, first, last, &dirty);
    for (size_t i = before; !e && i < s->n_hours; i++) {
        uint32_t bit = UINT32_C(1) << (s->hours[i].series_id - day);

        if (dirty & bit && !s->files[s->hours[i].file]->raw_gone)
            continue;
        s->hours[kept++] = s->hours[i];
        *taken |= dirty & bit ? 0 : bit;
    }
    s->n_hours = kept;
    return e;
}

enum err scan_give_hour(struct scan *s, const struct once_row *r)
{
    struct file *t = s->files[r->file];
    struct db_stmt *q = file_stmt(t, FILE_GET_HOUR), *body = NULL;
    struct arena *a = arena_new(ROW_MAX_BYTES);
    struct stored_hour hour;
    struct stored out;
    struct str bytes = {NULL, 0};
    enum err e = a ? E_OK : scan_no_memory(s);

    db_bind_int(q, 1, r->id);
    if (!e && db_step(q) != DB_ROW)
        e = scan_broken(s, t);
    if (!e && s->what & SCAN_BODY) {
        body = file_stmt(t, FILE_GET_HOUR_BODY);
        db_bind_int(body, 1, r->id);
        if (db_step(body) == DB_ROW)
            bytes = db_bytes(body, 0);
        else
            e = scan_broken(s, t);
    }
    if (!e)
        e = hour_open(db_bytes(q, 0), bytes, s->sel->project, a, &out, &hour, s->f);
    if (!e && (!s->sel->series_match || s->sel->series_match(s->sel->ctx, out.series)))
        e = s->row(s->ctx, &out);
    db_reset(q);
    if (body)
        db_reset(body);
    arena_free(a);
    return e;
}
