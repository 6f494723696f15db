/*
 * All merged stacks as paths of names, sorted: every node of the call tree is a run of rows then, and the tree itself
 * is never built (60,000 deep stacks would make millions of nodes). Private to flame.c and flame_paths.c.
 */
#ifndef GATEWAY_QUERY_FLAME_PATHS_H
#define GATEWAY_QUERY_FLAME_PATHS_H

#include "gateway/query/flame.h"

struct flame_path {
    uint32_t at, len; /* cells */
    uint32_t shared;  /* how many names it begins with like the row before it */
    int64_t value;
};
struct flame_paths {
    struct str *names; /* by rank: their byte order */
    uint32_t n_names;
    uint32_t *cells; /* ranks of names, path by path */
    struct flame_path *rows;
    uint32_t n, deepest;
    int64_t *sum;   /* of values up to a row; n + 1 of them */
    uint64_t *made; /* nodes that begin before a row; n + 1 of them */
};
enum err flame_paths_build(struct flame_paths *p, struct stacks *s) MUST_CHECK;
/* The smallest total among the max_nodes largest nodes; 0 where there are not more of them. */
enum err flame_paths_min(const struct flame_paths *p, struct ask *a, uint32_t max_nodes, int64_t *min) MUST_CHECK;

#endif
