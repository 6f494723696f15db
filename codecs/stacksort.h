/* Puts stacks that share their first frames beside each other. */
#ifndef CODECS_STACKSORT_H
#define CODECS_STACKSORT_H

#include "codecs/base.h"

struct sortable {
    uint64_t id;          /* a keyed hash: chooses pivots, so that no sender can make the sort slow */
    const uint32_t *refs; /* frames, root first */
    uint32_t n;
};
void stacksort(struct sortable *s, size_t n);

#endif
