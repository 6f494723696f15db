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
};

struct hour_runner;
/* The store keeps hours (b->hours). memory: of merges. raw_days: 0: single profiles stay. NULL: no thread. */
struct hour_runner *hour_runner_start(const struct backend *b, struct sample_store *s, const struct store_host *h,
                                      size_t memory, uint32_t raw_days) MUST_CHECK;
/* Waits for the hour under way to stop; before the store is closed. NULL is fine. */
void hour_runner_stop(struct hour_runner *r);
/* Looks at once. */
void hour_runner_raw_days(struct hour_runner *r, uint32_t days); /* any thread, as these: */
void hour_runner_stats(struct hour_runner *r, struct hour_stats *out);

#endif
