/* Lays a call tree out: which nodes stay, in which order, at which x; everything cut goes into boxes named "other". */
#include "gateway/query/flame.h"

#include <stdlib.h>

#include "gateway/query/flame_tree.h"

enum { OTHER = STACK_NONE }; /* as a node: the remainder under its parent */

struct layout {
    struct flame *flame;
    struct flame_tree tree;
    struct ask *ask;
    int64_t min;
    uint32_t *name_of, other_name; /* label -> name */
    uint32_t *children, cap_boxes, cap_levels, n_boxes;
};

static int compare_down(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x == y ? 0 : x > y ? -1 : 1;
}

/* The smallest total among the max_nodes largest nodes; 0 where the tree is not larger. */
static enum err find_min(struct layout *l, uint32_t max_nodes)
{
    const struct flame_tree *t = &l->tree;
    if (t->n - 1 <= max_nodes)
        return E_OK;
    int64_t *totals = NEW(l->ask->arena, int64_t, t->n);
    if (!totals)
        return ask_no_memory(l->ask);
    for (uint32_t i = 1; i < t->n; i++)
        totals[i - 1] = t->nodes[i].total;
    qsort(totals, t->n - 1, sizeof(*totals), compare_down);
    l->min = totals[max_nodes - 1];
    return E_OK;
}

static uint32_t name_at(struct layout *l, uint32_t label)
{
    struct str text = l->tree.labels.list[label];
    if (l->name_of[label] == STACK_NONE) {
        l->name_of[label] = l->flame->n_names;
        l->flame->names[l->flame->n_names++] = text;
    }
    return l->name_of[label];
}

static uint32_t other_at(struct layout *l)
{
    if (l->other_name == STACK_NONE) {
        l->other_name = l->flame->n_names;
        l->flame->names[l->flame->n_names++] = STR("other");
    }
    return l->other_name;
}

static enum err add_box(struct layout *l, struct flame_box box)
{
    if (l->n_boxes == l->cap_boxes) {
        uint32_t cap = l->cap_boxes ? l->cap_boxes * 2 : 1024;
        struct flame_box *boxes = GROW(l->ask->arena, l->flame->boxes, struct flame_box, l->cap_boxes, cap);
        if (!boxes)
            return ask_no_memory(l->ask);
        l->flame->boxes = boxes;
        l->cap_boxes = cap;
    }
    l->flame->boxes[l->n_boxes++] = box;
    if (box.self > l->flame->max_self)
        l->flame->max_self = box.self;
    return ask_alive(l->ask);
}

static int compare_children(const void *a, const void *b, void *ctx)
{
    const struct layout *l = ctx;
    const struct flame_node *x = &l->tree.nodes[*(const uint32_t *)a], *y = &l->tree.nodes[*(const uint32_t *)b];
    return str_cmp(l->tree.labels.list[x->label], l->tree.labels.list[y->label]);
}

static uint32_t count_under(const struct flame_tree *t, uint32_t node)
{
    uint32_t n = 0, at = node;
    while (true) {
        n++;
        if (t->nodes[at].first != STACK_NONE) {
            at = t->nodes[at].first;
            continue;
        }
        while (at != node && t->nodes[at].next == STACK_NONE)
            at = t->nodes[at].parent;
        if (at == node)
            return n;
        at = t->nodes[at].next;
    }
}

/* A child that is named "other" joins the remainder, as readers of this layout expect (protocol.md 5.5). */
static bool is_cut(const struct layout *l, const struct flame_node *n)
{
    return n->total < l->min || str_eq(l->tree.labels.list[n->label], STR("other"));
}

/* Puts the children of a box behind all boxes so far, by name, the remainder last. */
static enum err add_children(struct layout *l, struct flame_box parent)
{
    const struct flame_tree *t = &l->tree;
    uint32_t n = 0;
    int64_t rest = 0, x = parent.x + parent.self;
    enum err e = E_OK;
    for (uint32_t c = t->nodes[parent.node].first; c != STACK_NONE; c = t->nodes[c].next) {
        if (!is_cut(l, &t->nodes[c])) {
            l->children[n++] = c;
            continue;
        }
        rest += t->nodes[c].total;
        l->flame->cut_nodes += count_under(t, c);
    }
    if (n > 1)
        qsort_r(l->children, n, sizeof(*l->children), compare_children, l);
    for (uint32_t i = 0; i < n && e == E_OK; i++) {
        const struct flame_node *c = &t->nodes[l->children[i]];
        e = add_box(l, (struct flame_box){x, c->total, c->self, name_at(l, c->label), l->children[i]});
        x += c->total;
    }
    if (rest > 0 && e == E_OK)
        e = add_box(l, (struct flame_box){x, rest, rest, other_at(l), OTHER});
    l->flame->cut_value += rest;
    return e;
}

static enum err end_level(struct layout *l)
{
    struct flame *f = l->flame;
    if (f->n_levels + 2 > l->cap_levels) {
        uint32_t cap = l->cap_levels ? l->cap_levels * 2 : 128;
        uint32_t *at = GROW(l->ask->arena, f->level_at, uint32_t, l->cap_levels, cap);
        if (!at)
            return ask_no_memory(l->ask);
        f->level_at = at;
        l->cap_levels = cap;
    }
    f->level_at[++f->n_levels] = l->n_boxes;
    return E_OK;
}

static enum err open_layout(struct layout *l)
{
    struct flame *f = l->flame;
    l->name_of = NEW(l->ask->arena, uint32_t, l->tree.labels.n + 1);
    l->children = NEW(l->ask->arena, uint32_t, l->tree.n + 1);
    f->names = NEW(l->ask->arena, struct str, l->tree.labels.n + 2);
    if (!l->name_of || !l->children || !f->names)
        return ask_no_memory(l->ask);
    f->names[f->n_names++] = STR("total");
    memset(l->name_of, 0xff, (l->tree.labels.n + 1) * sizeof(*l->name_of));
    for (uint32_t i = 0; i < l->tree.labels.n; i++)
        if (str_eq(l->tree.labels.list[i], STR("total")))
            l->name_of[i] = 0;
    return E_OK;
}

enum err flame_build(struct flame *f, struct stacks *s, uint32_t max_nodes)
{
    struct layout l = {.flame = f, .ask = s->ask, .other_name = STACK_NONE};
    *f = (struct flame){0};
    enum err e = flame_tree_build(&l.tree, s);
    if (e == E_OK)
        e = find_min(&l, max_nodes);
    if (e == E_OK)
        e = open_layout(&l);
    if (e)
        return e;
    f->total = l.tree.nodes[0].total;
    e = add_box(&l, (struct flame_box){0, f->total, 0, 0, 0});
    if (e == E_OK)
        e = end_level(&l);
    for (uint32_t from = 0; e == E_OK && from < l.n_boxes;) {
        uint32_t until = l.n_boxes;
        for (; from < until && e == E_OK; from++)
            if (f->boxes[from].node != OTHER)
                e = add_children(&l, f->boxes[from]);
        if (e == E_OK && l.n_boxes > until)
            e = end_level(&l);
    }
    return e;
}
