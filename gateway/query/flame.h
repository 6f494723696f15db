/* The merged call tree by names, cut to its largest nodes, in the layout of flame graphs (protocol.md 5.5). */
#ifndef GATEWAY_QUERY_FLAME_H
#define GATEWAY_QUERY_FLAME_H

#include "gateway/query/stacks.h"

enum { FLAME_NODES = 8192, FLAME_NODES_MAX = 1048576 };

/* A box: absolute x, width and own part of it, in the unit of the type. */
struct flame_box {
    int64_t x, total, self;
    uint32_t name;        /* place in names */
    uint32_t from, until; /* private: the rows under it; none under remainders */
};
struct flame {
    struct str *names; /* names[0] is "total"; escaped nowhere */
    uint32_t n_names;
    struct flame_box *boxes; /* level by level, each from left to right */
    uint32_t *level_at;      /* boxes[level_at[d]] up to boxes[level_at[d + 1]] */
    uint32_t n_levels;
    int64_t total, max_self;
    int64_t cut_value; /* in boxes named "other" because of the limit */
    uint64_t cut_nodes;
};
/* Everything in the ask's arena. max_nodes: how many of the largest are kept for sure. */
enum err flame_build(struct flame *f, struct stacks *s, uint32_t max_nodes) MUST_CHECK;

/* As flame graphs show a function: its name, and where it starts if only that tells it apart. */
enum err flame_label(struct ask *a, const struct fn *f, struct str *out) MUST_CHECK;

#endif
