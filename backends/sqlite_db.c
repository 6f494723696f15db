/* sqlite3, behind numbers and slices. */
#include "backends/sqlite_db.h"

#include <sqlite3.h>
#include <stdlib.h>

enum { BUSY_MS = 2000, ROW_MAX_BYTES = 256 << 20 };

struct db_stmt {
    sqlite3_stmt *stmt;
    struct db *db;
    int rc; /* SQLITE_OK, or the first thing that failed since db_stmt */
};

struct db {
    sqlite3 *handle;
    const char *const *texts;
    struct db_stmt *stmts;
    unsigned n_stmts;
    int wal_pages, wal_copied;
};

static enum db_result result_of(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_OK:
    case SQLITE_DONE:
        return DB_DONE;
    case SQLITE_ROW:
        return DB_ROW;
    case SQLITE_TOOBIG:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
        return DB_BAD;
    default:
        return DB_AGAIN;
    }
}

static int on_wal_commit(void *ctx, sqlite3 *handle, const char *name, int pages)
{
    struct db *d = ctx;

    (void)handle;
    (void)name;
    if (pages < d->wal_copied) /* the log began anew */
        d->wal_copied = 0;
    d->wal_pages = pages;
    return SQLITE_OK;
}

struct db *db_open(const char *path, enum db_mode mode, const char *const *texts, unsigned n_texts, struct fault *f)
{
    int flags = mode == DB_WRITE ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    struct db *d = calloc(1, sizeof *d);
    int rc;

    if (!d || !(d->stmts = calloc(n_texts, sizeof *d->stmts))) {
        free(d);
        fault_set(f, E_NO_MEMORY, NULL);
        return NULL;
    }
    d->texts = texts;
    d->n_stmts = n_texts;
    rc = sqlite3_open_v2(path, &d->handle, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK) {
        fault_set(f, E_STORE_DOWN, "%s: %s", path, sqlite3_errstr(rc));
        db_close(d);
        return NULL;
    }
    sqlite3_extended_result_codes(d->handle, 1);
    sqlite3_busy_timeout(d->handle, BUSY_MS);
    sqlite3_limit(d->handle, SQLITE_LIMIT_LENGTH, ROW_MAX_BYTES);
    sqlite3_wal_hook(d->handle, on_wal_commit, d);
    return d;
}

void db_close(struct db *d)
{
    if (!d)
        return;
    for (unsigned i = 0; i < d->n_stmts; i++)
        sqlite3_finalize(d->stmts[i].stmt);
    sqlite3_close(d->handle);
    free(d->stmts);
    free(d);
}

enum db_result db_exec(struct db *d, const char *sql)
{
    return result_of(sqlite3_exec(d->handle, sql, NULL, NULL, NULL));
}

const char *db_error(const struct db *d)
{
    return sqlite3_errmsg(d->handle);
}

struct db_stmt *db_stmt(struct db *d, unsigned number)
{
    struct db_stmt *s = &d->stmts[number];

    s->db = d;
    s->rc = SQLITE_OK;
    if (s->stmt) {
        sqlite3_reset(s->stmt);
        sqlite3_clear_bindings(s->stmt);
    } else {
        s->rc = sqlite3_prepare_v3(d->handle, d->texts[number], -1, SQLITE_PREPARE_PERSISTENT, &s->stmt, NULL);
    }
    return s;
}

static void bound(struct db_stmt *s, int rc)
{
    if (s->rc == SQLITE_OK)
        s->rc = rc;
}

void db_bind_int(struct db_stmt *s, int at, int64_t v)
{
    bound(s, sqlite3_bind_int64(s->stmt, at, v));
}

void db_bind_text(struct db_stmt *s, int at, struct str v)
{
    bound(s, sqlite3_bind_text64(s->stmt, at, v.len ? v.p : "", v.len, SQLITE_STATIC, SQLITE_UTF8));
}

void db_bind_blob(struct db_stmt *s, int at, struct str v)
{
    bound(s, sqlite3_bind_blob64(s->stmt, at, v.len ? v.p : "", v.len, SQLITE_STATIC));
}

enum db_result db_step(struct db_stmt *s)
{
    if (s->rc == SQLITE_OK || s->rc == SQLITE_ROW)
        s->rc = sqlite3_step(s->stmt);
    return result_of(s->rc);
}

void db_reset(struct db_stmt *s)
{
    sqlite3_reset(s->stmt);
}

void db_rest(struct db *d)
{
    for (unsigned i = 0; i < d->n_stmts; i++)
        sqlite3_reset(d->stmts[i].stmt);
}

bool db_changed(const struct db *d)
{
    return sqlite3_changes(d->handle) > 0;
}

int64_t db_last_id(const struct db *d)
{
    return sqlite3_last_insert_rowid(d->handle);
}

int64_t db_int(struct db_stmt *s, int at)
{
    return sqlite3_column_int64(s->stmt, at);
}

struct str db_bytes(struct db_stmt *s, int at)
{
    const void *p = sqlite3_column_blob(s->stmt, at);

    return (struct str){p, (size_t)sqlite3_column_bytes(s->stmt, at)};
}

int db_wal_pages(const struct db *d)
{
    return d->wal_pages - d->wal_copied;
}

void db_checkpoint(struct db *d, bool truncate)
{
    int mode = truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE, pages = 0, copied = 0;

    if (sqlite3_wal_checkpoint_v2(d->handle, NULL, mode, &pages, &copied) != SQLITE_OK || copied < 0)
        return;
    d->wal_pages = pages;
    d->wal_copied = copied;
}
