/*
 * Scanning: a day at a time, so that memory is bounded by a day's rows. First the index alone says which rows there
 * are, and once.h which of them count; then those are fetched in the order of their time. No statement stays open
 * between rows, so a slow reader keeps no log from being copied into its file.
 *
 * Here is the place for hour compaction: of a window longer than a few hours the closed, clean hours will come from
 * hour records in pick_day, and only the rest from rows.
 */
#include <stdlib.h>

#include "backends/blob.h"
#include "backends/day.h"
#include "backends/once.h"
#include "backends/sqlite_store.h"

enum { DAY_FILES_MAX = 24, CACHE_MIN = 64, MARGIN_S = 600 };
static const size_t NAMES_MAX_BYTES = (size_t)256 << 20;
/*
 * A payload without a time of its own gets that of its arrival, so its retry may lie a little outside of the window:
 * rows that near are looked at in choosing (never given out), so that windows side by side count it once between them.
 */
static const int64_t MARGIN_NS = MARGIN_S * INT64_C(1000000000);

/* What is known of an id (series, type set) within a scan. */
struct cached {
    int64_t id;
    bool wanted;
    struct series series;
    struct sample_type *types;
    uint32_t n_types;
};

struct cache {
    struct cached **slots;
    size_t n, cap;
};

struct scan {
    struct sample_store *store;
    const struct selection *sel;
    enum scan_what what;
    scan_row row;
    void *ctx;
    struct fault *f;

    struct arena *arena;
    struct cache series, typesets;
    struct file *files[DAY_FILES_MAX];
    uint32_t n_files;
    struct once_row *rows;
    size_t n, cap;
};

static size_t slot_of(const struct cache *c, int64_t id)
{
    size_t i = (size_t)((uint64_t)id ^ (uint64_t)id >> 29) & (c->cap - 1);

    while (c->slots[i] && c->slots[i]->id != id)
        i = (i + 1) & (c->cap - 1);
    return i;
}

static struct cached *cache_find(const struct cache *c, int64_t id)
{
    return c->cap ? c->slots[slot_of(c, id)] : NULL;
}

static bool cache_grow(struct cache *c)
{
    struct cache big = {.n = c->n, .cap = c->cap ? c->cap * 2 : CACHE_MIN};

    big.slots = calloc(big.cap, sizeof(struct cached *));
    if (!big.slots)
        return false;
    for (size_t i = 0; i < c->cap; i++)
        if (c->slots[i])
            big.slots[slot_of(&big, c->slots[i]->id)] = c->slots[i];
    free(c->slots);
    *c = big;
    return true;
}

/* A new entry for id, in the arena. NULL: no memory. */
static struct cached *cache_add(struct scan *s, struct cache *c, int64_t id)
{
    struct cached *e = NEW(s->arena, struct cached, 1);

    if (!e || (c->n * 2 >= c->cap && !cache_grow(c)))
        return NULL;
    e->id = id;
    c->slots[slot_of(c, id)] = e;
    c->n++;
    return e;
}

static enum err broken(struct scan *s, const struct file *t)
{
    return fault_set(s->f, E_STORE_DOWN, "the store cannot be read: %s", db_error(t->db));
}

static enum err no_memory(struct scan *s)
{
    return fault_set(s->f, E_NO_MEMORY, "this query needs more memory than there is");
}

static bool cancelled(const struct scan *s)
{
    return s->sel->cancel && atomic_load_explicit(s->sel->cancel, memory_order_relaxed);
}

static enum err read_series(struct scan *s, struct file *t, struct str service, struct cached *e)
{
    struct db_stmt *q = file_stmt(t, FILE_GET_SERIES);
    enum err err;

    db_bind_int(q, 1, e->id);
    if (db_step(q) != DB_ROW)
        return broken(s, t);
    if (!arena_str(s->arena, s->sel->project, &e->series.project) ||
        !arena_str(s->arena, service, &e->series.service) || !arena_str(s->arena, db_bytes(q, 0), &e->series.name) ||
        !arena_str(s->arena, db_bytes(q, 1), &e->series.spy))
        return no_memory(s);
    err = blob_read_labels(db_bytes(q, 2), s->arena, &e->series.labels, &e->series.n_labels, s->f);
    db_reset(q);
    if (!err)
        e->wanted = !s->sel->series_match || s->sel->series_match(s->sel->ctx, &e->series);
    return err;
}

static enum err find_series(struct scan *s, struct file *t, struct str service, int64_t id, struct cached **out)
{
    *out = cache_find(&s->series, id);
    if (*out)
        return E_OK;
    *out = cache_add(s, &s->series, id);
    return *out ? read_series(s, t, service, *out) : no_memory(s);
}

static enum err find_typeset(struct scan *s, struct file *t, int64_t id, struct cached **out)
{
    struct db_stmt *q;
    enum err e;

    *out = cache_find(&s->typesets, id);
    if (*out)
        return E_OK;
    *out = cache_add(s, &s->typesets, id);
    if (!*out)
        return no_memory(s);
    q = file_stmt(t, FILE_GET_TYPESET);
    db_bind_int(q, 1, id);
    if (db_step(q) != DB_ROW)
        return broken(s, t);
    e = blob_read_types(db_bytes(q, 0), s->arena, &(*out)->types, &(*out)->n_types, s->f);
    db_reset(q);
    return e;
}

static struct once_row *add_row(struct scan *s)
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

/* Rows of one service of one file, from..last inclusive, of series that are wanted. */
static enum err list_service(struct scan *s, uint32_t file, int64_t id, struct str service, int64_t from, int64_t last)
{
    struct file *t = s->files[file];
    struct db_stmt *q = file_stmt(t, FILE_GET_WINDOW);
    struct cached *series = NULL;
    enum db_result r;
    enum err e = E_OK;

    db_bind_int(q, 1, id);
    db_bind_int(q, 2, from);
    db_bind_int(q, 3, last);
    while (!e && (r = db_step(q)) != DB_DONE) {
        struct once_row *row = r == DB_ROW ? add_row(s) : NULL;

        if (!row) {
            e = r == DB_ROW ? no_memory(s) : broken(s, t);
        } else if (cancelled(s)) {
            e = fault_set(s->f, E_CANCELLED, NULL);
        } else {
            fill_row(row, q, file);
            if (!series || series->id != row->series_id)
                e = find_series(s, t, service, row->series_id, &series);
            if (!e && !series->wanted)
                s->n--;
        }
    }
    db_reset(q);
    return e;
}

struct service {
    int64_t id;
    struct str name;
};

/* The project's services in this file, in the arena: while one statement is read, no other scan of rows is under way.
 */
static enum err list_services(struct scan *s, struct file *t, struct service **out, uint32_t *n)
{
    struct db_stmt *q = file_stmt(t, FILE_GET_SERVICES);
    uint32_t cap = 0;
    enum db_result r;

    *out = NULL;
    *n = 0;
    db_bind_text(q, 1, s->sel->project);
    while ((r = db_step(q)) == DB_ROW) {
        if (*n == cap) {
            *out = GROW(s->arena, *out, struct service, cap, cap ? cap * 2 : 16);
            cap = cap ? cap * 2 : 16;
        }
        if (!*out || !arena_str(s->arena, db_bytes(q, 1), &(*out)[*n].name))
            return no_memory(s);
        (*out)[(*n)++].id = db_int(q, 0);
    }
    db_reset(q);
    return r == DB_DONE ? E_OK : broken(s, t);
}

static enum err list_file(struct scan *s, uint32_t file, int64_t from, int64_t last)
{
    struct service *services;
    uint32_t n;
    enum err e;

    if (s->sel->service.len)
        return list_service(s, file, sqlite_service_id(s->store, s->sel->project, s->sel->service), s->sel->service,
                            from, last);
    e = list_services(s, s->files[file], &services, &n);
    for (uint32_t i = 0; !e && i < n; i++)
        e = list_service(s, file, services[i].id, services[i].name, from, last);
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
            return broken(s, s->files[r->file]);
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
    struct cached *types = NULL, *series = cache_find(&s->series, r->series_id);
    enum err e;

    db_bind_int(q, 1, r->id);
    if (db_step(q) != DB_ROW)
        return broken(s, t);
    e = find_typeset(s, t, db_int(q, 3), &types);
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
            return broken(s, t);
        out.body = db_bytes(body, 0);
    }
    e = s->row(s->ctx, &out);
    db_reset(q);
    if (body)
        db_reset(body);
    return e;
}

/* Chooses and gives out the rows listed whose time is in from..last. */
static enum err give_day(struct scan *s, int64_t from, int64_t last)
{
    enum err e = once_find(s->rows, s->n) ? fetch_marks(s) : E_OK;

    if (e)
        return e;
    once_choose(s->rows, s->n);
    if (s->n)
        qsort(s->rows, s->n, sizeof *s->rows, s->what & SCAN_NEWEST_FIRST ? order_new : order_old);
    for (size_t i = 0; !e && i < s->n; i++) {
        if (!s->rows[i].counts || s->rows[i].time_ns < from || s->rows[i].time_ns > last)
            continue;
        if (s->sel->time_match && !s->sel->time_match(s->sel->ctx, s->rows[i].time_ns))
            continue;
        e = cancelled(s) ? fault_set(s->f, E_CANCELLED, NULL) : give_row(s, &s->rows[i]);
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
        return no_memory(s);
    for (size_t i = 0; !e && i < n; i++) {
        struct fault f = {0};
        struct file *t = s->n_files < DAY_FILES_MAX ? catalog_take(s->store->catalog, keys[i], &f) : NULL;

        if (t)
            s->files[s->n_files++] = t;
        else if (f.err != E_NOT_FOUND)
            e = fault_set(s->f, f.err ? f.err : E_INTERNAL, "%s", f.err ? f.text : "too many files of one day");
    }
    free(keys);
    return e;
}

static int64_t shift(int64_t ns, int64_t by)
{
    bool over = false;

    return add_sat(ns, by, &over);
}

static enum err pick_day(struct scan *s, int32_t day)
{
    int64_t from = day_start(day), last = shift(from, DAY_NS - 1), near, far;
    enum err e;

    if (s->sel->from_ns > from)
        from = s->sel->from_ns;
    if (s->sel->until_ns - 1 < last)
        last = s->sel->until_ns - 1;
    near = shift(from, -MARGIN_NS);
    far = shift(last, MARGIN_NS);
    s->n = 0;
    e = take_files(s, day_of(near), day_of(far));
    for (uint32_t i = 0; !e && i < s->n_files; i++)
        e = list_file(s, i, near, far);
    if (!e)
        e = give_day(s, from, last);
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
        return no_memory(s);
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
        return broken(s, t);
    service = db_bytes(q, 1);
    e = find_series(s, t, service, r.series_id, &series);
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
        return no_memory(&s);
    e = sel->profile ? scan_attempt(&s) : scan_window(&s);
    give_files_back(&s);
    store->host->account(store->host->ctx, "queries", -(int64_t)(s.cap * sizeof *s.rows));
    free(s.rows);
    free(s.series.slots);
    free(s.typesets.slots);
    arena_free(s.arena);
    return e;
}
