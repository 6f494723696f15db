/* A set of strings that remembers the order in which they came: label names, label values, names of frames. */
#ifndef GATEWAY_QUERY_NAMESET_H
#define GATEWAY_QUERY_NAMESET_H

#include "gateway/query/ask.h"

/* In the ask's arena. Zero is an empty set. */
struct nameset {
    struct str *list;
    uint32_t *slots, n, cap, n_slots;
};
/* The place of `text`, added at the end where it is new. `copy`: it is borrowed otherwise. */
enum err nameset_add(struct nameset *s, struct ask *a, struct str text, bool copy, uint32_t *place) MUST_CHECK;

#endif
