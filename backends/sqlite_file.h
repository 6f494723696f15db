/*
 * One file of the store: everything of one (retention class, day). The schema, and every statement that is ever run on
 * it. Rows are never changed or deleted (but a mark's bits, the sums in `share`, hours, and single profiles under
 * retention.raw); a file goes as a whole.
 */
#ifndef BACKENDS_SQLITE_FILE_H
#define BACKENDS_SQLITE_FILE_H

#include "backends/sqlite_db.h"
#include "backends/sqlite_hour_sql.h"
#include "codecs/hash.h"

struct file_key {
    uint16_t class_days;
    int32_t day;
};
static inline bool file_key_eq(struct file_key a, struct file_key b)
{
    return a.class_days == b.class_days && a.day == b.day;
}

/* Name, number of the statement, text. Places (?1, ?2, ...) and columns are in the order of the lists. */
#define FILE_STATEMENTS(X)                                                                                             \
    X(TABLES, "SELECT count(*) FROM sqlite_master")                                                                    \
    X(META, "SELECT value FROM meta WHERE key = ?1")                                                                   \
    X(PUT_SERVICE, "INSERT OR IGNORE INTO service(id, project, name) VALUES(?1, ?2, ?3)")                              \
    X(PUT_SERIES, "INSERT OR IGNORE INTO series(id, service, name, spy, labels) VALUES(?1, ?2, ?3, ?4, ?5)")           \
    X(PUT_TYPESET, "INSERT OR IGNORE INTO typeset(id, types) VALUES(?1, ?2)")                                          \
    X(PUT_SYMBOLS, "INSERT INTO symbols(service, block) VALUES(?1, ?2)")                                               \
    X(PUT_PROFILE,                                                                                                     \
      "INSERT INTO profile(service, time_ns, content, has_identity, boot, grp, place, series, duration_ns, stored_ns," \
      " n_samples, typeset, totals, main_type, format, trace, original_bytes, segment, segment_at)"                    \
      " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)"                  \
      " ON CONFLICT(boot, grp, place) DO NOTHING")                                                                     \
    X(PUT_BODY, "INSERT INTO body(id, body) VALUES(?1, ?2)")                                                           \
    X(PUT_MARK, "INSERT INTO mark(boot, grp, told) VALUES(?1, ?2, ?3)"                                                 \
                " ON CONFLICT(boot, grp) DO UPDATE SET told = told & excluded.told")                                   \
    X(PUT_SHARE, "INSERT OR REPLACE INTO share(service, type, minute, tier, packed) VALUES(?1, ?2, ?3, ?4, ?5)")       \
    X(GET_SHARE, "SELECT packed FROM share WHERE service = ?1 AND type = ?2 AND minute = ?3 AND tier = ?4")            \
    X(DROP_SHARE, "DELETE FROM share WHERE service = ?1 AND type = ?2 AND minute = ?3 AND tier = ?4")                  \
    X(GET_SHARES, "SELECT minute, packed FROM share WHERE service = ?1 AND type = ?2 AND minute BETWEEN ?3 AND ?4"     \
                  " ORDER BY minute")                                                                                  \
    X(GET_MARK, "SELECT told FROM mark WHERE boot = ?1 AND grp = ?2")                                                  \
    X(GET_SERVICES, "SELECT id, name FROM service WHERE project = ?1")                                                 \
    X(GET_SERVICE, "SELECT project, name FROM service WHERE id = ?1")                                                  \
    X(GET_SERIES, "SELECT name, spy, labels FROM series WHERE id = ?1")                                                \
    X(GET_TYPESET, "SELECT types FROM typeset WHERE id = ?1")                                                          \
    X(GET_SYMBOLS, "SELECT block FROM symbols WHERE service = ?1 ORDER BY id")                                         \
    X(GET_WINDOW, "SELECT id, time_ns, content, has_identity, boot, grp, place, series FROM profile"                   \
                  " WHERE service = ?1 AND time_ns BETWEEN ?2 AND ?3")                                                 \
    X(GET_ATTEMPT, "SELECT id, time_ns, content, has_identity, boot, grp, place, series, service FROM profile"         \
                   " WHERE boot = ?1 AND grp = ?2 AND place = ?3")                                                     \
    X(GET_PROFILE,                                                                                                     \
      "SELECT duration_ns, stored_ns, n_samples, typeset, totals, main_type, format, trace, original_bytes"            \
      " FROM profile WHERE id = ?1")                                                                                   \
    X(GET_BODY, "SELECT body FROM body WHERE id = ?1")                                                                 \
    X(EACH_PROFILE,                                                                                                    \
      "SELECT p.boot, p.grp, p.place, p.service, p.time_ns, p.content, p.has_identity, p.series, p.duration_ns,"       \
      " p.n_samples, p.totals, p.main_type, p.format, p.trace, p.original_bytes, s.name, s.spy, s.labels, t.types,"    \
      " v.project, v.name, b.body FROM profile p JOIN series s ON s.id = p.series JOIN typeset t ON t.id = p.typeset"  \
      " JOIN service v ON v.id = p.service JOIN body b ON b.id = p.id ORDER BY p.boot, p.grp, p.place")                \
    X(GET_ORIGINAL, "SELECT segment, segment_at FROM profile WHERE id = ?1")                                           \
    FILE_HOUR_STATEMENTS(X)
enum file_statement {
#define X(name, text) FILE_##name,
    FILE_STATEMENTS(X)
#undef X
        FILE_STATEMENT_COUNT
};

/* What columns without a segment say. */
enum { SEGMENT_OFF = 0, SEGMENT_LOST = -1 };

struct file {
    struct file_key key;
    struct db *db;
    struct file *next; /* of whoever holds it */
    uint64_t used;     /* stamp of its last use, or the catalog's generation when it was opened */
    bool flushing;     /* commits of the writer reach the disk before they return */
    bool has_hours;    /* not of a version without */
    bool raw_gone;     /* retention.raw: hours are all there is, but for profiles that came later */
};

/*
 * Opens, or makes; mode as in db_open. NULL: f says why; E_INTERNAL: not ours (another key, another version);
 * E_NOT_FOUND: nothing in it yet (a crash while it was made).
 */
struct file *file_open(const char *dir, struct file_key key, enum db_mode mode, const struct hash_key *hash,
                       struct fault *f) MUST_CHECK;
void file_close(struct file *t); /* NULL is fine */
/* Removes the file and what SQLite keeps beside it. */
void file_unlink(const char *dir, struct file_key key);
/* Looks again at what may change while it is open: has_hours, raw_gone. false: cannot be read. */
bool file_look(struct file *t) MUST_CHECK;
bool file_name_parse(const char *name, struct file_key *key); /* "c15-2026-11-30.db" */

static inline struct db_stmt *file_stmt(struct file *t, enum file_statement which)
{
    return db_stmt(t->db, which);
}

#endif
