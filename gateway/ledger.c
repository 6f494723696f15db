/* The memory ledger: atomic sums by account. */
#include "gateway/ledger.h"

const char *const ledger_names[LEDGER_ACCOUNTS_N] = {
#define X(name) #name,
    LEDGER_ACCOUNTS(X)
#undef X
};

void ledger_init(struct ledger *l, uint64_t limit)
{
    l->limit = limit;
    for (int i = 0; i < LEDGER_ACCOUNTS_N; i++)
        atomic_init(&l->used[i], 0);
}

void ledger_charge(struct ledger *l, enum ledger_account a, int64_t delta)
{
    atomic_fetch_add_explicit(&l->used[a], delta, memory_order_relaxed);
}

void ledger_charge_named(struct ledger *l, const char *name, int64_t delta)
{
    for (int i = 0; i < LEDGER_ACCOUNTS_N; i++) {
        if (str_eq(str_of(ledger_names[i]), str_of(name))) {
            ledger_charge(l, (enum ledger_account)i, delta);
            return;
        }
    }
    ledger_charge(l, LEDGER_caches, delta);
}

uint64_t ledger_used(const struct ledger *l, enum ledger_account a)
{
    int64_t n = atomic_load_explicit(&l->used[a], memory_order_relaxed);
    return n > 0 ? (uint64_t)n : 0;
}

uint64_t ledger_total(const struct ledger *l)
{
    uint64_t sum = 0;

    for (int i = 0; i < LEDGER_ACCOUNTS_N; i++)
        sum += ledger_used(l, (enum ledger_account)i);
    return sum;
}

uint64_t ledger_share_requests(uint64_t limit)
{
    return limit / 8 * 6;
}

uint64_t ledger_share_queries(uint64_t limit)
{
    return limit / 8;
}

uint64_t ledger_share_symbols(uint64_t limit)
{
    return limit / 8;
}

uint64_t ledger_share_answers(uint64_t limit)
{
    return limit / 8;
}

uint64_t ledger_share_minutes(uint64_t limit)
{
    return limit / 16;
}
