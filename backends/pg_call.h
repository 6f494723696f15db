/*
 * A connection on which a thread of its own waits: for reading, and for what changes tables. A wait looks every 100 ms
 * at whether it is still wanted; what is not is closed, and the server finds out when it next writes.
 */
#ifndef BACKENDS_PG_CALL_H
#define BACKENDS_PG_CALL_H

#include <stdatomic.h>

#include "backends/pg_wire.h"

/* A few idle connections of one address. Any thread. */
struct pg_pool;
struct pg_pool *pg_pool_new(const struct pg_options *o) MUST_CHECK; /* o outlives it. NULL: no memory */
void pg_pool_free(struct pg_pool *p);                               /* nothing may be taken. NULL is fine */
void pg_pool_drop_idle(struct pg_pool *p);

struct pg_call;
/* Connects when it is first used. cancel: may be NULL; outlives the call. NULL: no memory. */
struct pg_call *pg_call_take(struct pg_pool *p, const atomic_bool *cancel) MUST_CHECK;
/* Back into the pool, unless it broke. */
void pg_call_give(struct pg_call *c);

enum pg_call_end {
    PG_CALL_OK,
    PG_CALL_FAILED, /* the statement; the fault says why */
    PG_CALL_LOST,   /* no connection, or it broke, or the deadline passed */
    PG_CALL_CANCELLED,
    PG_CALL_STOPPED /* by the visitor */
};
enum pg_call_how {
    PG_WHOLE, /* the answer is received first, and then visited */
    PG_SINGLE /* row by row, as they come: memory stays flat; what a stop leaves unread costs the connection */
};
/* Not E_OK stops. */
typedef enum err (*pg_row)(void *ctx, const struct pg_result *r, int row);

/* Runs the statement and visits its rows; row NULL: there are none. An idle connection that the server has closed
 * meanwhile is replaced once. */
enum pg_call_end pg_call_run(struct pg_call *c, const struct pg_statement *s, enum pg_call_how how, int64_t deadline_ms,
                             pg_row row, void *ctx, struct pg_fault *f) MUST_CHECK;

#endif
