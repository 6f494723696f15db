/*
 * A pprof read by nanopb and the plainest loops, for comparison with the fast decoder: same rules (design.md 4), no
 * line in common but the tables of types and units. Understands plain protobuf, no gzip.
 */
#ifndef TEST_ORACLE_NANO_PPROF_H
#define TEST_ORACLE_NANO_PPROF_H

#include "test/oracle/tally.h"

struct nano_result {
    bool readable;       /* nanopb took it, and every index and count in it is right */
    const char *why;     /* when not */
    uint32_t kept;       /* samples that survive */
    uint32_t broken;     /* samples that name what does not exist */
    struct tally *tally; /* when readable */
};
struct nano_result nano_pprof(struct arena *a, struct str bytes, uint32_t depth);

#endif
