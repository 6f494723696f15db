/*
 * One connection to one SQLite database: statements by number, errors sorted into what a store can do about them. The
 * only file that knows sqlite3. A connection is used by one thread at a time.
 *
 * An error in preparing or binding sticks to the statement and comes out of db_step, so that a caller checks once.
 */
#ifndef BACKENDS_SQLITE_DB_H
#define BACKENDS_SQLITE_DB_H

#include "codecs/base.h"

enum db_result {
    DB_DONE,
    DB_ROW,
    DB_BAD,  /* these values can never be stored: a constraint, too big */
    DB_AGAIN /* full, I/O error, locked, no memory, damaged: not the values' fault */
};
enum db_mode { DB_READ, DB_WRITE }; /* DB_WRITE makes the database if there is none */

struct db;
struct db_stmt;

/* texts: the statements that db_stmt numbers; lives as long as the connection. NULL: f says why. */
struct db *db_open(const char *path, enum db_mode mode, const char *const *texts, unsigned n_texts,
                   struct fault *f) MUST_CHECK;
void db_close(struct db *d);                                      /* NULL is fine */
enum db_result db_exec(struct db *d, const char *sql) MUST_CHECK; /* any number of statements, no rows */
const char *db_error(const struct db *d);                         /* of the last call that failed */

/* Reset and without values; never NULL. Valid until db_close. */
struct db_stmt *db_stmt(struct db *d, unsigned number);
void db_bind_int(struct db_stmt *s, int at, int64_t v);     /* at counts from 1 */
void db_bind_text(struct db_stmt *s, int at, struct str v); /* borrowed until the next db_stmt */
void db_bind_blob(struct db_stmt *s, int at, struct str v); /* borrowed likewise */
enum db_result db_step(struct db_stmt *s) MUST_CHECK;
void db_reset(struct db_stmt *s);    /* ends its reading; what it lent is dead */
void db_rest(struct db *d);          /* db_reset of every statement: nothing is being read */
bool db_changed(const struct db *d); /* whether the last insert did insert */
int64_t db_last_id(const struct db *d);
/* Of the row, counting from 0; strings live until the next step. */
int64_t db_int(struct db_stmt *s, int at);
struct str db_bytes(struct db_stmt *s, int at);

/* Pages in the write-ahead log that no checkpoint has copied yet. A connection of ours never checkpoints by itself. */
int db_wal_pages(const struct db *d);
void db_checkpoint(struct db *d,
                   bool truncate); /* truncate: waits for readers (up to the busy time) and empties the log */

#endif
