/*
 * One connection to PostgreSQL, as libpq sees it: connect, send, flush, receive, none of which blocks. Who waits on the
 * socket, and for how long, is the caller's: the loop (pg_link.h) or a thread of its own (pg_call.h).
 */
#ifndef BACKENDS_PG_WIRE_H
#define BACKENDS_PG_WIRE_H

#include "codecs/base.h"

/* Parameters of a connection, names and values, ended by a NULL name. */
enum { PG_OPTIONS_MAX = 64 };
struct pg_options {
    char *names[PG_OPTIONS_MAX], *values[PG_OPTIONS_MAX];
    size_t n;
};
/* Takes "postgresql://..." apart. On failure nothing is left to free. */
enum err pg_options_parse(struct pg_options *o, const char *address, struct fault *f) MUST_CHECK;
void pg_options_free(struct pg_options *o);
const char *pg_options_get(const struct pg_options *o, const char *name); /* NULL: not set */
/* Sets or replaces; copies both. false: no memory. */
bool pg_options_set(struct pg_options *o, const char *name, const char *value) MUST_CHECK;

struct pg_wire;
enum pg_progress { PG_READING, PG_WRITING, PG_READY, PG_BROKEN };

/* NULL: no memory. pipeline: several statements under way, one transaction up to pg_wire_sync. Otherwise one at a time.
 */
struct pg_wire *pg_wire_start(const struct pg_options *o, bool pipeline) MUST_CHECK;
void pg_wire_finish(struct pg_wire *w); /* NULL is fine. Nobody may poll its socket any more. */
/* While connecting. The socket may be another one afterwards. */
enum pg_progress pg_wire_connect(struct pg_wire *w);
int pg_wire_socket(const struct pg_wire *w);
void pg_wire_error(const struct pg_wire *w, char *out, size_t size); /* one line */

/* A parameter in binary form; every parameter is named with its type in the statement. */
enum { PG_PARAMS_MAX = 20 };
struct pg_statement {
    const char *sql;
    struct buf params[PG_PARAMS_MAX];
    int n;
};
void pg_statement_free(struct pg_statement *s);
bool pg_statement_failed(const struct pg_statement *s); /* a parameter ran out of memory */

/* false: the connection is broken. single: rows come one by one. */
bool pg_wire_send(struct pg_wire *w, const struct pg_statement *s, bool single);
bool pg_wire_sync(struct pg_wire *w);
enum pg_progress pg_wire_flush(struct pg_wire *w); /* WRITING: not all has gone */
bool pg_wire_consume(struct pg_wire *w);

enum pg_event {
    PG_WAIT,  /* nothing more without reading the socket */
    PG_ROWS,  /* rows of a statement, maybe none; more may follow */
    PG_FAIL,  /* the statement failed: pg_fault */
    PG_GAP,   /* the statement is over */
    PG_SYNCED /* the transaction is over */
};
/* What has come. Of PG_ROWS and PG_FAIL: the caller clears *r. A broken connection fails, with an empty state. */
struct pg_result;
enum pg_event pg_wire_next(struct pg_wire *w, struct pg_result **r);
void pg_result_clear(struct pg_result *r);

struct pg_fault {
    char state[6]; /* SQLSTATE; empty: the connection is lost */
    char text[200];
};
void pg_result_fault(const struct pg_wire *w, const struct pg_result *r, struct pg_fault *f);

/* Values in binary form; NULL is empty, and 0. */
int pg_rows(const struct pg_result *r);
struct str pg_bytes(const struct pg_result *r, int row, int column);
int64_t pg_int(const struct pg_result *r, int row, int column); /* smallint, integer, bigint, boolean */

#endif
