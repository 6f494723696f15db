/* Merged samples as people see them: functions by their display identity, stacks of them, and what each is charged
 * with. */
#ifndef GATEWAY_QUERY_STACKS_H
#define GATEWAY_QUERY_STACKS_H

#include "codecs/identity.h"
#include "gateway/query/gather.h"
#include "gateway/query/rules.h"

#define STACK_NONE UINT32_MAX

/* One row of a function list (design.md 4, function identity). Strings belong to the symbols or to the arena. */
struct fn {
    struct identity id;
    int64_t line; /* where it starts, else the smallest line seen; 0: not known */
    bool own_code;
    int64_t self, total, own;
    uint32_t mark; /* of the walk: the last stack that has counted it */
};
struct stacks {
    struct ask *ask;
    const struct gathered *g;
    struct fn *fns;
    uint32_t n_fns, cap_fns;
    uint32_t *slots, n_slots;  /* functions by identity */
    struct known_frame *known; /* functions by frame */
    uint32_t n_known, cap_known;
    const struct symframe **frames; /* of the stack under way */
    uint32_t *path;
    uint32_t cap_path, mark;
    int64_t no_own_code; /* after stacks_charge */
};
/* One stack, root first: fn[0..n), n >= 1. `own`: place of its deepest own frame, or STACK_NONE. */
struct stack {
    const uint32_t *fn;
    uint32_t n, own;
    int64_t value;
};
typedef enum err (*stack_visit)(void *ctx, const struct stack *s);

/* Fine without samples too: no functions then. Everything lives in the ask's arena and in g. */
enum err stacks_open(struct stacks *s, struct ask *a, const struct gathered *g) MUST_CHECK;
enum err stacks_walk(struct stacks *s, stack_visit visit, void *ctx) MUST_CHECK;
/* Fills self, total and own of every function, once. */
enum err stacks_charge(struct stacks *s) MUST_CHECK;
/* Places in fns by `key` (self, total or own), largest first, then by name and file; in the arena. */
enum stack_key { KEY_SELF, KEY_TOTAL, KEY_OWN };
uint32_t *stacks_rank(struct stacks *s, enum stack_key key) MUST_CHECK;

#endif
