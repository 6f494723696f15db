/* A file at a time, its rows in the order of their groups, each with the symbols that it needs. */
#include "backends/sqlite_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "backends/blob.h"
#include "backends/sqlite_catalog.h"

enum { ROW_BYTES = 256 << 20 };

/* The symbols of a service in the file being read. */
struct shelf {
    int64_t service;
    struct symtab *symbols;
};

struct walk {
    const struct hash_key *key;
    walk_group group;
    void *ctx;
    struct fault *f;
    struct file *file;
    struct shelf *shelves;
    size_t n_shelves;
    uint64_t hours_only;
    struct group now;
};

static enum err no_memory(struct walk *w)
{
    return fault_set(w->f, E_NO_MEMORY, NULL);
}

static enum err broken(struct walk *w)
{
    return fault_set(w->f, E_STORE_DOWN, "cannot be read: %s", db_error(w->file->db));
}

static void clear_shelves(struct walk *w)
{
    for (size_t i = 0; i < w->n_shelves; i++)
        symtab_free(w->shelves[i].symbols);
    free(w->shelves);
    w->shelves = NULL;
    w->n_shelves = 0;
}

static enum err read_symbols(struct walk *w, int64_t service, struct symtab *t)
{
    struct db_stmt *q = file_stmt(w->file, FILE_GET_SYMBOLS);
    enum db_result r = DB_DONE;
    enum err e = E_OK;

    db_bind_int(q, 1, service);
    while (!e && (r = db_step(q)) == DB_ROW)
        e = symtab_add(t, db_bytes(q, 0), w->f);
    db_reset(q);
    return e || r == DB_DONE ? e : broken(w);
}

/* Read once per file. NULL: f says why. */
static struct symtab *find_symbols(struct walk *w, int64_t service)
{
    for (size_t i = 0; i < w->n_shelves; i++)
        if (w->shelves[i].service == service)
            return w->shelves[i].symbols;
    struct shelf *more = realloc(w->shelves, (w->n_shelves + 1) * sizeof *more);
    struct symtab *t = symtab_new();
    if (more)
        w->shelves = more;
    if (!more || !t) {
        symtab_free(t);
        no_memory(w);
        return NULL;
    }
    w->shelves[w->n_shelves++] = (struct shelf){service, t};
    return read_symbols(w, service, t) ? NULL : t;
}

/* Those of all its stacks: the store that they go to writes what it lacks. */
static enum err give_symbols(struct walk *w, struct record *r, int64_t service, struct arena *a)
{
    struct symtab *t = find_symbols(w, service);
    struct record_view v;
    enum err e = t ? record_open(&v, r->body, a, w->f) : w->f->err;

    if (!e && !(r->symbols = symtab_pick(t, v.stack_ids, v.n_stacks, w->key)))
        return no_memory(w);
    r->bytes += r->symbols ? r->symbols->bytes : 0;
    return e;
}

/* The row that EACH_PROFILE stands on, its strings borrowed from there or in the arena. */
static enum err read_row(struct walk *w, struct db_stmt *q, struct arena *a, struct record *r)
{
    struct str content = db_bytes(q, 5);
    uint32_t n_types = 0;
    enum err e;

    *r = (struct record){
        .series = {.project = db_bytes(q, 19),
                   .service = db_bytes(q, 20),
                   .name = db_bytes(q, 15),
                   .spy = db_bytes(q, 16)},
        .series_id = (uint64_t)db_int(q, 7),
        .time_ns = db_int(q, 4),
        .duration_ns = db_int(q, 8),
        .n_samples = (uint32_t)db_int(q, 9),
        .primary = (uint32_t)db_int(q, 11),
        .format = db_bytes(q, 12),
        .trace_id = db_bytes(q, 13),
        .original_bytes = (uint64_t)db_int(q, 14),
        .identity = db_int(q, 6) != 0,
        .body = db_bytes(q, 21),
    };
    if (content.len != sizeof r->content_id)
        return fault_set(w->f, E_INTERNAL, "a row is damaged");
    memcpy(&r->content_id, content.p, content.len);
    e = blob_read_labels(db_bytes(q, 17), a, &r->series.labels, &r->series.n_labels, w->f);
    if (!e)
        e = blob_read_types(db_bytes(q, 18), a, &r->types, &n_types, w->f);
    r->n_types = n_types;
    return e ? e : blob_read_totals(db_bytes(q, 10), r->types, n_types, w->f);
}

static enum err add_row(struct walk *w, struct db_stmt *q)
{
    struct arena *a = arena_new(ROW_BYTES);
    struct record borrowed, *r = NULL;
    enum err e = a ? read_row(w, q, a, &borrowed) : no_memory(w);

    if (!e && !(r = record_copy(&borrowed)))
        e = no_memory(w);
    if (!e)
        e = give_symbols(w, r, db_int(q, 3), a);
    arena_free(a);
    if (e) {
        record_free(r);
        return e;
    }
    w->now.boot = (uint64_t)db_int(q, 0);
    w->now.id = (uint64_t)db_int(q, 1);
    w->now.records[w->now.n++] = r;
    return E_OK;
}

static void drop_group(struct walk *w)
{
    for (uint16_t i = 0; i < w->now.n; i++)
        record_free(w->now.records[i]);
    w->now.n = 0;
}

static enum err read_mark(struct walk *w, uint64_t *told)
{
    struct db_stmt *q = file_stmt(w->file, FILE_GET_MARK);
    enum db_result r;

    db_bind_int(q, 1, (int64_t)w->now.boot);
    db_bind_int(q, 2, (int64_t)w->now.id);
    r = db_step(q);
    *told = r == DB_ROW ? (uint64_t)db_int(q, 0) : 0;
    db_reset(q);
    return r == DB_ROW || r == DB_DONE ? E_OK : broken(w);
}

/* The bits of the rows that are there, moved up as the rows were. */
static uint64_t close_gaps(uint64_t bits, uint64_t places)
{
    uint64_t out = 0;

    for (unsigned from = 0, to = 0; from < GROUP_MAX; from++)
        if (places >> from & 1)
            out |= (bits >> from & 1) << to++;
    return out;
}

static enum err give_group(struct walk *w, uint64_t places)
{
    uint64_t told = 0;
    enum err e = w->now.n ? read_mark(w, &told) : E_OK;

    if (!e && w->now.n) {
        w->now.class_days = w->file->key.class_days;
        w->now.day = w->file->key.day;
        e = w->group(w->ctx, &w->now, close_gaps(told, places), w->f);
    }
    drop_group(w);
    return e;
}

static enum err walk_file(struct walk *w)
{
    struct db_stmt *q = file_stmt(w->file, FILE_EACH_PROFILE);
    enum db_result r;
    uint64_t places = 0;
    enum err e = E_OK;

    while (!e && (r = db_step(q)) == DB_ROW) {
        if (w->now.n && (w->now.boot != (uint64_t)db_int(q, 0) || w->now.id != (uint64_t)db_int(q, 1))) {
            e = give_group(w, places);
            places = 0;
        }
        places |= UINT64_C(1) << (db_int(q, 2) & (GROUP_MAX - 1));
        if (!e)
            e = add_row(w, q);
    }
    db_reset(q);
    if (!e)
        e = r == DB_DONE ? give_group(w, places) : broken(w);
    drop_group(w);
    clear_shelves(w);
    return e;
}

static enum err walk_files(struct walk *w, struct catalog *c)
{
    struct file_key *keys = NULL;
    size_t n = 0;
    enum err e = catalog_list(c, INT32_MIN, INT32_MAX, &keys, &n) ? E_OK : no_memory(w);

    for (size_t i = 0; !e && i < n; i++) {
        struct fault why = {0};

        w->file = catalog_take(c, keys[i], &why);
        if (!w->file && why.err != E_NOT_FOUND)
            e = fault_set(w->f, why.err, "%s", why.text);
        if (!w->file)
            continue;
        w->hours_only += w->file->raw_gone && w->file->has_hours;
        e = walk_file(w);
        catalog_give(c, w->file);
    }
    free(keys);
    return e;
}

/* The lock that a running gateway holds. -1: f says why. */
static int lock(const char *samples, struct fault *f)
{
    struct buf path = {0};
    int fd = -1;

    buf_printf(&path, "%s/lock", samples);
    buf_char(&path, '\0');
    if (path.failed)
        fault_set(f, E_NO_MEMORY, NULL);
    else if ((fd = open(path.p, O_RDWR | O_CLOEXEC)) < 0)
        fault_set(f, E_NOT_FOUND, "%s: %s: no data_dir of an embedded store", path.p, strerror(errno));
    else if (flock(fd, LOCK_EX | LOCK_NB)) {
        fault_set(f, E_STORE_DOWN, "%s: in use by another process: stop its gateway first", samples);
        close(fd);
        fd = -1;
    }
    buf_free(&path);
    return fd;
}

enum err sqlite_walk(const char *dir, const struct hash_key *key, walk_group group, void *ctx, uint64_t *hours_only,
                     struct fault *f)
{
    struct walk w = {.key = key, .group = group, .ctx = ctx, .f = f};
    struct buf samples = {0};
    struct catalog *c = NULL;
    int fd = -1;

    *f = (struct fault){0};
    buf_printf(&samples, "%s/samples", dir);
    buf_char(&samples, '\0');
    if (samples.failed)
        no_memory(&w);
    else
        fd = lock(samples.p, f);
    if (fd >= 0)
        c = catalog_open(samples.p, key, f);
    if (c)
        (void)walk_files(&w, c);
    catalog_close(c);
    if (fd >= 0)
        close(fd);
    buf_free(&samples);
    *hours_only = w.hours_only;
    return f->err;
}
