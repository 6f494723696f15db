/* Builds the call tree of all merged stacks, by the names that flame graphs show. */
#include "gateway/query/flame_tree.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIRST_NODES = 1024 };

struct growing {
    struct flame_tree *tree;
    struct stacks *stacks;
    uint32_t *label_of, n_label_of; /* function -> label */
};

enum err flame_label(struct ask *a, const struct fn *f, struct str *out)
{
    char line[24];
    *out = f->id.name;
    if (f->id.start_line < 0)
        return E_OK;
    snprintf(line, sizeof(line), ":%lld)", (long long)f->id.start_line);
    size_t n = f->id.name.len + 2 + f->id.file.len + strlen(line);
    char *p = NEW(a->arena, char, n + 1);
    if (!p)
        return ask_no_memory(a);
    int len = snprintf(p, n + 1, "%.*s (%.*s%s", STR_ARG(f->id.name), STR_ARG(f->id.file), line);
    *out = (struct str){p, len > 0 && (size_t)len < n ? (size_t)len : n};
    return E_OK;
}

static enum err grow_label_of(struct growing *g, uint32_t need)
{
    uint32_t n = g->n_label_of ? g->n_label_of : FIRST_NODES;
    while (n < need)
        n *= 2;
    g->label_of = GROW(g->stacks->ask->arena, g->label_of, uint32_t, g->n_label_of, n);
    if (!g->label_of)
        return ask_no_memory(g->stacks->ask);
    memset(g->label_of + g->n_label_of, 0xff, (n - g->n_label_of) * sizeof(*g->label_of));
    g->n_label_of = n;
    return E_OK;
}

static enum err find_label(struct growing *g, uint32_t fn, uint32_t *out)
{
    struct ask *a = g->stacks->ask;
    struct str text;
    if (fn >= g->n_label_of && grow_label_of(g, fn + 1) != E_OK)
        return a->fault.err;
    *out = g->label_of[fn];
    if (*out != STACK_NONE)
        return E_OK;
    if (flame_label(a, &g->stacks->fns[fn], &text) != E_OK)
        return a->fault.err;
    if (nameset_add(&g->tree->labels, a, text, false, out) != E_OK)
        return a->fault.err;
    g->label_of[fn] = *out;
    return E_OK;
}

static uint64_t mix(uint32_t parent, uint32_t label)
{
    uint64_t x = ((uint64_t)parent << 32 | label) * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ x >> 31;
}

static enum err grow_nodes(struct growing *g)
{
    struct ask *a = g->stacks->ask;
    struct flame_tree *t = g->tree;
    uint32_t cap = t->cap ? t->cap * 2 : FIRST_NODES, n = cap * 2;
    struct flame_node *nodes = GROW(a->arena, t->nodes, struct flame_node, t->cap, cap);
    uint32_t *slots = nodes ? NEW(a->arena, uint32_t, n) : NULL;
    if (!slots)
        return ask_no_memory(a);
    memset(slots, 0xff, n * sizeof(*slots));
    for (uint32_t i = 1; i < t->n; i++) {
        uint64_t at = mix(nodes[i].parent, nodes[i].label);
        while (slots[at & (n - 1)] != STACK_NONE)
            at++;
        slots[at & (n - 1)] = i;
    }
    t->nodes = nodes;
    t->slots = slots;
    t->n_slots = n;
    t->cap = cap;
    return E_OK;
}

static enum err find_child(struct growing *g, uint32_t parent, uint32_t label, uint32_t *out)
{
    struct flame_tree *t = g->tree;
    if (t->n == t->cap && grow_nodes(g) != E_OK)
        return g->stacks->ask->fault.err;
    uint64_t at = mix(parent, label);
    for (; t->slots[at & (t->n_slots - 1)] != STACK_NONE; at++) {
        *out = t->slots[at & (t->n_slots - 1)];
        if (t->nodes[*out].parent == parent && t->nodes[*out].label == label)
            return E_OK;
    }
    *out = t->slots[at & (t->n_slots - 1)] = t->n;
    t->nodes[t->n++] = (struct flame_node){parent, label, STACK_NONE, t->nodes[parent].first, 0, 0};
    t->nodes[parent].first = *out;
    return E_OK;
}

static enum err on_stack(void *ctx, const struct stack *st)
{
    struct growing *g = ctx;
    struct flame_tree *t = g->tree;
    uint32_t at = 0, label = 0;
    bool over = false;
    for (uint32_t i = 0; i < st->n; i++) {
        if (find_label(g, st->fn[i], &label) != E_OK || find_child(g, at, label, &at) != E_OK)
            return g->stacks->ask->fault.err;
    }
    t->nodes[at].self = add_sat(t->nodes[at].self, st->value, &over);
    return E_OK;
}

/* Parents stand before their children: one pass backwards sums everything up. */
static void sum_totals(struct flame_tree *t)
{
    bool over = false;
    for (uint32_t i = t->n; i-- > 0;) {
        struct flame_node *n = &t->nodes[i];
        n->total = add_sat(n->total, n->self, &over);
        if (i > 0)
            t->nodes[n->parent].total = add_sat(t->nodes[n->parent].total, n->total, &over);
    }
}

enum err flame_tree_build(struct flame_tree *t, struct stacks *s)
{
    struct growing g = {.tree = t, .stacks = s};
    *t = (struct flame_tree){0};
    if (grow_nodes(&g) != E_OK)
        return s->ask->fault.err;
    t->nodes[0] =
        (struct flame_node){.parent = STACK_NONE, .label = STACK_NONE, .first = STACK_NONE, .next = STACK_NONE};
    t->n = 1;
    enum err e = stacks_walk(s, on_stack, &g);
    sum_totals(t);
    return e;
}
