/* What a store of the upload ledger has to do. Opening never fails for the other side's being away. */
#ifndef BACKENDS_UPLOADS_STORE_H
#define BACKENDS_UPLOADS_STORE_H

#include "backends/uploads.h"

/* An entry on its way. */
struct upload_item {
    struct upload_item *next;
    uint64_t number;
    bool good; /* accepted: capped apart from all others */
    uint32_t project_len, body_len;
    char bytes[]; /* project, body */
};
static inline struct str upload_item_project(const struct upload_item *i)
{
    return (struct str){i->bytes, i->project_len};
}
static inline struct str upload_item_body(const struct upload_item *i)
{
    return (struct str){i->bytes + i->project_len, i->body_len};
}

typedef enum err (*uploads_row)(void *ctx, struct str body);

struct uploads_store; /* each implementation's own */
struct uploads_ops {
    const char *scheme;
    struct uploads_store *(*open)(const struct uploads_options *o, struct str address, struct fault *f);
    /* On the ledger's thread: all of the list or, as far as is known, none. E_STORE_DOWN, E_NO_MEMORY: it comes again.
     */
    enum err (*put)(struct uploads_store *s, const struct upload_item *list, struct fault *f);
    /* On threads of readers, several at a time, beside put. */
    enum err (*scan)(struct uploads_store *s, struct str project, uploads_row row, void *ctx, struct fault *f);
    void (*close)(struct uploads_store *s);
};
extern const struct uploads_ops uploads_sqlite_ops, uploads_redis_ops;

#endif
