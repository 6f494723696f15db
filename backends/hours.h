/*
 * Hour compaction (design.md 6): what a store supplies (struct hour_ops), and the driver that every store shares.
 *
 * Dirty rows. A put leaves, in the transaction of its profiles, a dirty row for each (service, hour) that it touches:
 * the hours that hold time - HOUR_MARGIN and time + HOUR_MARGIN of each profile, since copies of one content may lie on
 * both sides of an edge. A mark that comes later than its put (a listing may have been made in between) leaves them
 * too. A put may leave out a row only if one is sure to be there still when it commits and no listing that saw it has
 * begun. An hour without dirty rows is clean: its hour rows are exactly what `scan` would give out of its profiles.
 *
 * The driver takes an hour that is due, scans its profiles with the ordinary reader (counting once), groups them by
 * (class, series without instance labels, types), merges, packs, reads back and compares with a second scan of the
 * metadata alone, then hands the rows over. It may be killed at any point.
 *
 * Readers take an hour's rows only where it has some and no dirty row. A row is bytes to a store: hour_open makes a
 * struct stored of it. Look for rows first and for dirty rows after.
 */
#ifndef BACKENDS_HOURS_H
#define BACKENDS_HOURS_H

#include "backends/backend.h"

#define HOUR_NS (3600 * INT64_C(1000000000))
#define HOUR_MARGIN_NS (600 * INT64_C(1000000000))
/* An hour is due when it ended this long ago: uploads of the margin behind it have had two minutes to come. */
#define HOUR_DUE_NS (720 * INT64_C(1000000000))

static inline int64_t hour_of(int64_t ns)
{
    return ns / HOUR_NS - (ns % HOUR_NS < 0);
}

/* An hour of a service that is to be compacted. tokens: the store's own bytes, naming the dirty rows that it listed. */
struct hour_todo {
    struct str project, service;
    int64_t hour; /* since 1970 */
    struct str tokens;
};
typedef enum err (*hour_due)(void *ctx, const struct hour_todo *t); /* borrowed for the call */

/* Borrowed. A store keeps class, hour, service, a number of its own, and these. */
struct hour_row {
    uint16_t class_days; /* of the profiles in it: it lies beside them and goes with them */
    int64_t first_ns;    /* rows are given out in the order of first_ns, then first (as once_order) */
    struct attempt first;
    struct str about; /* everything but the samples; hour_open */
    struct str body;  /* a record body */
};

/* All blocking, on the compaction thread; one call at a time in this process, but replicas do the same. */
struct hour_ops {
    /* Every hour up to `last` that has dirty rows. After this call begins, no put may rely on a row that it lists. */
    enum err (*due)(struct sample_store *s, int64_t last, hour_due due, void *ctx, struct fault *f);
    /* Every hour that has rows; tokens are empty. */
    enum err (*done)(struct sample_store *s, hour_due each, void *ctx, struct fault *f);
    /*
     * Replaces all hour rows of (project, service, hour), of every class, and deletes exactly the dirty rows of
     * `tokens`: in one transaction, or so that a dirty row stays until all else is there. *written false: one of these
     * was gone already (somebody else has compacted it), nothing was changed.
     */
    enum err (*write)(struct sample_store *s, const struct hour_todo *t, const struct hour_row *rows, uint32_t n,
                      bool *written, struct fault *f);
    /*
     * retention.raw: one bounded step (some 100 ms) of dropping single profiles, and what only they need, of days
     * before `day` whose hours are all clean. Symbols and hours stay. raw_since says so before the first one goes.
     * *more: call again soon.
     */
    enum err (*drop_raw)(struct sample_store *s, int32_t day, bool *more, struct fault *f);
};

/* Any thread, for readers: out borrows from the arena and from about and body. E_INTERNAL: damaged. */
enum err hour_open(struct str about, struct str body, struct str project, struct arena *a, struct stored *out,
                   struct stored_hour *hour, struct fault *f) MUST_CHECK;

/* What happened to one hour. */
struct hour_result {
    bool written; /* false though E_OK: profiles came meanwhile, or another replica was faster */
    uint32_t rows;
    uint64_t profiles, raw_bytes, bytes; /* bodies before, bodies and about behind */
};
/* The driver, for one hour; memory: what its merges may take before a row is closed and another begun. E_CANCELLED when
 * *cancel is set. Not E_OK: the hour stays dirty. */
enum err hour_compact(const struct backend *b, struct sample_store *s, const struct hash_key *k,
                      const struct hour_todo *t, size_t memory, const atomic_bool *cancel, struct hour_result *out,
                      struct fault *f) MUST_CHECK;

#endif
