/* Which profile type a read is about: the one that was named, or the primary one of the selection. */
#ifndef GATEWAY_QUERY_TYPESEL_H
#define GATEWAY_QUERY_TYPESEL_H

#include "gateway/query/scan.h"

/* One type of a selection, with what its profiles hold. */
struct type_row {
    struct str id, type, unit;
    enum aggregation aggregation;
    uint64_t profiles;
    int64_t total;
};
struct type_list {
    struct type_row *rows;    /* sorted by id */
    uint32_t n, cap, primary; /* an index; n where there is none */
};
/* All types of the selection, in the ask's arena. t may be NULL; else it counts along. */
enum err typesel_list(struct ask *a, struct type_list *list, struct tally *t) MUST_CHECK;
/* The type that is read: *out is NULL where the selection has no such thing. E_BAD_REQUEST lists the candidates. */
enum err typesel_choose(struct ask *a, const struct type_row **out) MUST_CHECK;

#endif
