/* Collects the paths of all stacks by the names that flame graphs show, ranks the names, sorts the paths. */
#include "gateway/query/flame_paths.h"

#include <stdio.h>
#include <stdlib.h>

#include "gateway/query/nameset.h"

struct collecting {
    struct flame_paths *paths;
    struct stacks *stacks;
    struct nameset names;
    uint32_t *name_of; /* function -> name */
    uint32_t cap_rows, n_cells, cap_cells;
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

static enum err name_functions(struct collecting *c)
{
    struct stacks *s = c->stacks;
    c->name_of = NEW(s->ask->arena, uint32_t, s->n_fns + 1);
    if (!c->name_of)
        return ask_no_memory(s->ask);
    for (uint32_t i = 0; i < s->n_fns; i++) {
        struct str label;
        if (flame_label(s->ask, &s->fns[i], &label) != E_OK)
            return s->ask->fault.err;
        if (nameset_add(&c->names, s->ask, label, false, &c->name_of[i]) != E_OK)
            return s->ask->fault.err;
    }
    return E_OK;
}

static bool reserve(struct collecting *c, uint32_t len)
{
    struct arena *a = c->stacks->ask->arena;
    struct flame_paths *p = c->paths;
    if (p->n == c->cap_rows) {
        uint32_t cap = c->cap_rows ? c->cap_rows * 2 : 256;
        p->rows = GROW(a, p->rows, struct flame_path, c->cap_rows, cap);
        if (!p->rows)
            return false;
        c->cap_rows = cap;
    }
    if (c->cap_cells - c->n_cells < len) {
        uint32_t cap = c->cap_cells ? c->cap_cells : 4096;
        while (cap - c->n_cells < len && cap < UINT32_MAX / 2)
            cap *= 2;
        p->cells = cap - c->n_cells < len ? NULL : GROW(a, p->cells, uint32_t, c->cap_cells, cap);
        c->cap_cells = cap;
    }
    return p->cells != NULL;
}

static enum err on_stack(void *ctx, const struct stack *st)
{
    struct collecting *c = ctx;
    struct flame_paths *p = c->paths;
    if (!reserve(c, st->n))
        return ask_no_memory(c->stacks->ask);
    p->rows[p->n++] = (struct flame_path){.at = c->n_cells, .len = st->n, .value = st->value};
    p->deepest = st->n > p->deepest ? st->n : p->deepest;
    for (uint32_t i = 0; i < st->n; i++)
        p->cells[c->n_cells++] = c->name_of[st->fn[i]];
    return E_OK;
}

static int compare_names(const void *a, const void *b, void *names)
{
    const struct str *list = names;
    return str_cmp(list[*(const uint32_t *)a], list[*(const uint32_t *)b]);
}

/* Cells become ranks, so that paths compare as numbers and children come in the order of their names. */
static enum err rank_names(struct collecting *c)
{
    struct arena *a = c->stacks->ask->arena;
    struct flame_paths *p = c->paths;
    uint32_t n = c->names.n, *order = NEW(a, uint32_t, n + 1), *rank = NEW(a, uint32_t, n + 1);
    p->names = NEW(a, struct str, n + 1);
    if (!order || !rank || !p->names)
        return ask_no_memory(c->stacks->ask);
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    if (n > 1)
        qsort_r(order, n, sizeof(*order), compare_names, c->names.list);
    for (uint32_t i = 0; i < n; i++) {
        rank[order[i]] = i;
        p->names[i] = c->names.list[order[i]];
    }
    for (uint32_t i = 0; i < c->n_cells; i++)
        p->cells[i] = rank[p->cells[i]];
    p->n_names = n;
    return E_OK;
}

static uint32_t common(const struct flame_paths *p, const struct flame_path *x, const struct flame_path *y)
{
    uint32_t n = x->len < y->len ? x->len : y->len, i = 0;
    while (i < n && p->cells[x->at + i] == p->cells[y->at + i])
        i++;
    return i;
}

/* A path stands before those that go on from it. */
static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct flame_paths *p = ctx;
    const struct flame_path *x = a, *y = b;
    uint32_t i = common(p, x, y);
    if (i < x->len && i < y->len)
        return p->cells[x->at + i] < p->cells[y->at + i] ? -1 : 1;
    return x->len == y->len ? 0 : x->len < y->len ? -1 : 1;
}

static enum err sort_rows(struct flame_paths *p, struct ask *a)
{
    bool over = false;
    p->sum = NEW(a->arena, int64_t, p->n + 1);
    p->made = NEW(a->arena, uint64_t, p->n + 1);
    if (!p->sum || !p->made)
        return ask_no_memory(a);
    if (p->n > 1)
        qsort_r(p->rows, p->n, sizeof(*p->rows), compare_rows, p);
    for (uint32_t i = 0; i < p->n; i++) {
        struct flame_path *r = &p->rows[i];
        r->shared = i ? common(p, &p->rows[i - 1], r) : 0;
        p->sum[i + 1] = add_sat(p->sum[i], r->value, &over);
        p->made[i + 1] = p->made[i] + r->len - r->shared;
    }
    return ask_look(a);
}

enum err flame_paths_build(struct flame_paths *p, struct stacks *s)
{
    struct collecting c = {.paths = p, .stacks = s};
    *p = (struct flame_paths){0};
    enum err e = name_functions(&c);
    if (e == E_OK)
        e = stacks_walk(s, on_stack, &c);
    if (e == E_OK)
        e = rank_names(&c);
    return e ? e : sort_rows(p, s->ask);
}

/* The largest totals so far, the smallest of them on top. */
struct heap {
    int64_t *list;
    uint32_t n, cap;
};

static void sift_down(struct heap *h, int64_t v)
{
    uint32_t at = 0;
    while (2 * at + 1 < h->n) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < h->n && h->list[child + 1] < h->list[child])
            child++;
        if (v <= h->list[child])
            break;
        h->list[at] = h->list[child];
        at = child;
    }
    h->list[at] = v;
}

static void offer(struct heap *h, int64_t v)
{
    if (h->n == h->cap) {
        if (v > h->list[0])
            sift_down(h, v);
        return;
    }
    uint32_t at = h->n++;
    for (; at > 0 && h->list[(at - 1) / 2] > v; at = (at - 1) / 2)
        h->list[at] = h->list[(at - 1) / 2];
    h->list[at] = v;
}

enum err flame_paths_min(const struct flame_paths *p, struct ask *a, uint32_t max_nodes, int64_t *min)
{
    *min = 0;
    if (p->made[p->n] <= max_nodes)
        return E_OK;
    struct heap h = {NEW(a->arena, int64_t, max_nodes), 0, max_nodes};
    int64_t *opened = NEW(a->arena, int64_t, p->deepest + 1); /* by depth: the sum where that node began */
    if (!h.list || !opened)
        return ask_no_memory(a);
    for (uint32_t i = 0, depth = 0; i <= p->n; i++) {
        uint32_t shared = i < p->n ? p->rows[i].shared : 0;
        for (; depth > shared; depth--)
            offer(&h, p->sum[i] - opened[depth - 1]);
        for (; i < p->n && depth < p->rows[i].len; depth++)
            opened[depth] = p->sum[i];
        enum err e = ask_alive(a);
        if (e)
            return e;
    }
    *min = h.list[0];
    return E_OK;
}
