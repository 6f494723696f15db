/*
 * Inside of the PostgreSQL store. The loop holds the writer's connection and decides (postgres.c, pg_put.c, pg_mark.c);
 * a packer thread makes what is sent; an upkeep thread waits for whatever takes locks (pg_upkeep.c); queries read over
 * connections of a pool, on their own threads (pg_scan.c, pg_read.c).
 */
#ifndef BACKENDS_POSTGRES_STORE_H
#define BACKENDS_POSTGRES_STORE_H

#include "backends/backend.h"
#include "backends/pg_mark.h"
#include "backends/pg_pack.h"
#include "backends/pg_resend.h"
#include "backends/pg_upkeep.h"

enum { PG_STATEMENT_MS = 2500, PG_PATIENCE_MS = 1000, PG_RANGES_MAX = 16 };

/* NEXT -> (MAKING_DAY ->) PACKING -> READY -> SENT -> LEARNING -> NEXT ... -> NONE. */
enum pg_put_phase {
    PG_PUT_NONE,
    PG_PUT_NEXT,
    PG_PUT_MAKING_DAY,
    PG_PUT_PACKING,
    PG_PUT_READY,
    PG_PUT_SENT,
    PG_PUT_LEARNING
};

/* The put under way: ranges of its rows, the next one last. One to begin with; a bad row splits its range. */
struct pg_put {
    struct group *group;
    enum pg_put_phase phase;
    struct {
        uint16_t from, n;
    } ranges[PG_RANGES_MAX];
    int n_ranges;
    unsigned tries; /* of the range */
    struct pg_pack pack;
};

struct sample_store {
    const struct store_host *host;
    struct pg_options options;
    struct pg_pool *pool;
    struct pg_stored *stored;
    _Atomic int64_t raw_since; /* as pg_hours_look_raw last saw it */
    atomic_bool hurry;         /* do not wait for the server any more */

    /* loop only */
    struct pg_link *link;
    struct pg_worker *packer, *upkeep;
    uv_timer_t timer; /* patience with a server that is away */
    uint64_t away_since_ms;
    uint64_t failed_ms; /* when a put last failed; 0: the last one did not */
    char down_why[128];
    bool was_up, prepared, closing, shutting;
    int open_parts; /* still to be closed */
    char identity[128];
    uint64_t writer, seq;
    struct pg_put put;
    struct pg_marks marks;
    struct pg_fresh fresh;
    struct pg_resend resend;
    struct pg_prepare_job prepare;
    struct pg_day_job day;
    struct pg_expire_job expire;
    struct pg_day *days; /* whose partitions are there */
    size_t n_days, cap_days;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* postgres.c */
void pg_pump(struct sample_store *s);           /* whatever can be done now, from a callback */
bool pg_away(const struct sample_store *s);     /* nothing can be written now */
bool pg_given_up(const struct sample_store *s); /* and has not for so long that nobody should wait */
void pg_reconnect(struct sample_store *s);      /* this is no server to write to; maybe the next one is */

/* pg_put.c */
void pg_put_start(struct sample_store *s, struct group *g);
void pg_put_step(struct sample_store *s);
void pg_put_settle(struct sample_store *s); /* ends a put that is through, or without hope; calls its done */
void pg_put_done(struct sample_store *s, bool ok, const struct pg_fault *f);
/* A fault of the connection, or of the server's role or means, not of what was sent: that is to be sent again. */
bool pg_passing(const struct pg_fault *f);
/* Another database than before has answered: what was thought to be there may not be. */
void pg_identity_changed(struct sample_store *s, const char *identity);

/* pg_hours.c: which days have no single profiles any more. Blocks. */
enum err pg_hours_look_raw(struct sample_store *s, struct pg_call *c, struct fault *f) MUST_CHECK;
extern const struct hour_ops pg_hours_ops;

#endif
