/* The contract of a sample store, read side: on a thread of the query lane, blocking. See backends/backend.h. */
#ifndef BACKENDS_READER_H
#define BACKENDS_READER_H

#include <stdatomic.h>

#include "backends/attempt.h"
#include "codecs/record.h"

struct sample_store; /* each implementation's own */

/* What is wanted. Strings are borrowed for the call. */
struct selection {
    struct str project;
    struct str service;            /* empty: every service of the project */
    int64_t from_ns, until_ns;     /* half open, by the profile's own time */
    const struct attempt *profile; /* not NULL: just this one, whatever the window */
    /* Whether series count at all, by name and labels; NULL: all. Called once per series, on the reading thread. */
    bool (*series_match)(void *ctx, const struct series *s);
    /* Whether a profile of this time is wanted, asked after counting once; NULL: all. */
    bool (*time_match)(void *ctx, int64_t time_ns);
    void *ctx;
    const atomic_bool *cancel;
};

/* Half open. */
struct span {
    int64_t from_ns, until_ns;
};
/*
 * What a row tells that stands for many profiles: those of one hour, one class, one service, whose series differ in
 * instance labels at most (codecs/instance.h) and whose types are the same (backends/hours.h).
 */
struct stored_hour {
    int64_t hour;               /* since 1970 */
    int64_t last_ns;            /* time of the last profile; `time_ns` is that of the first */
    uint64_t check;             /* sum of share_check over them */
    const struct span *covered; /* union of [time, time + duration), sorted, disjoint */
    uint32_t n_covered;
    const uint64_t *series_ids; /* the full series, distinct */
    uint32_t n_series;
    const struct str *left_out; /* names of labels, of series or samples, that are not in this row; sorted */
    uint32_t n_left_out;
    const struct str *sample_names; /* of labels of samples in this row, sorted */
    uint32_t n_sample_names;
};

/*
 * One stored profile, or an hour of them. Everything is valid during the callback only. Of an hour: `attempt` and
 * `time_ns` are the first profile's, duration_ns, n_samples and the totals are sums, `series` is without instance
 * labels; series_id, stored_ns, format, trace_id and original_bytes say nothing.
 */
struct stored {
    struct attempt attempt;
    const struct series *series;
    uint64_t series_id;
    int64_t time_ns, duration_ns, stored_ns;
    const struct sample_type *types; /* with totals */
    uint32_t n_types, primary;
    uint64_t n_samples;
    uint64_t n_profiles;            /* 1 unless of an hour */
    const struct stored_hour *hour; /* NULL: a single profile */
    uint16_t class_days;            /* where it lies */
    struct str format, trace_id;
    uint64_t original_bytes;
    struct str body; /* empty unless SCAN_BODY was asked for */
};
/*
 * SCAN_HOURS: an hour that lies wholly in the window, is compacted and has no dirty row comes as its hour rows, which
 * take the place of their first profile in the order of time; all else comes as profiles. Never together with
 * SCAN_NEWEST_FIRST, `profile`, or a question about labels that hours leave out. time_match is asked for the first
 * profile's time.
 */
enum scan_what { SCAN_META = 0, SCAN_BODY = 1, SCAN_NEWEST_FIRST = 2, SCAN_HOURS = 4 };
typedef enum err (*scan_row)(void *ctx, const struct stored *s); /* not E_OK ends the scan with that error */
typedef enum err (*block_row)(void *ctx, struct str block);
enum original_state { ORIGINAL_KEPT, ORIGINAL_EXPIRED, ORIGINAL_OFF };

struct sample_reader_ops {
    /* Every profile that counts (surplus copies left out: of one content id max(1, told) count, 1 if it has an
     * identity), each once. Oldest first unless SCAN_NEWEST_FIRST. */
    enum err (*scan)(struct sample_store *s, const struct selection *sel, enum scan_what what, scan_row row, void *ctx,
                     struct fault *f);
    /* The symbol blocks of one service for days first..last, all classes. */
    enum err (*symbols)(struct sample_store *s, struct str project, struct str service, int32_t first, int32_t last,
                        block_row row, void *ctx, struct fault *f);
    /* The inner bytes as sent. KEPT: appended to out. E_NOT_FOUND: no such profile. */
    enum err (*original)(struct sample_store *s, struct str project, struct attempt a, enum original_state *state,
                         struct buf *out, struct fault *f);
    /* Single profiles before this time may be gone though their hours are there (retention.raw); a day's start.
     * INT64_MIN: none is. Does not block. */
    int64_t (*raw_since)(const struct sample_store *s);
};

#endif
