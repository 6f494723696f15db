/*
 * The writer's connection: libpq on the loop, one transaction of several statements in flight at a time (a pipeline),
 * reconnecting by itself with back-off, every wait with a deadline.
 *
 * Nothing pushes back in libpq, so what is in flight is bounded by what one batch holds.
 */
#ifndef BACKENDS_PG_LINK_H
#define BACKENDS_PG_LINK_H

#include <uv.h>

#include "backends/pg_wire.h"

enum { PG_BATCH_MAX = 8 };
struct pg_batch {
    struct pg_statement statements[PG_BATCH_MAX];
    int n;
    char head[128]; /* set: the second column of the first statement's row */
};
struct pg_statement *pg_batch_add(struct pg_batch *b, const char *sql);
void pg_batch_free(struct pg_batch *b);
bool pg_batch_failed(const struct pg_batch *b);

/* All on the loop, none from inside a call of ours. */
struct pg_link_events {
    void (*up)(void *ctx);
    void (*down)(void *ctx, const char *why); /* before a batch's done, where one was in flight */
    /* ok: committed. Not ok and f->state empty: lost, and nobody knows whether it was committed. */
    void (*done)(void *ctx, bool ok, const struct pg_fault *f);
};

struct pg_link;
/* Starts connecting. NULL: no memory. options outlive it. */
struct pg_link *pg_link_open(uv_loop_t *loop, const struct pg_options *options, const struct pg_link_events *events,
                             void *ctx) MUST_CHECK;
bool pg_link_up(const struct pg_link *l);
/* Connected, nothing in flight. The batch is the caller's, untouched until done. */
void pg_link_run(struct pg_link *l, struct pg_batch *b, uint64_t deadline_ms);
bool pg_link_busy(const struct pg_link *l);
/* Hangs up, and connects again after a while: a server that cannot be written to. Nothing in flight. */
void pg_link_reconnect(struct pg_link *l);
/* Nothing in flight. Then freed, and closed, once. */
void pg_link_close(struct pg_link *l, void (*closed)(void *ctx), void *ctx);

#endif
