/*
 * The inside of the share store in Redis. Keys, with a hash tag so that all of a service lie on one node:
 *
 *   fs:{SERVICE}:TYPE:m:MINUTE  hash: field = writer and number, value = shares_pack of what it has of that minute
 *   fs:{SERVICE}:TYPE:h:HOUR    string: shares_pack of the whole hour, as the sample store has it
 *   fs:epoch                    a random word; when it has changed, everything was lost
 *
 * SERVICE, TYPE: keyed hashes of (project, service), of the type's id; 16 hexadecimal digits. Minutes live for three
 * hours, hours as long as their profiles. Nothing else is kept there but the upload ledger (uploads_redis.c), and no
 * policy of ours evicts anything (noeviction).
 */
#ifndef BACKENDS_REDIS_STORE_H
#define BACKENDS_REDIS_STORE_H

#include "backends/redis_link.h"
#include "backends/shares.h"

enum {
    REDIS_DEADLINE_MS = 2000,
    REDIS_READERS = 4,
    REDIS_KEY = 80,
    EPOCH_TEXT = 17,
    MINUTE_TTL_S = 3 * 3600,
};

struct minute_sum; /* redis_minutes.c */

/* Minutes as they add up in this process. Of the store's thread alone. */
struct redis_minutes {
    const struct hash_key *key;
    uint64_t boot, made;                /* names of fields */
    struct minute_sum *oldest, *newest; /* in the order in which they were touched last */
    struct minute_sum **slots;
    size_t n, cap;
    uint64_t bytes;
    size_t n_changed;
};
bool redis_minutes_init(struct redis_minutes *m, const struct hash_key *key) MUST_CHECK;
void redis_minutes_free(struct redis_minutes *m);
/* Adds the shares of a record. false: no memory; some of it may be in. */
bool redis_minutes_add(struct redis_minutes *m, const struct record *r, struct attempt a, int64_t now_ns) MUST_CHECK;
/* Puts what has changed, at most some hundred minutes, in one run; *left: there is more. */
enum err redis_minutes_flush(struct redis_minutes *m, struct redis_link *l, uint64_t *flushed, bool *left,
                             struct fault *f) MUST_CHECK;
/* Everything has to be put again. */
void redis_minutes_spread(struct redis_minutes *m);
/* Forgets what was touched before `before_ns`, and the oldest beyond max_bytes, once they are put. */
void redis_minutes_trim(struct redis_minutes *m, int64_t before_ns, uint64_t max_bytes);

/* A record whose shares are still to be added. */
struct pending_shares {
    struct pending_shares *next;
    struct record *record;
    struct attempt attempt;
};

struct share_store {
    const struct store_host *host;
    struct redis_address address;
    uv_thread_t thread;
    uv_mutex_t lock; /* of what follows, up to stats */
    uv_cond_t wake;
    struct pending_shares *first, **last;
    uint64_t pending_bytes;
    bool closing;
    struct redis_link *readers[REDIS_READERS]; /* idle */
    unsigned n_readers;
    struct share_stats stats;

    /* the thread's */
    struct redis_link *link;
    struct redis_minutes minutes;
    char epoch[EPOCH_TEXT]; /* as it was found last */
    bool tried;
    uint64_t charged;
    uint64_t max_bytes;
};

void redis_key_minute(const struct hash_key *k, const struct share_of *of, int64_t minute, char out[REDIS_KEY]);
void redis_key_hour(const struct hash_key *k, const struct share_of *of, int64_t hour, char out[REDIS_KEY]);

/* As the writing thread found it a second ago, so that not every reader has to wait for one that does not answer. */
bool redis_healthy(struct share_store *s);
/* A connection for a thread of readers, until it is given back. NULL: no memory. */
struct redis_link *redis_take(struct share_store *s) MUST_CHECK;
void redis_give(struct share_store *s, struct redis_link *l);

/* redis_read.c */
extern const struct share_reader_ops redis_read_ops;
enum err redis_put_hour(struct share_store *s, const struct share_of *of, int64_t hour, const struct shares *shares,
                        uint32_t days, struct fault *f);

#endif
