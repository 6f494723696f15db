/*
 * The upload ledger beside the embedded store: one table in uploads.sqlite, of which each project keeps its newest
 * rows. The file is opened when it is first needed and again after a failure; losing it loses the ledger and nothing
 * else.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/sqlite_db.h"
#include "backends/uploads_store.h"

enum { WAL_PAGES = 1000 };
enum statement { BEGIN, COMMIT, ADD, TRIM, THERE, LIST };
static const char *const texts[] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ADD] = "INSERT INTO upload (project, good, body) VALUES (?, ?, ?)",
    [TRIM] = "DELETE FROM upload WHERE project = ?1 AND good = ?2 AND id <= (SELECT id FROM upload WHERE project = ?1 "
             "AND good = ?2 ORDER BY id DESC LIMIT 1 OFFSET ?3)",
    [THERE] = "SELECT 1 FROM sqlite_master WHERE name = 'upload_of_project'",
    [LIST] = "SELECT body FROM upload WHERE project = ? AND good = ? ORDER BY id DESC LIMIT ?",
};
static const char schema[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                             "CREATE TABLE IF NOT EXISTS upload (id INTEGER PRIMARY KEY, project TEXT NOT NULL, "
                             "good INTEGER NOT NULL, body BLOB NOT NULL);"
                             "CREATE INDEX IF NOT EXISTS upload_of_project ON upload (project, good);";

/* What this process has added of one kind since that was last cut back. */
struct growth {
    struct growth *next;
    bool good;
    uint32_t added;
    size_t len;
    char project[];
};

struct uploads_store {
    char *path;
    uint32_t keep;
    struct db *db; /* the thread's; NULL: not open */
    struct growth *growths;
};

static void sqlite_close(struct uploads_store *s)
{
    for (struct growth *g = s->growths, *next; g; g = next) {
        next = g->next;
        free(g);
    }
    db_close(s->db);
    free(s->path);
    free(s);
}

static struct uploads_store *sqlite_open(const struct uploads_options *o, struct str address, struct fault *f)
{
    struct uploads_store *s = calloc(1, sizeof *s);
    struct buf path = {0};

    buf_str(&path, address.len ? address : str_of(o->data_dir));
    (void)buf_printf(&path, "/uploads.sqlite");
    buf_char(&path, '\0');
    if (!s || path.failed) {
        buf_free(&path);
        free(s);
        fault_set(f, E_NO_MEMORY, NULL);
        return NULL;
    }
    s->path = path.p;
    s->keep = o->keep;
    return s;
}

static enum err down(struct uploads_store *s, struct fault *f)
{
    fault_set(f, E_STORE_DOWN, "%.100s: %.100s", s->path, s->db ? db_error(s->db) : "cannot be opened");
    db_close(s->db);
    s->db = NULL;
    return E_STORE_DOWN;
}

static enum err open_file(struct uploads_store *s, struct fault *f)
{
    char *slash = strrchr(s->path, '/');

    if (s->db)
        return E_OK;
    *slash = '\0';
    (void)mkdir(s->path, 0777); /* opening tells */
    *slash = '/';
    s->db = db_open(s->path, DB_WRITE, texts, COUNTOF(texts), f);
    if (!s->db)
        return f->err;
    return db_exec(s->db, schema) == DB_DONE ? E_OK : down(s, f);
}

/* Found, it moves to the front. NULL: no memory, and it is not cut back now. */
static struct growth *growth_of(struct uploads_store *s, const struct upload_item *i)
{
    struct growth **at = &s->growths, *g;

    while ((g = *at) && (g->good != i->good || g->len != i->project_len || memcmp(g->project, i->bytes, g->len) != 0))
        at = &g->next;
    if (g) {
        *at = g->next;
    } else {
        g = malloc(sizeof *g + i->project_len);
        if (!g)
            return NULL;
        *g = (struct growth){.good = i->good, .len = i->project_len, .added = s->keep}; /* by an earlier process */
        memcpy(g->project, i->bytes, g->len);
    }
    g->next = s->growths;
    s->growths = g;
    return g;
}

static enum db_result step(struct db_stmt *q)
{
    enum db_result r = db_step(q);

    db_reset(q);
    return r;
}

static enum db_result add(struct uploads_store *s, const struct upload_item *i)
{
    struct db_stmt *q = db_stmt(s->db, ADD);
    struct growth *g = growth_of(s, i);

    if (g)
        g->added++;
    db_bind_text(q, 1, upload_item_project(i));
    db_bind_int(q, 2, i->good);
    db_bind_blob(q, 3, upload_item_body(i));
    return step(q);
}

/* By a tenth at a time. */
static enum db_result trim(struct uploads_store *s)
{
    enum db_result r = DB_DONE;

    for (struct growth *g = s->growths; g && r == DB_DONE; g = g->next) {
        struct db_stmt *q;

        if (g->added <= s->keep / 10)
            continue;
        q = db_stmt(s->db, TRIM);
        db_bind_text(q, 1, (struct str){g->project, g->len});
        db_bind_int(q, 2, g->good);
        db_bind_int(q, 3, s->keep);
        r = step(q);
        g->added = 0;
    }
    return r;
}

static enum err sqlite_put(struct uploads_store *s, const struct upload_item *list, struct fault *f)
{
    enum err e = open_file(s, f);
    enum db_result r;

    if (e)
        return e;
    r = step(db_stmt(s->db, BEGIN));
    for (; list && r == DB_DONE; list = list->next)
        r = add(s, list);
    if (r == DB_DONE)
        r = trim(s);
    if (r == DB_DONE)
        r = step(db_stmt(s->db, COMMIT));
    if (r != DB_DONE) /* closing it rolls back */
        return down(s, f), r == DB_BAD ? E_INTERNAL : E_STORE_DOWN;
    if (db_wal_pages(s->db) > WAL_PAGES)
        db_checkpoint(s->db, false);
    return E_OK;
}

static enum err scan_kind(struct uploads_store *s, struct db *db, struct str project, bool good, uploads_row row,
                          void *ctx, struct fault *f)
{
    struct db_stmt *q = db_stmt(db, LIST);
    enum db_result r = DB_DONE;
    enum err e = E_OK;

    db_bind_text(q, 1, project);
    db_bind_int(q, 2, good);
    db_bind_int(q, 3, s->keep);
    while (!e && (r = db_step(q)) == DB_ROW)
        e = row(ctx, db_bytes(q, 0));
    if (!e && r != DB_DONE)
        e = fault_set(f, E_STORE_DOWN, "%.100s: %.100s", s->path, db_error(db));
    db_reset(q);
    return e;
}

/* A file may be so new that nothing is in it yet. */
static bool is_made(struct db *db)
{
    struct db_stmt *q = db_stmt(db, THERE);
    enum db_result r = db_step(q);

    db_reset(q);
    return r != DB_DONE;
}

static enum err sqlite_scan(struct uploads_store *s, struct str project, uploads_row row, void *ctx, struct fault *f)
{
    struct db *db;
    enum err e;

    if (access(s->path, F_OK) != 0 && errno == ENOENT)
        return E_OK; /* nothing came yet */
    db = db_open(s->path, DB_READ, texts, COUNTOF(texts), f);
    if (!db)
        return f->err;
    e = is_made(db) ? scan_kind(s, db, project, true, row, ctx, f) : E_OK;
    if (!e && is_made(db))
        e = scan_kind(s, db, project, false, row, ctx, f);
    db_close(db);
    return e;
}

const struct uploads_ops uploads_sqlite_ops = {
    .scheme = "sqlite", .open = sqlite_open, .put = sqlite_put, .scan = sqlite_scan, .close = sqlite_close};
