/* The formats of a flame graph besides JSON, one file each. They write into the answer's body. */
#ifndef GATEWAY_QUERY_FLAMEGRAPH_H
#define GATEWAY_QUERY_FLAMEGRAPH_H

#include "gateway/query/flame.h"

/* Lines "a;b;c 12", root first, nothing cut. */
enum err folded_write(struct ask *a, struct stacks *s) MUST_CHECK;
/* A file of speedscope.app: one sampled profile, nothing cut. */
enum err speedscope_write(struct ask *a, struct stacks *s) MUST_CHECK;
/* A call graph for Graphviz: the functions with the largest totals and the edges between them. */
enum err dot_write(struct ask *a, struct stacks *s) MUST_CHECK;
/* Boxes of characters, the root on top, 100 columns wide. */
void icicle_write(const struct ask *a, const struct gathered *g, const struct flame *f);

#endif
