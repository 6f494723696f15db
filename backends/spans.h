/* The union of stretches of time: sorted, disjoint. */
#ifndef BACKENDS_SPANS_H
#define BACKENDS_SPANS_H

#include "backends/reader.h"

struct spans {
    struct span *list;
    uint32_t n, cap;
};
/* Empty spans are nothing. What comes in the order of time stays short at once; anything else until spans_unite. */
bool spans_add(struct spans *s, struct span span) MUST_CHECK; /* false: no memory */
void spans_unite(struct spans *s);
void spans_free(struct spans *s); /* empty afterwards */

#endif
