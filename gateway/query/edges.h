/* Sums by pairs of functions: who calls whom, own code and what it calls. */
#ifndef GATEWAY_QUERY_EDGES_H
#define GATEWAY_QUERY_EDGES_H

#include "gateway/query/stacks.h"

struct edge {
    uint32_t from, to; /* places in fns; to may be STACK_NONE */
    int64_t value;
    uint32_t mark; /* the last stack that has counted it */
};
/* In the ask's arena. Zero is an empty table. */
struct edges {
    struct edge *list;
    uint32_t *slots;
    uint32_t n, cap, n_slots;
};
enum err edges_add(struct edges *e, struct ask *a, uint32_t from, uint32_t to, int64_t value, uint32_t mark) MUST_CHECK;
/* Largest first; equal ones by the functions' names. */
void edges_sort(struct edges *e, const struct stacks *s);
/* After charging: for each own function, what runs right below it in the samples it is charged with. */
enum err edges_of_own(struct edges *e, struct stacks *s) MUST_CHECK;
/* "callees": an array of {function,file,value,share} of the first `limit` edges from `from`, which are sorted. */
void edges_put_from(struct json *j, const struct edges *e, const struct stacks *s, uint32_t from, uint32_t limit);
void edges_put_row(struct json *j, const struct stacks *s, uint32_t fn, int64_t value);

#endif
