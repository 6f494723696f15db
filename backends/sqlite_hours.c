/*
 * Hours of the embedded store, write side (backends/hours.h). Reading happens here, on the compaction thread; writing
 * in small pieces on the lane, so that puts need not wait long.
 */
#include "backends/hours.h"

#include <stdlib.h>

#include "backends/day.h"
#include "backends/sqlite_store.h"

enum { PIECE_BYTES = 4 << 20 };
/* A row that was replaced stays this long: longer than any query. */
static const int64_t DEAD_NS = 600 * INT64_C(1000000000);

/* Beginning to list: what is put from now on leaves dirty rows of its own. */
struct list_job {
    struct lane_job job;
    int64_t gen;
};

static void begin_listing(struct sample_store *s, struct lane_job *j)
{
    struct list_job *l = (struct list_job *)j;

    s->dirty_gen = l->gen;
    s->listed_boot = s->put_boot;
    s->listed_group = s->put_group;
}

static enum err broken(const struct file *t, struct fault *f)
{
    return fault_set(f, E_STORE_DOWN, "the store cannot be read: %s", db_error(t->db));
}

/* which: EACH_DIRTY or EACH_HOUR. */
struct listing {
    enum file_statement which;
    int64_t last;
    struct str tokens;
    hour_due due;
    void *ctx;
};

static enum err list_rows(struct file *t, const struct listing *l, struct fault *f)
{
    struct db_stmt *q = file_stmt(t, l->which);
    enum db_result r = DB_DONE;
    enum err e = E_OK;

    db_bind_int(q, 1, l->last);
    while (!e && (r = db_step(q)) == DB_ROW) {
        struct hour_todo todo = {
            .hour = db_int(q, 0), .project = db_bytes(q, 2), .service = db_bytes(q, 3), .tokens = l->tokens};
        e = l->due(l->ctx, &todo);
    }
    db_reset(q);
    return e || r == DB_DONE ? e : broken(t, f);
}

/* Any two generations differ, also those of two processes. */
static bool new_gen(int64_t *gen)
{
    if (uv_random(NULL, NULL, gen, sizeof *gen, 0, NULL) != 0)
        return false;
    *gen &= INT64_MAX;
    return true;
}

static enum err list_file(void *ctx, struct file *t, struct fault *f)
{
    const struct listing *l = ctx;

    if (!file_look(t))
        return broken(t, f);
    return t->has_hours && (l->which != FILE_EACH_DIRTY || !t->raw_gone) ? list_rows(t, l, f) : E_OK;
}

static enum err list_files(struct sample_store *s, struct listing *l, struct fault *f)
{
    return catalog_each(s->catalog, INT32_MIN, INT32_MAX, list_file, l, f);
}

/* A service may be dirty in two files: it is told of twice then, which the driver has to bear. */
static enum err sqlite_due(struct sample_store *s, int64_t last, hour_due due, void *ctx, struct fault *f)
{
    struct list_job j = {.job.run = begin_listing};
    struct listing l = {FILE_EACH_DIRTY, last, {(const char *)&j.gen, sizeof j.gen}, due, ctx};

    if (!new_gen(&j.gen))
        return fault_set(f, E_NO_MEMORY, NULL);
    sqlite_run_job(s, &j.job);
    return list_files(s, &l, f);
}

static enum err sqlite_done(struct sample_store *s, hour_due each, void *ctx, struct fault *f)
{
    struct listing l = {FILE_EACH_HOUR, INT64_MAX, {NULL, 0}, each, ctx};

    return list_files(s, &l, f);
}

/* One piece of one file's rows: put there, but dead as yet; or all of them made alive, and the old ones dead. */
struct write_job {
    struct lane_job job;
    struct file_key key;
    int64_t service, hour, now_ns, gen;
    const struct hour_row *rows;
    int64_t *ids;
    uint32_t first, until; /* of rows */
    bool put, show, drop_dirty, flush;
    bool ok;
};

static bool put_row(struct file *t, const struct write_job *w, const struct hour_row *r, int64_t *id)
{
    struct db_stmt *q = file_stmt(t, FILE_PUT_HOUR);
    bool ok;

    db_bind_int(q, 1, w->service);
    db_bind_int(q, 2, w->hour);
    db_bind_int(q, 3, w->now_ns);
    db_bind_int(q, 4, r->first_ns);
    db_bind_int(q, 5, (int64_t)r->first.boot);
    db_bind_int(q, 6, (int64_t)r->first.group);
    db_bind_int(q, 7, r->first.place);
    db_bind_blob(q, 8, r->about);
    ok = db_step(q) == DB_DONE;
    db_reset(q);
    *id = db_last_id(t->db);
    q = file_stmt(t, FILE_PUT_HOUR_BODY);
    db_bind_int(q, 1, *id);
    db_bind_blob(q, 2, r->body);
    ok = ok && db_step(q) == DB_DONE;
    db_reset(q);
    return ok;
}

static bool put_piece(struct file *t, const struct write_job *w)
{
    for (uint32_t i = w->first; i < w->until; i++)
        if (w->rows[i].class_days == w->key.class_days && !put_row(t, w, &w->rows[i], &w->ids[i]))
            return false;
    return true;
}

static bool run(struct file *t, enum file_statement which, int n, const int64_t *values)
{
    struct db_stmt *q = file_stmt(t, which);
    bool ok;

    for (int i = 0; i < n; i++)
        db_bind_int(q, i + 1, values[i]);
    ok = db_step(q) == DB_DONE;
    db_reset(q);
    return ok;
}

static bool show(struct file *t, const struct write_job *w)
{
    int64_t end[] = {w->service, w->hour, w->now_ns}, before = w->now_ns - DEAD_NS;
    bool ok = run(t, FILE_END_HOURS, 3, end);

    for (uint32_t i = w->first; ok && i < w->until; i++)
        if (w->rows[i].class_days == w->key.class_days)
            ok = run(t, FILE_BEGIN_HOUR, 1, &w->ids[i]);
    return ok && run(t, FILE_DROP_HOUR_BODIES, 1, &before) && run(t, FILE_DROP_HOURS, 1, &before);
}

static void write_piece(struct sample_store *s, struct lane_job *j)
{
    struct write_job *w = (struct write_job *)j;
    struct file *t = catalog_has(s->catalog, w->key) ? sqlite_write_file(s, w->key) : NULL;
    int64_t dirty[] = {w->service, w->hour, w->gen};
    bool keep = t && t->raw_gone; /* its hours are all there is of their profiles */

    w->ok = t && sqlite_begin(t, w->flush) && (!w->put || keep || put_piece(t, w)) &&
            (!w->show || keep || show(t, w)) && (!w->drop_dirty || run(t, FILE_DROP_DIRTY, 3, dirty)) &&
            db_exec(t->db, "COMMIT") == DB_DONE;
    if (t && !w->ok)
        sqlite_give_up(s, t, "hour_failed");
}

static bool has_rows(const struct write_job *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (w->rows[i].class_days == w->key.class_days)
            return true;
    return false;
}

/* Bodies first, piece by piece, then one small transaction that shows them; dirty rows go with that one. */
static bool write_file(struct sample_store *s, struct write_job *w, uint32_t n, bool dirty)
{
    w->put = true;
    w->show = w->drop_dirty = false;
    for (w->first = 0; has_rows(w, n) && w->first < n; w->first = w->until) {
        size_t bytes = 0;

        for (w->until = w->first; w->until < n && bytes < PIECE_BYTES; w->until++)
            if (w->rows[w->until].class_days == w->key.class_days)
                bytes += w->rows[w->until].body.len;
        sqlite_run_job(s, &w->job);
        if (!w->ok)
            return false;
    }
    w->put = false;
    w->show = true;
    w->drop_dirty = dirty;
    w->first = 0;
    w->until = n;
    sqlite_run_job(s, &w->job);
    return w->ok;
}

/*
 * Files of the hour's own day get rows, and so may those beside it have dirty ones. With one file of that day all is
 * one transaction of it; with several each gets its rows first, on the disk, and dirty rows go after.
 */
static bool write_files(struct sample_store *s, struct write_job *w, const struct file_key *keys, size_t n_keys,
                        uint32_t n)
{
    int32_t day = day_of(w->hour * HOUR_NS);
    bool ok = true, alone = n_keys == 1 && keys[0].day == day;

    w->flush = !alone;
    for (size_t i = 0; ok && i < n_keys; i++) {
        w->key = keys[i];
        if (keys[i].day == day)
            ok = write_file(s, w, n, alone);
    }
    for (size_t i = 0; ok && i < n_keys && !alone; i++) {
        w->key = keys[i];
        w->show = false;
        w->drop_dirty = true;
        sqlite_run_job(s, &w->job);
        ok = w->ok;
    }
    return ok;
}

static enum err sqlite_write_hour(struct sample_store *s, const struct hour_todo *todo, const struct hour_row *rows,
                                  uint32_t n, bool *written, struct fault *f)
{
    struct write_job w = {
        .job.run = write_piece,
        .service = sqlite_service_id(s, todo->project, todo->service),
        .hour = todo->hour,
        .now_ns = day_now_ns(),
        .rows = rows,
        .ids = calloc((size_t)n + 1, sizeof *w.ids),
    };
    int64_t from = todo->hour * HOUR_NS - HOUR_MARGIN_NS, last = from + HOUR_NS + 2 * HOUR_MARGIN_NS - 1;
    struct file_key *keys = NULL;
    size_t n_keys;
    bool ok = w.ids && todo->tokens.len == sizeof w.gen &&
              catalog_list(s->catalog, day_of(from), day_of(last), &keys, &n_keys);

    if (ok)
        memcpy(&w.gen, todo->tokens.p, sizeof w.gen);
    ok = ok && write_files(s, &w, keys, n_keys, n);
    free(keys);
    free(w.ids);
    *written = ok;
    return ok ? E_OK : fault_set(f, E_STORE_DOWN, "an hour could not be written");
}

const struct hour_ops sqlite_hour_ops = {
    .due = sqlite_due,
    .done = sqlite_done,
    .write = sqlite_write_hour,
    .drop_raw = sqlite_drop_raw,
};
