/*
 * The contract of share stores: function shares per minute and per hour (product.md F13). One that is embedded is the
 * sample store itself: shares go into the transaction of their profiles, and only its reader exists. One that stands
 * apart is fed with records that are committed, and may be away or lose everything at any time.
 *
 * That is safe, since nobody takes its word: a minute may hold more than what counts (a retry's copy) or less (lost,
 * not there yet). Its `check` names the attempts in it; a reader compares that with the profiles that count, and takes
 * a minute or an hour that differs from the sample store instead.
 */
#ifndef BACKENDS_SHARES_H
#define BACKENDS_SHARES_H

#include "backends/backend.h"
#include "codecs/shares.h"

struct share_store; /* each implementation's own */

enum { SHARE_MINUTE_S = 60 };
static inline int64_t share_minute(int64_t time_ns)
{
    const int64_t ns = SHARE_MINUTE_S * INT64_C(1000000000);
    return time_ns / ns - (time_ns % ns < 0);
}

/* One type of one service. Borrowed for a call. */
struct share_of {
    struct str project, service, type_id;
};
/* at: the minute, or the hour, since 1970. `packed`: shares_pack; valid during the callback. A minute may come in
 * several pieces, which add up, one after the other. */
typedef enum err (*share_row)(void *ctx, int64_t at, struct str packed);

/* On a thread of the query lane, blocking. E_STORE_DOWN: away. */
struct share_reader_ops {
    enum err (*minutes)(struct share_store *s, const struct share_of *of, int64_t first, int64_t last, share_row row,
                        void *ctx, struct fault *f);
    /* NULL: none are kept. */
    enum err (*hours)(struct share_store *s, const struct share_of *of, int64_t first, int64_t last, share_row row,
                      void *ctx, struct fault *f);
};

struct share_stats {
    bool healthy;
    uint64_t memory;  /* bytes of minutes and of records on their way to them */
    uint64_t dropped; /* records whose shares were left out: too much on its way, or too old for a minute */
    uint64_t flushed; /* minutes written */
    uint64_t failed;  /* rounds of writing that failed */
    uint64_t emptied; /* times that the store was found to have lost everything */
};

/* One that stands apart. */
struct share_store_ops {
    const char *scheme; /* "redis" */
    const struct share_reader_ops *read;
    /* On the loop, before serving; does not wait for the other side. NULL: f says why. h outlives it. */
    struct share_store *(*open)(const struct store_host *h, struct str address, struct fault *f);
    enum err (*check)(struct str address, struct fault *f);
    /* A record that was committed as `a`: the store's from now on. On the loop; never blocks, may drop it. */
    void (*add)(struct share_store *s, struct record *r, struct attempt a);
    /* What the sample store says of an hour, for so many days. Any thread; blocks. */
    enum err (*put_hour)(struct share_store *s, const struct share_of *of, int64_t hour, const struct shares *shares,
                         uint32_t days, struct fault *f);
    void (*stats)(struct share_store *s, struct share_stats *out); /* any thread */
    /* Writes what it has, for a bounded while. On the loop, after the sample store is closed; blocks that while. */
    void (*close)(struct share_store *s);
};
/* Whether open would take the address. */
enum err share_store_check(struct str address, struct fault *f) MUST_CHECK;
/* By "scheme:"; NULL: none that stands apart. rest: what is behind. */
const struct share_store_ops *share_store_find(struct str address, struct str *rest);

#endif
