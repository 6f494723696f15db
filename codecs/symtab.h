/* Inside of the symbol table: symtab.c answers, symtab_add.c reads blocks into it. */
#ifndef CODECS_SYMTAB_H
#define CODECS_SYMTAB_H

#include "codecs/idmap.h"
#include "codecs/symbols.h"

#define NODE_NONE UINT32_MAX

/* Stacks are paths in a tree, from a node up to a root: what they share is held once. */
struct node {
    uint32_t parent, frame, depth; /* depth: frames of the path */
};

struct symtab {
    struct arena *a;                /* strings, functions, mappings, frames of all blocks */
    const struct symframe **frames; /* NULL: named, never defined */
    struct node *nodes;
    size_t n_frames, frames_cap, n_nodes, nodes_cap;
    struct idmap frame_of, stack_of; /* id -> frame; id -> node */
    const struct idset *wanted;      /* stacks; NULL: all */
};

#endif
