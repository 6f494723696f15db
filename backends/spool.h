/*
 * The spool (design.md 6): a sample store around another one that may be away. A group that has waited `after` for the
 * store, or that the store turned away, goes into files of this machine, with its symbols and its mark, and is answered
 * as stored once it is durable there; it is put again, oldest first, when the store is back. Putting twice is harmless:
 * rows are named by their attempt.
 *
 * It takes put, mark, expire, close and healthy; readers ask the inner store.
 */
#ifndef BACKENDS_SPOOL_H
#define BACKENDS_SPOOL_H

#include "backends/backend.h"

struct spool_options {
    const char *dir;    /* copied */
    uint64_t after_ms;  /* how long a group waits for the store */
    uint64_t max_bytes; /* of all segments */
};
/* The inner store belongs to the spool from now on, unless NULL is returned: f says why. On the loop. */
struct sample_store *spool_open(const struct store_host *h, const struct spool_options *o,
                                const struct sample_store_ops *inner_ops, struct sample_store *inner,
                                struct fault *f) MUST_CHECK;
extern const struct sample_store_ops spool_ops;

#define SPOOL_OUTCOMES(X)                                                                                              \
    X(spooled)  /* durable here, answered as stored */                                                                 \
    X(replayed) /* and then in the store */                                                                            \
    X(put_off)  /* the store turns it away again and again: later */                                                   \
    X(full)     /* turned away: max_bytes */                                                                           \
    X(no_space) /* turned away: the disk is full */                                                                    \
    X(failed)   /* turned away: the disk does not write */
enum spool_outcome {
#define X(name) SPOOL_OUTCOME_##name,
    SPOOL_OUTCOMES(X)
#undef X
        SPOOL_OUTCOMES_N
};

struct spool_stats {
    uint64_t bytes, segments, groups, records; /* not yet in the store */
    uint64_t corrupt;                          /* segments of which something could not be read, so far */
    bool full;                                 /* the last group found no room */
    bool in_use;                               /* groups are answered from here */
    uint64_t outcomes[SPOOL_OUTCOMES_N];
};
void spool_stats(const struct sample_store *s, struct spool_stats *out); /* on the loop */

#endif
