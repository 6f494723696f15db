/* Folded (collapsed) text as it arrives: "root;...;leaf count" lines. Names and stacks are merged on the way. */
#ifndef CODECS_FOLDED_H
#define CODECS_FOLDED_H

#include "codecs/index.h"
#include "codecs/intake.h"
#include "codecs/types.h"
#include "codecs/vec.h"

struct folded {
    struct intake *in;
    struct fault *fault;
    uint64_t line; /* number of the line at hand, from 1 */
    char *carry;   /* a line that crosses a border of the input */
    size_t carried, carry_cap;
    bool any;

    VEC(struct str) names;
    struct index name_index;
    VEC(uint32_t) stack_at, stack_names; /* root first */
    VEC(int64_t) counts;                 /* of stacks */
    struct index stack_index;
    uint32_t *deep; /* names of the line at hand, filled from the end */
    uint32_t n_stacks, truncated, zero_lines;
    bool saturated;
};

struct folded *folded_new(struct intake *in, struct fault *f) MUST_CHECK; /* NULL: in->fault is set */
enum step folded_feed(struct folded *d, struct str *in, uint32_t *budget) MUST_CHECK;
enum step folded_end(struct folded *d) MUST_CHECK;
size_t folded_build_memory(const struct folded *d);

/* What counts mean: `type` from the application's name, and the text of the sampleRate parameter. */
struct folded_reading {
    const struct suffix *type;
    struct str sample_rate;
};
/* All but the series, the times and the id of the type. p borrows from d. */
struct profile;
enum err folded_build(const struct folded *d, const struct folded_reading *how, struct arena *a, struct profile *p,
                      struct fault *f) MUST_CHECK;

#endif
