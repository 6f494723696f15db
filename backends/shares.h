/*
 * The contract of share stores, read side: function shares per minute (product.md F13). The write side is the sample
 * store's own where both are embedded: shares go into the transaction of their profiles, so neither can be there
 * without the other.
 *
 * A minute may hold more than what counts (a retry's copy) or less (a failed allocation). Its `check` names the
 * attempts in it: a reader compares that with the profiles that count, and takes a minute that differs from the sample
 * store instead.
 */
#ifndef BACKENDS_SHARES_H
#define BACKENDS_SHARES_H

#include "codecs/shares.h"

struct sample_store;

enum { SHARE_MINUTE_S = 60 };
static inline int64_t share_minute(int64_t time_ns)
{
    const int64_t ns = SHARE_MINUTE_S * INT64_C(1000000000);
    return time_ns / ns - (time_ns % ns < 0);
}

/* `packed`: shares_pack; valid during the callback. A minute may come in several pieces, which add up, one after the
 * other. */
typedef enum err (*share_row)(void *ctx, int64_t minute, struct str packed);

struct share_reader_ops {
    const char *scheme; /* "sqlite" */
    /* The minutes first..last (since 1970) of one type, by its id. Blocks a thread of the query lane. */
    enum err (*minutes)(struct sample_store *s, struct str project, struct str service, struct str type_id,
                        int64_t first, int64_t last, share_row row, void *ctx, struct fault *f);
};

#endif
