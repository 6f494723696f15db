/*
 * The thread that keeps hours compacted: every minute it asks the store what is due and drives hour_compact, one
 * hour at a time, at low priority. Then it lets single profiles go that retention.raw is over for.
 */
#ifndef BACKENDS_HOUR_RUNNER_H
#define BACKENDS_HOUR_RUNNER_H

#include "backends/hours.h"

/* Counted since the start; `pending` is of the last look. */
struct hour_stats {
    uint64_t compacted, failed, pending, rows, profiles, raw_bytes, bytes;
    uint64_t unshared; /* hours whose shares could not be put */
    uint64_t looked_s; /* Unix time of the end of the last look; 0: none yet */
};

struct share_store;
struct share_store_ops;
struct hour_runner;
struct hour_options {
    size_t memory;                           /* of merges */
    uint32_t raw_days;                       /* 0: single profiles stay */
    const struct share_store_ops *share_ops; /* gets the shares of each hour; NULL: none stands apart */
    struct share_store *share_store;
};
/* The store keeps hours (b->hours). NULL: no thread. */
struct hour_runner *hour_runner_start(const struct backend *b, struct sample_store *s, const struct store_host *h,
                                      const struct hour_options *o) MUST_CHECK;
/* Waits for the hour under way to stop; before the store is closed. NULL is fine. */
void hour_runner_stop(struct hour_runner *r);
/* Looks at once. */
void hour_runner_raw_days(struct hour_runner *r, uint32_t days); /* any thread, as these: */
void hour_runner_stats(struct hour_runner *r, struct hour_stats *out);

#endif
