/* Profiles made from a seed: valid, of any shape, the same for the same recipe. */
#ifndef TEST_ORACLE_MADE_PROFILE_H
#define TEST_ORACLE_MADE_PROFILE_H

#include "codecs/profile.h"

struct recipe {
    uint64_t seed;
    uint32_t functions, stacks, depth, sets, samples, types;
    bool plain;     /* only frames with a function, none inlined */
    uint32_t shift; /* names of functions begin at this number, so that two profiles share some */
};
/* Everything in a; asserts that there is memory. Samples are unique (stack, set) pairs, so there may be fewer. */
struct profile *made_profile(struct arena *a, const struct recipe *r);

#endif
