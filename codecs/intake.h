/*
 * What the stages of one request share. Each stage takes bytes off the front of its input, lowers the budget, and when
 * that is used up says STEP_AGAIN, keeping what it could not pass on.
 */
#ifndef CODECS_INTAKE_H
#define CODECS_INTAKE_H

#include "codecs/upload.h"

enum { LAYERS_MAX = 3 }; /* compressed ones, from socket to payload; design.md 3 */

struct intake {
    const struct upload_spec *spec;
    const struct limits *limits;
    struct arena *arena; /* limited by limits.decoded */
    struct fault fault;  /* of the request as a whole */
    struct layer *spare; /* one idle gunzip layer, for the next payload; owned */
    size_t malloced;     /* bytes held outside of the arena */
    uint64_t inflated;
};

/* Where a stage passes its output on to. */
typedef enum step (*intake_sink)(void *ctx, struct str *in, uint32_t *budget);

/* After an arena said no: the request fails. */
static inline enum step intake_no_room(struct intake *in)
{
    (void)arena_error(in->arena, &in->fault);
    return STEP_FAIL;
}

static inline void budget_take(uint32_t *budget, size_t n)
{
    *budget = n < *budget ? *budget - (uint32_t)n : 0;
}

/* The front of `in` that the budget allows for. */
static inline struct str budget_slice(struct str in, uint32_t budget)
{
    return (struct str){in.p, in.len < budget ? in.len : budget};
}

#endif
