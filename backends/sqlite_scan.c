/*
 * Scanning: a day at a time, so that memory is bounded by a day's rows. First the index alone says which rows there
 * are, and once.h which of them count; then those are fetched in the order of their time. No statement stays open
 * between rows, so a slow reader keeps no log from being copied into its file.
 */
#include <stdlib.h>

#include "backends/blob.h"
#include "backends/day.h"
#include "backends/hours.h"
#include "backends/sqlite_scan.h"

enum { MARGIN_S = 600 };
static const size_t NAMES_MAX_BYTES = (size_t)256 << 20;
/*
 * A payload without a time of its own gets that of its arrival, so its retry may lie a little outside of the window:
 * rows that near are looked at in choosing (never given out), so that windows side by side count it once between them.
 */
static const int64_t MARGIN_NS = MARGIN_S * INT64_C(1000000000);

enum err scan_broken(struct scan *s, const struct file *t)
{
    return fault_set(s->f, E_STORE_DOWN, "the store cannot be read: %s", db_error(t->db));
}

enum err scan_no_memory(struct scan *s)
{
    return fault_set(s->f, E_NO_MEMORY, "this query needs more memory than there is");
}

static bool cancelled(const struct scan *s)
{
    return s->sel->cancel && atomic_load_explicit(s->sel->cancel, memory_order_relaxed);
}

struct once_row *scan_add_row(struct scan *s)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 256;
        struct once_row *rows = realloc(s->rows, cap * sizeof *rows);

        if (!rows)
            return NULL;
        s->store->host->account(s->store->host->ctx, "queries", (int64_t)((cap - s->cap) * sizeof *rows));
        s->rows = rows;
        s->cap = cap;
    }
    s->rows[s->n] = (struct once_row){0};
    return &s->rows[s->n++];
}

/* Columns 0..7 of FILE_GET_WINDOW and FILE_GET_ATTEMPT. */
static void fill_row(struct once_row *r, struct db_stmt *q, uint32_t file)
{
    struct str content = db_bytes(q, 2);

    r->file = file;
    r->id = db_int(q, 0);
    r->time_ns = db_int(q, 1);
    if (content.len == sizeof r->content_id)
        memcpy(&r->content_id, content.p, content.len);
    r->identity = db_int(q, 3) != 0;
    r->attempt.boot = (uint64_t)db_int(q, 4);
    r->attempt.group = (uint64_t)db_int(q, 5);
    r->attempt.place = (uint16_t)db_int(q, 6);
    r->series_id = db_int(q, 7);
}

static int64_t shift(int64_t ns, int64_t by)
{
    bool over = false;

    return add_sat(ns, by, &over);
}

/* A stretch of time whose profiles are wanted, both ends inclusive. */
struct run {
    int64_t from, last;
};

/* Rows of one service of one file in a run and its margins, of series that are wanted. */
static enum err list_run(struct scan *s, uint32_t file, int64_t id, struct str service, struct run run)
{
    struct file *t = s->files[file];
    struct db_stmt *q = file_stmt(t, FILE_GET_WINDOW);
    struct cached *series = NULL;
    enum db_result r;
    enum err e = E_OK;

    db_bind_int(q, 1, id);
    db_bind_int(q, 2, shift(run.from, -MARGIN_NS));
    db_bind_int(q, 3, shift(run.last, MARGIN_NS));
    while (!e && (r = db_step(q)) != DB_DONE) {
        struct once_row *row = r == DB_ROW ? scan_add_row(s) : NULL;

        if (!row) {
            e = r == DB_ROW ? scan_no_memory(s) : scan_broken(s, t);
        } else if (cancelled(s)) {
            e = fault_set(s->f, E_CANCELLED, NULL);
        } else {
            fill_row(row, q, file);
            row->near = row->time_ns < run.from || row->time_ns > run.last;
            if (!series || series->id != row->series_id)
                e = scan_find_series(s, t, service, row->series_id, &series);
            if (!e && !series->wanted)
                s->n--;
        }
    }
    db_reset(q);
    return e;
}

static enum err list_runs(struct scan *s, int64_t id, struct str service, struct run run)
{
    enum err e = E_OK;

    for (uint32_t i = 0; !e && i < s->n_files; i++)
        if (!s->files[i]->raw_gone || !scan_wants_hours(s))
            e = list_run(s, i, id, service, run);
    return e;
}

/* One service: the hours that stand for themselves, and the profiles of what is between them. */
static enum err list_service(struct scan *s, int64_t id, struct str service, struct run day)
{
    uint32_t taken = 0;
    struct run run = day;
    enum err e = E_OK;

    if (scan_wants_hours(s))
        e = scan_list_hours(s, id, day.from, day.last, &taken);
    /* what came after the profiles of a file had gone is in no hour */
    for (uint32_t i = 0; !e && i < s->n_files && scan_wants_hours(s); i++)
        if (s->files[i]->raw_gone)
            e = list_run(s, i, id, service, day);
    for (int hour = 0; !e && taken && hour < 24; hour++) {
        int64_t start = day_start(day_of(day.from)) + hour * HOUR_NS;

        if (!(taken >> hour & 1))
            continue;
        if (run.from < start)
            e = list_runs(s, id, service, (struct run){run.from, start - 1});
        run.from = start + HOUR_NS;
    }
    return e || run.from > run.last ? e : list_runs(s, id, service, run);
}

struct service {
    int64_t id;
    struct str name;
};
struct services {
    struct service *list;
    uint32_t n, cap;
};

/* The project's services in this file, in the arena: while one statement is read, no other scan of rows is under way.
 */
static enum err list_services(struct scan *s, struct file *t, struct services *out)
{
    struct db_stmt *q = file_stmt(t, FILE_GET_SERVICES);
    enum db_result r;

    db_bind_text(q, 1, s->sel->project);
    while ((r = db_step(q)) == DB_ROW) {
        if (out->n == out->cap) {
            uint32_t cap = out->cap ? out->cap * 2 : 16;

            out->list = GROW(s->arena, out->list, struct service, out->cap, cap);
            out->cap = cap;
        }
        if (!out->list || !arena_str(s->arena, db_bytes(q, 1), &out->list[out->n].name))
            return scan_no_memory(s);
        out->list[out->n++].id = db_int(q, 0);
    }
    db_reset(q);
    return r == DB_DONE ? E_OK : scan_broken(s, t);
}

static int order_services(const void *pa, const void *pb)
{
    const struct service *a = pa, *b = pb;

    return (a->id > b->id) - (a->id < b->id);
}

/* Everything that may matter to the profiles of one day, from..last. */
static enum err list_day(struct scan *s, struct run day)
{
    struct services all = {0};
    enum err e = E_OK;

    if (s->sel->service.len)
        return list_service(s, sqlite_service_id(s->store, s->sel->project, s->sel->service), s->sel->service, day);
    for (uint32_t i = 0; !e && i < s->n_files; i++)
        e = list_services(s, s->files[i], &all);
    if (all.n > 1)
        qsort(all.list, all.n, sizeof *all.list, order_services);
    for (uint32_t i = 0; !e && i < all.n; i++)
        if (!i || all.list[i].id != all.list[i - 1].id)
            e = list_service(s, all.list[i].id, all.list[i].name, day);
    return e;
}

/* Marks of those rows only that share a content id. */
static enum err fetch_marks(struct scan *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct once_row *r = &s->rows[i];
        struct db_stmt *q;
        enum db_result got;

        if (!r->repeated)
            continue;
        q = file_stmt(s->files[r->file], FILE_GET_MARK);
        db_bind_int(q, 1, (int64_t)r->attempt.boot);
        db_bind_int(q, 2, (int64_t)r->attempt.group);
        got = db_step(q);
        if (got != DB_ROW && got != DB_DONE)
            return scan_broken(s, s->files[r->file]);
        r->told = got == DB_ROW && r->attempt.place < GROUP_MAX && (uint64_t)db_int(q, 0) >> r->attempt.place & 1;
        db_reset(q);
    }
    return E_OK;
}

static int order_old(const void *a, const void *b)
{
    return once_order(a, b);
}

static int order_new(const void *a, const void *b)
{
    return once_order(b, a);
}

/* Gives one row out. Column numbers as in FILE_GET_PROFILE. */
static enum err give_row(struct scan *s, const struct once_row *r)
{
    struct file *t = s->files[r->file];
    struct db_stmt *q = file_stmt(t, FILE_GET_PROFILE), *body = NULL;
    struct stored out = {.attempt = r->attempt, .series_id = (uint64_t)r->series_id, .time_ns = r->time_ns};
    struct cached *types = NULL, *series = scan_known_series(s, r->series_id);
    enum db_result got;
    enum err e;

    db_bind_int(q, 1, r->id);
    got = db_step(q);
    if (got == DB_DONE) /* gone meanwhile (retention.raw) */
        return E_OK;
    if (got != DB_ROW)
        return scan_broken(s, t);
    e = scan_find_typeset(s, t, db_int(q, 3), &types);
    if (!e)
        e = blob_read_totals(db_bytes(q, 4), types->types, types->n_types, s->f);
    if (e)
        return e;
    out.series = &series->series;
    out.duration_ns = db_int(q, 0);
    out.stored_ns = db_int(q, 1);
    out.n_samples = (uint64_t)db_int(q, 2);
    out.n_profiles = 1;
    out.class_days = t->key.class_days;
    out.types = types->types;
    out.n_types = types->n_types;
    out.primary = (uint32_t)db_int(q, 5);
    out.format = db_bytes(q, 6);
    out.trace_id = db_bytes(q, 7);
    out.original_bytes = (uint64_t)db_int(q, 8);
    if (s->what & SCAN_BODY) {
        body = file_stmt(t, FILE_GET_BODY);
        db_bind_int(body, 1, r->id);
        if (db_step(body) != DB_ROW)
            return scan_broken(s, t);
        out.body = db_bytes(body, 0);
    }
    e = s->row(s->ctx, &out);
    db_reset(q);
    if (body)
        db_reset(body);
    return e;
}

/* The hours of the day take their places among the rows. */
static enum err add_hours(struct scan *s)
{
    for (size_t i = 0; i < s->n_hours; i++) {
        struct once_row *r = scan_add_row(s);

        if (!r)
            return scan_no_memory(s);
        *r = s->hours[i];
    }
    return E_OK;
}

/* Chooses and gives out the rows listed. */
static enum err give_day(struct scan *s)
{
    enum err e = once_find(s->rows, s->n) ? fetch_marks(s) : E_OK;

    if (e)
        return e;
    once_choose(s->rows, s->n);
    e = add_hours(s);
    if (s->n)
        qsort(s->rows, s->n, sizeof *s->rows, s->what & SCAN_NEWEST_FIRST ? order_new : order_old);
    for (size_t i = 0; !e && i < s->n; i++) {
        const struct once_row *r = &s->rows[i];

        if (!r->counts || r->near || (s->sel->time_match && !s->sel->time_match(s->sel->ctx, r->time_ns)))
            continue;
        if (cancelled(s))
            e = fault_set(s->f, E_CANCELLED, NULL);
        else
            e = r->hour ? scan_give_hour(s, r) : give_row(s, r);
    }
    return e;
}

static void give_files_back(struct scan *s)
{
    while (s->n_files)
        catalog_give(s->store->catalog, s->files[--s->n_files]);
}

static enum err take_files(struct scan *s, int32_t first, int32_t last)
{
    struct file_key *keys;
    enum err e = E_OK;
    size_t n;

    if (!catalog_list(s->store->catalog, first, last, &keys, &n))
        return scan_no_memory(s);
    for (size_t i = 0; !e && i < n; i++) {
        struct fault f = {0};
        struct file *t = s->n_files < DAY_FILES_MAX ? catalog_take(s->store->catalog, keys[i], &f) : NULL;

        if (t) {
            s->files[s->n_files++] = t;
            if (!file_look(t))
                e = scan_broken(s, t);
        } else if (f.err != E_NOT_FOUND)
            e = fault_set(s->f, f.err ? f.err : E_INTERNAL, "%s", f.err ? f.text : "too many files of one day");
    }
    free(keys);
    return e;
}

static enum err pick_day(struct scan *s, int32_t day)
{
    struct run run = {day_start(day), shift(day_start(day), DAY_NS - 1)};
    enum err e;

    if (s->sel->from_ns > run.from)
        run.from = s->sel->from_ns;
    if (s->sel->until_ns - 1 < run.last)
        run.last = s->sel->until_ns - 1;
    s->n = s->n_hours = 0;
    e = take_files(s, day_of(shift(run.from, -MARGIN_NS)), day_of(shift(run.last, MARGIN_NS)));
    if (!e)
        e = list_day(s, run);
    if (!e)
        e = give_day(s);
    give_files_back(s);
    return e;
}

static enum err scan_window(struct scan *s)
{
    struct file_key *keys;
    enum err e = E_OK;
    size_t n;

    if (s->sel->until_ns <= s->sel->from_ns)
        return E_OK;
    if (!catalog_list(s->store->catalog, day_of(s->sel->from_ns), day_of(s->sel->until_ns - 1), &keys, &n))
        return scan_no_memory(s);
    for (size_t i = 0; !e && i < n; i++) {
        size_t at = s->what & SCAN_NEWEST_FIRST ? n - 1 - i : i;
        size_t before = s->what & SCAN_NEWEST_FIRST ? at + 1 : at - 1;

        if (i && keys[before].day == keys[at].day)
            continue;
        e = cancelled(s) ? fault_set(s->f, E_CANCELLED, NULL) : pick_day(s, keys[at].day);
    }
    free(keys);
    return e;
}

/* Just one profile, whether it counts or not. */
static enum err scan_attempt(struct scan *s)
{
    struct cached *series;
    struct str service;
    struct db_stmt *q;
    struct file *t;
    int64_t service_id;
    struct once_row r = {0};
    enum err e = sqlite_find_attempt(s->store, s->sel->project, *s->sel->profile, &t, &q, s->f);

    if (e)
        return e;
    s->files[s->n_files++] = t;
    fill_row(&r, q, 0);
    service_id = db_int(q, 8);
    db_reset(q);
    q = file_stmt(t, FILE_GET_SERVICE);
    db_bind_int(q, 1, service_id);
    if (db_step(q) != DB_ROW)
        return scan_broken(s, t);
    service = db_bytes(q, 1);
    e = scan_find_series(s, t, service, r.series_id, &series);
    db_reset(q);
    if (!e)
        e = series->wanted ? give_row(s, &r) : fault_set(s->f, E_NOT_FOUND, "no such profile");
    return e;
}

enum err sqlite_scan(struct sample_store *store, const struct selection *sel, enum scan_what what, scan_row row,
                     void *ctx, struct fault *f)
{
    struct scan s = {.store = store, .sel = sel, .what = what, .row = row, .ctx = ctx, .f = f};
    enum err e;

    s.arena = arena_new(NAMES_MAX_BYTES);
    if (!s.arena)
        return scan_no_memory(&s);
    e = sel->profile ? scan_attempt(&s) : scan_window(&s);
    give_files_back(&s);
    store->host->account(store->host->ctx, "queries", -(int64_t)(s.cap * sizeof *s.rows));
    free(s.rows);
    free(s.hours);
    free(s.series.slots);
    free(s.typesets.slots);
    arena_free(s.arena);
    return e;
}
