/* Schema of one (class, day), its name in the folder, and the check that it is ours. */
#include "backends/sqlite_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/day.h"

enum { NAME_BYTES = 48, SQL_BYTES = 320 };

/* Version 1 knew no hours: such files are read as they are, and become version 2 when they are written to. */
#define SCHEMA_VERSION "2"
#define SCHEMA_VERSION_OLD "1"

static const char *const statements[] = {
#define X(name, text) [FILE_##name] = text,
    FILE_STATEMENTS(X)
#undef X
};

/*
 * The body has a table of its own, so that lists and totals are read without it; profile_time holds all that counting
 * needs, so that a window's rows are chosen from the index alone.
 */
static const char schema[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE service(id INTEGER PRIMARY KEY, project TEXT NOT NULL, name TEXT NOT NULL);"
    "CREATE TABLE series(id INTEGER PRIMARY KEY, service INTEGER NOT NULL, name TEXT NOT NULL, spy TEXT NOT NULL,"
    " labels BLOB NOT NULL);"
    "CREATE TABLE typeset(id INTEGER PRIMARY KEY, types BLOB NOT NULL);"
    "CREATE TABLE profile(id INTEGER PRIMARY KEY, service INTEGER NOT NULL, time_ns INTEGER NOT NULL,"
    " content BLOB NOT NULL, has_identity INTEGER NOT NULL, boot INTEGER NOT NULL, grp INTEGER NOT NULL,"
    " place INTEGER NOT NULL, series INTEGER NOT NULL, duration_ns INTEGER NOT NULL, stored_ns INTEGER NOT NULL,"
    " n_samples INTEGER NOT NULL, typeset INTEGER NOT NULL, totals BLOB NOT NULL, main_type INTEGER NOT NULL,"
    " format TEXT NOT NULL, trace TEXT NOT NULL, original_bytes INTEGER NOT NULL, segment INTEGER NOT NULL,"
    " segment_at INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX profile_attempt ON profile(boot, grp, place);"
    "CREATE INDEX profile_time ON profile(service, time_ns, content, has_identity, boot, grp, place, series);"
    "CREATE TABLE body(id INTEGER PRIMARY KEY, body BLOB NOT NULL);"
    "CREATE TABLE symbols(id INTEGER PRIMARY KEY, service INTEGER NOT NULL, block BLOB NOT NULL);"
    "CREATE INDEX symbols_service ON symbols(service);"
    "CREATE TABLE share(service INTEGER NOT NULL, type INTEGER NOT NULL, minute INTEGER NOT NULL, tier INTEGER NOT "
    "NULL, packed BLOB NOT "
    "NULL);"
    "CREATE UNIQUE INDEX share_minute ON share(service, type, minute, tier);"
    "CREATE TABLE mark(boot INTEGER NOT NULL, grp INTEGER NOT NULL, told INTEGER NOT NULL, PRIMARY KEY(boot, grp))"
    " WITHOUT ROWID;" FILE_HOUR_SCHEMA;
static const char upgrade[] =
    FILE_HOUR_SCHEMA "INSERT OR IGNORE INTO dirty(service, hour, gen) SELECT DISTINCT service, time_ns / 3600000000000,"
                     " 0 FROM profile;"
                     "UPDATE meta SET value = '" SCHEMA_VERSION "' WHERE key = 'version';";

static void name_of(struct file_key key, char out[NAME_BYTES])
{
    char text[DAY_TEXT];

    day_format(key.day, text);
    snprintf(out, NAME_BYTES, "c%u-%s.db", (unsigned)key.class_days, text);
}

bool file_name_parse(const char *name, struct file_key *key)
{
    unsigned class_days;
    int used = 0;

    if (sscanf(name, "c%u-%n", &class_days, &used) != 1 || !used)
        return false;
    name += used;
    key->class_days = (uint16_t)class_days;
    return day_parse(&name, &key->day) && strcmp(name, ".db") == 0;
}

/* false: no memory. */
static bool path_of(const char *dir, struct file_key key, const char *suffix, struct buf *out)
{
    char name[NAME_BYTES];

    name_of(key, name);
    buf_printf(out, "%s/%s%s", dir, name, suffix);
    buf_char(out, '\0');
    return !out->failed;
}

static enum err check_meta(struct file *t, const char *key, const char *want, const char *wrong, struct fault *f)
{
    struct db_stmt *q = file_stmt(t, FILE_META);
    char name[NAME_BYTES];
    enum err e = E_OK;

    name_of(t->key, name);
    db_bind_text(q, 1, str_of(key));
    switch (db_step(q)) {
    case DB_ROW:
        if (!str_eq(db_bytes(q, 0), str_of(want)))
            e = fault_set(f, E_INTERNAL, "%s: %s", name, wrong);
        break;
    case DB_DONE:
        e = fault_set(f, E_INTERNAL, "%s: has no %s, so it is not a file of this store", name, key);
        break;
    default:
        e = fault_set(f, E_STORE_DOWN, "%s: %s", name, db_error(t->db));
    }
    db_reset(q);
    return e;
}

static enum err check_version(struct file *t, struct fault *f)
{
    struct fault newer = {0};

    t->has_hours = check_meta(t, "version", SCHEMA_VERSION, "", &newer) == E_OK;
    return t->has_hours ? E_OK
                        : check_meta(t, "version", SCHEMA_VERSION_OLD, "written by another version of flamegate", f);
}

static enum err check_ours(struct file *t, const char *fingerprint, struct fault *f)
{
    struct db_stmt *q = file_stmt(t, FILE_TABLES);
    enum err e = E_OK;

    if (db_step(q) != DB_ROW)
        e = fault_set(f, E_STORE_DOWN, "cannot read a store file: %s", db_error(t->db));
    else if (db_int(q, 0) == 0)
        e = fault_set(f, E_NOT_FOUND, "empty");
    db_reset(q);
    if (!e)
        e = check_version(t, f);
    return e ? e : check_meta(t, "hash_key", fingerprint, "written with another hash_key_file", f);
}

static enum db_result upgrade_old(struct file *t)
{
    struct db_stmt *q = file_stmt(t, FILE_META);
    enum db_result r;
    bool old;

    db_bind_text(q, 1, STR("version"));
    r = db_step(q);
    old = r == DB_ROW && str_eq(db_bytes(q, 0), STR(SCHEMA_VERSION_OLD));
    db_reset(q);
    if (r == DB_AGAIN)
        return r;
    return old ? db_exec(t->db, upgrade) : DB_DONE;
}

/* Makes the schema where there is none; in one transaction, so that a crash leaves none or all. */
static enum err prepare_write(struct file *t, const char *fingerprint, struct fault *f)
{
    char sql[SQL_BYTES];
    enum db_result r = db_exec(
        t->db,
        "PRAGMA page_size=8192; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        "PRAGMA cache_size=-4096; PRAGMA journal_size_limit=67108864; BEGIN IMMEDIATE;");

    t->flushing = true;
    if (r == DB_DONE && db_exec(t->db, "SELECT 1 FROM meta") != DB_DONE) {
        snprintf(sql, sizeof sql, "INSERT INTO meta VALUES('version', '" SCHEMA_VERSION "'), ('hash_key', '%s');",
                 fingerprint);
        r = db_exec(t->db, schema);
        if (r == DB_DONE)
            r = db_exec(t->db, sql);
    } else if (r == DB_DONE)
        r = upgrade_old(t);
    if (r == DB_DONE)
        r = db_exec(t->db, "COMMIT");
    return r == DB_DONE ? E_OK : fault_set(f, E_STORE_DOWN, "cannot make or open a store file: %s", db_error(t->db));
}

struct file *file_open(const char *dir, struct file_key key, enum db_mode mode, const struct hash_key *hash,
                       struct fault *f)
{
    struct file *t = calloc(1, sizeof *t);
    struct buf path = {0};
    char fingerprint[17];
    enum err e = E_OK;

    if (!t || !path_of(dir, key, "", &path)) {
        free(t);
        buf_free(&path);
        fault_set(f, E_NO_MEMORY, NULL);
        return NULL;
    }
    hash_key_fingerprint(hash, fingerprint);
    t->key = key;
    t->db = db_open(path.p, mode, statements, FILE_STATEMENT_COUNT, f);
    buf_free(&path);
    if (t->db && mode == DB_WRITE)
        e = prepare_write(t, fingerprint, f);
    else if (t->db && db_exec(t->db, "PRAGMA cache_size=-1024") != DB_DONE)
        e = fault_set(f, E_STORE_DOWN, "cannot read a store file: %s", db_error(t->db));
    if (!t->db || e || check_ours(t, fingerprint, f) || !file_look(t)) {
        file_close(t);
        return NULL;
    }
    return t;
}

bool file_look(struct file *t)
{
    struct db_stmt *q;
    struct fault f = {0};
    enum db_result r;

    if (!t->has_hours && check_version(t, &f))
        return false;
    q = file_stmt(t, FILE_META);
    db_bind_text(q, 1, STR("raw"));
    r = db_step(q);
    t->raw_gone = r == DB_ROW;
    db_reset(q);
    return r == DB_ROW || r == DB_DONE;
}

void file_close(struct file *t)
{
    if (!t)
        return;
    db_close(t->db);
    free(t);
}

void file_unlink(const char *dir, struct file_key key)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};

    for (size_t i = 0; i < COUNTOF(suffixes); i++) {
        struct buf path = {0};

        if (path_of(dir, key, suffixes[i], &path))
            unlink(path.p);
        buf_free(&path);
    }
}
