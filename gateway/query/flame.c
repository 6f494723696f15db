/* Lays sorted paths out: which nodes stay, in which order, at which x; everything cut goes into boxes named "other". */
#include "gateway/query/flame.h"

#include "gateway/query/flame_paths.h"

struct layout {
    struct flame *flame;
    struct flame_paths paths;
    struct ask *ask;
    int64_t min;
    uint32_t *name_of, other_name; /* rank -> name */
    uint32_t cap_boxes, cap_levels, n_boxes;
};

static uint32_t name_at(struct layout *l, uint32_t rank)
{
    if (l->name_of[rank] == STACK_NONE) {
        l->name_of[rank] = l->flame->n_names;
        l->flame->names[l->flame->n_names++] = l->paths.names[rank];
    }
    return l->name_of[rank];
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

/* The end of the run of rows from `from` that go through the same node at `depth` (a place in paths). */
static uint32_t end_of_node(const struct flame_paths *p, uint32_t from, uint32_t until, uint32_t depth)
{
    uint32_t i = from + 1;
    while (i < until && p->rows[i].shared > depth)
        i++;
    return i;
}

static int64_t self_of(const struct flame_paths *p, uint32_t from, uint32_t until, uint32_t len)
{
    uint32_t i = from;
    while (i < until && p->rows[i].len == len)
        i++;
    return p->sum[i] - p->sum[from];
}

/* A child that is named "other" joins the remainder, as readers of this layout expect (protocol.md 5.5). */
static bool is_cut(const struct layout *l, int64_t total, uint32_t rank)
{
    return total < l->min || str_eq(l->paths.names[rank], STR("other"));
}

/* Puts the children of a box behind all boxes so far, by name, the remainder last. */
static enum err add_children(struct layout *l, struct flame_box parent, uint32_t depth)
{
    const struct flame_paths *p = &l->paths;
    uint32_t from = parent.from;
    int64_t rest = 0, x = parent.x + parent.self;
    enum err e = E_OK;
    while (from < parent.until && p->rows[from].len == depth)
        from++;
    while (from < parent.until && e == E_OK) {
        uint32_t until = end_of_node(p, from, parent.until, depth), rank = p->cells[p->rows[from].at + depth];
        int64_t total = p->sum[until] - p->sum[from];
        if (is_cut(l, total, rank)) {
            rest += total;
            l->flame->cut_nodes += p->rows[from].len - depth + (p->made[until] - p->made[from + 1]);
        } else {
            e = add_box(
                l, (struct flame_box){x, total, self_of(p, from, until, depth + 1), name_at(l, rank), from, until});
            x += total;
        }
        from = until;
    }
    if (rest > 0 && e == E_OK)
        e = add_box(l, (struct flame_box){x, rest, rest, other_at(l), 0, 0});
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
    uint32_t n = l->paths.n_names;
    l->name_of = NEW(l->ask->arena, uint32_t, n + 1);
    f->names = NEW(l->ask->arena, struct str, n + 2);
    if (!l->name_of || !f->names)
        return ask_no_memory(l->ask);
    f->names[f->n_names++] = STR("total");
    memset(l->name_of, 0xff, (n + 1) * sizeof(*l->name_of));
    for (uint32_t i = 0; i < n; i++)
        if (str_eq(l->paths.names[i], STR("total")))
            l->name_of[i] = 0;
    f->total = l->paths.sum[l->paths.n];
    enum err e = add_box(l, (struct flame_box){0, f->total, 0, 0, 0, l->paths.n});
    return e ? e : end_level(l);
}

enum err flame_build(struct flame *f, struct stacks *s, uint32_t max_nodes)
{
    struct layout l = {.flame = f, .ask = s->ask, .other_name = STACK_NONE};
    *f = (struct flame){0};
    enum err e = flame_paths_build(&l.paths, s);
    if (e == E_OK)
        e = flame_paths_min(&l.paths, s->ask, max_nodes, &l.min);
    if (e == E_OK)
        e = open_layout(&l);
    for (uint32_t at = 0, depth = 0; e == E_OK && at < l.n_boxes; depth++) {
        uint32_t until = l.n_boxes;
        for (; at < until && e == E_OK; at++)
            e = add_children(&l, f->boxes[at], depth);
        if (e == E_OK && l.n_boxes > until)
            e = end_level(&l);
    }
    return e;
}
