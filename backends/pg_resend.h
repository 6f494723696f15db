/*
 * What was committed lately, kept to be committed again: a standby that has taken over may lack the last transactions
 * of its primary, and a database that was stopped at once lacks marks, whose commits do not wait for the disk. Sending
 * again is harmless: all rows have names of their own.
 *
 * Transactions are kept as they were sent, for `resend_ms` behind the newest, within a bound of memory; they go again
 * when another database answers than the one that took them (its identity comes back with each). Marks go again
 * whenever the connection has been lost.
 */
#ifndef BACKENDS_PG_RESEND_H
#define BACKENDS_PG_RESEND_H

#include "backends/backend.h"
#include "backends/pg_link.h"

struct sample_store;
struct pg_kept; /* a transaction */

struct pg_resend {
    struct pg_kept *first, *last; /* oldest first */
    size_t bytes;
    uint64_t dropped;        /* for want of room, since they were last sent */
    struct pg_kept *next;    /* being sent; NULL: none, unless `ask` */
    uint64_t n_sent, n_lost; /* of this time */
    unsigned tries;
    bool waited; /* before the next try at making its day */
    bool ask;    /* which database this is, since the connection is a new one */
    bool sent;   /* the batch is in flight */
    struct pg_batch batch;
};

/* A put of this group has been committed. Without memory it is not kept. */
void pg_resend_keep(struct sample_store *s, const struct pg_batch *b, const struct group *g);
void pg_resend_up(struct sample_store *s);    /* the connection is a new one */
void pg_resend_start(struct sample_store *s); /* another database: everything goes again */
void pg_resend_step(struct sample_store *s);
void pg_resend_done(struct sample_store *s, bool ok, const struct pg_fault *f);
bool pg_resend_busy(const struct sample_store *s); /* something is still to be sent */
void pg_resend_free(struct sample_store *s);

#endif
