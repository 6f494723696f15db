/*
 * What a run of a group's rows is sent as, and what is known afterwards. On the packer's thread: compressing symbols of
 * a cold group takes longer than the loop may be held up.
 */
#ifndef BACKENDS_PG_PACK_H
#define BACKENDS_PG_PACK_H

#include "backends/backend.h"
#include "backends/pg_link.h"
#include "backends/pg_worker.h"

/* What this writer has stored: symbols, and the small rows that groups share. Any thread. */
struct pg_stored;
struct pg_stored *pg_stored_new(const struct store_host *h) MUST_CHECK; /* NULL: no memory */
void pg_stored_free(struct pg_stored *s);                               /* NULL is fine */
void pg_stored_forget_day(struct pg_stored *s, uint16_t class_days, int32_t day);
/* Another database than before: nothing of all that need be in it. */
void pg_stored_forget_all(struct pg_stored *s);

/* A job of the packer. Rows of the group that are PUT_BAD are left out. */
struct pg_pack {
    struct pg_job job; /* first */
    void *owner;
    struct pg_stored *stored;
    const struct store_host *host;
    const struct group *group;
    uint16_t from, n;
    uint64_t writer; /* whose symbol blocks these are */
    uint64_t *seq;   /* counts them */

    struct pg_batch batch;
    bool ok; /* false: no memory */
    /* Known after the commit. */
    int64_t services[GROUP_MAX]; /* with new symbols */
    uint64_t shared[5 * GROUP_MAX];
    int n_services, n_shared;
};
/* job.run: fills the batch. */
void pg_pack_run(struct pg_job *j);
/* job.run, after the commit: all of it is known from now on. */
void pg_pack_learn(struct pg_job *j);

bool pg_pack_wants(const struct pg_pack *p, uint16_t i); /* whether that row goes along */
/* pg_profiles.c: the statement that puts the profiles. */
void pg_pack_profiles(struct pg_pack *p, const int64_t typesets[GROUP_MAX]);

/* An hour is listed for compaction long after this moment (HOUR_DUE_NS), by whatever replica's clock. */
int64_t pg_hour_closes(int64_t hour);

int64_t pg_service_id(const struct store_host *h, struct str project, struct str service);

#endif
