/* What is counted, all on the loop thread, and its text for Prometheus. Invariants: operations.md 3. */
#ifndef GATEWAY_METRICS_H
#define GATEWAY_METRICS_H

#include "codecs/upload.h"
#include "gateway/route.h"
#include "gateway/tls.h"

enum metric {
#define METRIC(id, kind, name, help) M_##id,
#include "gateway/metrics.def"
#undef METRIC
    METRICS
};

#define CLOSE_MAP(X)                                                                                                   \
    X(PEER, "peer")       /* ended or reset by the client */                                                           \
    X(REPLIED, "replied") /* by us behind an answer */                                                                 \
    X(IDLE, "idle_timeout")                                                                                            \
    X(HEAD, "head_timeout")                                                                                            \
    X(BODY, "body_timeout")                                                                                            \
    X(WRITE, "write_timeout")                                                                                          \
    X(SLOW, "slow")           /* held memory and sent too little */                                                    \
    X(PROXY, "proxy_header")  /* none, a broken one, or from somebody who may not send one */                          \
    X(CROWD, "address_limit") /* limits.connections_per_address */                                                     \
    X(UNREAD, "unread")       /* hardly read an answer while others needed its room */                                 \
    X(SHUTDOWN, "shutdown") X(ERROR, "error")
enum close_reason {
#define X(id, name) CLOSE_##id,
    CLOSE_MAP(X)
#undef X
        CLOSE_REASONS
};

enum { METHODS = 4, STATUSES = 24, BUCKETS_MAX = 14, OUTCOMES = 3, TLS_ROWS = 16 };

struct histogram {
    uint64_t buckets[BUCKETS_MAX + 1];
    double sum;
};

struct metrics {
    uint64_t plain[METRICS];
    uint64_t requests[ROUTES][METHODS][STATUSES];
    uint64_t cut[CLOSE_REASONS];    /* requests that got no answer */
    uint64_t refused[E_COUNT];      /* requests refused as a whole */
    uint64_t closed[CLOSE_REASONS]; /* connections */
    uint64_t tls_failures[TLS_FAILURES];
    struct tls_row {
        const char *listener; /* borrowed from it */
        int64_t not_after;
        bool reloaded; /* whether the files of the last look are in force */
    } tls[TLS_ROWS];
    size_t n_tls;
    uint64_t profiles_received[UPLOAD_KINDS], profiles_accepted[UPLOAD_KINDS];
    uint64_t profiles_refused[UPLOAD_KINDS][E_COUNT];
    uint64_t profiles_failed[E_COUNT];
    uint64_t groups[OUTCOMES];                                 /* by put_result, the worst of the group */
    uint64_t connections[8];                                   /* gauge, by conn_state_names */
    uint64_t received_wire[ROUTES], received_inflated[ROUTES]; /* bytes of bodies */
    struct histogram request_seconds[ROUTES], body_wire[ROUTES], body_inflated[ROUTES], group_seconds, loop_lag;
};

const char *close_name(enum close_reason why);
void metrics_answered(struct metrics *m, enum route route, struct str method, int status, double seconds);
void metrics_seconds(struct histogram *h, double seconds);
void metrics_bytes(struct histogram *h, double bytes);
uint64_t metrics_closed(const struct metrics *m);   /* connections, all reasons */
uint64_t metrics_finished(const struct metrics *m); /* requests answered and cut */

struct metrics_scrape {
    const char *const *connection_states;
    size_t n_connection_states;
    const char *store; /* its scheme */
    const char *version;
    bool store_healthy;
    const char *const *accounts; /* of memory, with bytes */
    const uint64_t *account_bytes;
    size_t n_accounts;
};
void metrics_text(const struct metrics *m, const struct metrics_scrape *s, struct buf *out);

#endif
