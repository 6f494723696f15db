/* A spool looked at from outside, by `flamegate spool`: nothing is changed, a gateway may be using it. */
#ifndef BACKENDS_SPOOL_WALK_H
#define BACKENDS_SPOOL_WALK_H

#include "codecs/base.h"

struct spool_segment {
    const char *name;
    uint64_t bytes, used; /* on the disk; up to where there are entries */
    uint64_t groups, profiles, marks;
    int64_t first_ns, last_ns; /* when its first and last entry were written; 0: none */
    char damage[200];          /* where and what; empty: whole */
};
/*
 * Every segment of a directory, oldest first; deep: its records too, not only the frames around them. E_NOT_FOUND: no
 * such directory. E_NO_MEMORY, E_INTERNAL: f says what cannot be read.
 */
enum err spool_walk(const char *dir, bool deep, void (*segment)(void *ctx, const struct spool_segment *s), void *ctx,
                    struct fault *f) MUST_CHECK;
/* Whether a process is using it: its last entry may be half written. */
bool spool_walk_in_use(const char *dir);

#endif
