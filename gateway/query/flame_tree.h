/* The call tree under a flame graph: one node for each path of names, private to flame.c and flame_tree.c. */
#ifndef GATEWAY_QUERY_FLAME_TREE_H
#define GATEWAY_QUERY_FLAME_TREE_H

#include "gateway/query/flame.h"
#include "gateway/query/nameset.h"

struct flame_node {
    uint32_t parent, label; /* label: place in labels */
    uint32_t first, next;   /* children, in no order; STACK_NONE ends */
    int64_t self, total;
};
struct flame_tree {
    struct flame_node *nodes; /* nodes[0] is the root; a parent comes before its children */
    uint32_t n, cap;
    uint32_t *slots, n_slots; /* (parent, label) -> node */
    struct nameset labels;
};
enum err flame_tree_build(struct flame_tree *t, struct stacks *s) MUST_CHECK;

#endif
