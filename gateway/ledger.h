/* The memory ledger: bytes by named account under one limit. Any thread may charge; the loop and /metrics read. */
#ifndef GATEWAY_LEDGER_H
#define GATEWAY_LEDGER_H

#include <stdatomic.h>

#include "codecs/base.h"

#define LEDGER_ACCOUNTS(X)                                                                                             \
    X(requests) /* granted to uploads that are being read or finished, and held by their records until the commit */   \
    X(connections) /* private buffers of connections, heads */                                                         \
    X(answers)     /* on their way to clients */                                                                       \
    X(symbols)     /* what the store knows to have written */                                                          \
    X(minutes)     /* function shares of the last hour, where they go to a store of their own */                       \
    X(records)     /* records that a store holds beyond their request */                                               \
    X(queries)     /* granted to queries that run */                                                                   \
    X(caches)
enum ledger_account {
#define X(name) LEDGER_##name,
    LEDGER_ACCOUNTS(X)
#undef X
        LEDGER_ACCOUNTS_N
};
extern const char *const ledger_names[LEDGER_ACCOUNTS_N];

struct ledger {
    uint64_t limit;
    _Atomic int64_t used[LEDGER_ACCOUNTS_N];
};
void ledger_init(struct ledger *l, uint64_t limit);
void ledger_charge(struct ledger *l, enum ledger_account a, int64_t delta);
/* By name, for stores; an unknown name goes to `caches`. */
void ledger_charge_named(struct ledger *l, const char *name, int64_t delta);
uint64_t ledger_used(const struct ledger *l, enum ledger_account a);
uint64_t ledger_total(const struct ledger *l);

/*
 * How the limit is divided: uploads 5/8, queries 2/8, stored symbols 1/8. Fixed parts, so that what is set aside for
 * the oldest upload cannot be taken by a query that came first.
 */
uint64_t ledger_share_requests(uint64_t limit);
uint64_t ledger_share_queries(uint64_t limit);
uint64_t ledger_share_symbols(uint64_t limit);
uint64_t ledger_share_answers(uint64_t limit); /* out of that of queries, which have become answers */
uint64_t ledger_share_minutes(uint64_t limit); /* out of that of symbols */

#endif
