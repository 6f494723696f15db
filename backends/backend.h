/*
 * The contract of the stores (design.md 6). A sample store takes groups of sealed records and gives them back; a share
 * store keeps function shares per minute. Both are found by the scheme of their address in one array,
 * backends/backend.c.
 *
 * Writing happens on the loop: a call returns at once, its callback runs once, later, on the loop thread, never from
 * inside the call. Reading happens on a thread of the query lane: a call blocks until it is done and looks at `cancel`
 * as it goes; several threads may read one store at the same time.
 */
#ifndef BACKENDS_BACKEND_H
#define BACKENDS_BACKEND_H

#include <uv.h>

#include "backends/reader.h"
#include "codecs/record.h"

enum { GROUP_MAX = 64 };

enum put_result {
    PUT_STORED,
    PUT_BAD,  /* this row can never be stored: E_INTERNAL to its client */
    PUT_AGAIN /* the store is away or full: 503, or the spool */
};

/* Records that are committed together: one (class, day), one transaction. Whoever grouped them owns them; by the time
 * of done the store may have exchanged some for equal ones. */
struct group {
    struct record *records[GROUP_MAX];
    enum put_result results[GROUP_MAX]; /* set before done */
    uint16_t n;
    uint16_t class_days; /* retention class: 1, 3, 7, 15, 30, 90 */
    int32_t day;         /* days since 1970, UTC, of every record's time */
    uint64_t id;
    uint64_t boot;
    void (*done)(struct group *g); /* on the loop */
    void *owner;
};

/* What a store may use of the process around it. Outlives the store. */
struct store_host {
    uv_loop_t *loop;
    const char *data_dir;
    const struct hash_key *key;
    uint64_t originals_max_bytes; /* per project; 0: originals are not kept */
    size_t symbols_memory;        /* bound of the set of stored ids, and of what is kept to be sent again */
    size_t minutes_memory;        /* bound of the minutes that a share store which stands apart keeps */
    uint64_t resend_ms;           /* what was committed so lately is sent again when another database takes over */
    bool schema_fixed;            /* `open` refuses an older schema, rather than changing it */
    bool shares;                  /* keep function shares beside the profiles, where the store can */
    /* Any thread. level: 0 error, 1 warn, 2 info. */
    void (*log)(void *ctx, int level, const char *text);
    /* Any thread: the memory ledger; account is "symbols", "minutes" or "queries". */
    void (*account)(void *ctx, const char *account, int64_t delta_bytes);
    void *ctx;
};

/* host->log of a formatted text, cut at 511 bytes. */
void store_log(const struct store_host *host, int level, const char *fmt, ...) PRINTF_LIKE(3, 4);

struct sample_store; /* each implementation's own */

struct sample_store_ops {
    const char *scheme; /* "sqlite" */

    /* Opens or makes the store. On the loop, before serving; may block. NULL: f says why. */
    struct sample_store *(*open)(const struct store_host *h, struct str address, struct fault *f);
    /* Brings the schema from version *was (0: there is none) to *is, and ends. Blocks. NULL: `open` always does it. */
    enum err (*migrate)(const struct store_host *h, struct str address, int64_t *was, int64_t *is, struct fault *f);
    /* Idempotent by attempt; never reads. At most one put is under way; the caller waits for done. */
    void (*put)(struct sample_store *s, struct group *g);
    /* Bit i: the client of row i was told 200. Fire and forget, behind the put under way; a later one only clears. */
    void (*mark)(struct sample_store *s, const struct group *g, uint64_t told);
    /* Drops every (class, day) that has expired at now_ns. Fire and forget. */
    void (*expire)(struct sample_store *s, int64_t now_ns);
    /* After the put under way and all marks: on the loop, once. Nobody reads any more. */
    void (*close)(struct sample_store *s, void (*closed)(void *ctx), void *ctx);
    bool (*healthy)(const struct sample_store *s);
};

struct share_reader_ops; /* backends/shares.h */

/* One implementation. shares: NULL where the store keeps none of its own. remote: it may be away while this machine is
 * well. */
struct backend {
    bool remote;
    const struct sample_store_ops *write;
    const struct sample_reader_ops *read;
    const struct share_reader_ops *shares;
    const struct hour_ops *hours;
};
/* By "scheme:"; NULL: unknown. rest: what is behind. */
const struct backend *backend_find(struct str address, struct str *rest);

/* The ladder: a service's days rounded up to a class. */
uint16_t retention_class(uint32_t days);

#endif
