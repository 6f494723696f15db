/*
 * The ledger of uploads (product.md B1): what became of the last uploads of each project, kept where function shares
 * are: in a table of its own file beside the embedded store, or in capped streams of Redis, which all replicas share.
 *
 * An entry never delays or fails its upload: the loop puts it into a bounded queue, a thread writes; while the store is
 * away entries wait there, and the oldest go when it is full. What is kept is capped per project, the good uploads
 * apart from all others, so that neither pushes the other out.
 */
#ifndef BACKENDS_UPLOADS_H
#define BACKENDS_UPLOADS_H

#include "backends/attempt.h"
#include "codecs/hash.h"

#define UPLOAD_VERDICT_MAP(X)                                                                                          \
    X(ACCEPTED, "accepted") /* stored, or honestly empty */                                                            \
    X(PARTIAL, "partial")   /* a batch of which some was stored */                                                     \
    X(REFUSED, "refused")                                                                                              \
    X(FAILED, "failed") /* we could not store it */                                                                    \
    X(CUT, "cut")       /* no answer: the client went, or was too slow */
enum upload_verdict {
#define X(id, name) VERDICT_##id,
    UPLOAD_VERDICT_MAP(X)
#undef X
        UPLOAD_VERDICTS
};
extern const char *const upload_verdict_names[UPLOAD_VERDICTS];

enum { UPLOAD_NAMES_MAX = 16, UPLOAD_BODY_MAX = 16 << 10 };

/* One upload. Strings are borrowed; those that are not known are empty. */
struct upload_entry {
    uint64_t writer, number; /* name the entry; uploads_add sets them */
    int64_t time_ns;         /* arrival */
    enum upload_verdict verdict;
    uint32_t status;  /* HTTP; 0: no answer */
    uint64_t content; /* of its first profile, equal for a retry; 0: not known */
    uint64_t bytes, inflated;
    uint32_t profiles, stored, empty, refused, failed;
    int64_t first_ns, last_ns; /* the profiles' own times, of those with one */
    struct str key, reason, message, route, format, client;
    struct str name;    /* /ingest: as sent */
    struct str profile; /* id of the first one stored */
    struct str services[UPLOAD_NAMES_MAX], types[UPLOAD_NAMES_MAX];
    uint32_t n_services, n_types;
    uint32_t more_services, more_types; /* left out here */
};
/* As bytes and back. A reader takes what an older version wrote, and skips what a newer one did (false). */
void upload_entry_pack(const struct upload_entry *e, struct buf *out);
bool upload_entry_unpack(struct str packed, struct upload_entry *e) MUST_CHECK;

struct uploads;

struct uploads_options {
    const char *data_dir;
    const struct hash_key *key;
    uint64_t writer;    /* random, of this process */
    uint32_t keep;      /* per project and kind, about; 0: none */
    size_t queue_bytes; /* that may wait */
    void (*log)(void *ctx, int level, const char *text);
    void *ctx;
};
/* shares: the address of the share store, by which the ledger's is chosen. Connects and opens files later, on its
 * thread. NULL: no memory. o->key and o->data_dir outlive it. */
struct uploads *uploads_open(const struct uploads_options *o, struct str shares, struct fault *f) MUST_CHECK;
/* "sqlite", "redis"; "null": nothing is kept. */
const char *uploads_scheme(const struct uploads *u);
uint32_t uploads_keep(const struct uploads *u);
/* On the loop; never blocks. */
void uploads_add(struct uploads *u, struct str project, struct upload_entry *e);

/* Not E_OK ends the list with it. */
typedef enum err (*uploads_visit)(void *ctx, const struct upload_entry *e, struct str packed);
/* Every entry that is kept of a project, in no order, one perhaps twice; what this process added before is there. On a
 * thread that may block. E_STORE_DOWN: the store cannot be read. */
enum err uploads_list(struct uploads *u, struct str project, uploads_visit visit, void *ctx,
                      struct fault *f) MUST_CHECK;

struct uploads_stats {
    bool healthy;
    uint64_t kept, dropped, failed; /* entries written, lost for want of room or memory, that the store cannot take */
    uint64_t waiting;
};
void uploads_stats(struct uploads *u, struct uploads_stats *out); /* any thread */
/* Writes what waits, for a bounded while. NULL is fine. */
void uploads_close(struct uploads *u);

#endif
