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

/* One stored profile. Everything is valid during the callback only. */
struct stored {
    struct attempt attempt;
    const struct series *series;
    uint64_t series_id;
    int64_t time_ns, duration_ns, stored_ns;
    const struct sample_type *types; /* with totals */
    uint32_t n_types, primary, n_samples;
    struct str format, trace_id;
    uint64_t original_bytes;
    struct str body; /* empty unless SCAN_BODY was asked for */
};
enum scan_what { SCAN_META = 0, SCAN_BODY = 1, SCAN_NEWEST_FIRST = 2 };
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
};

#endif
