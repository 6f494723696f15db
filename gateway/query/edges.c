/* A table of function pairs, each counted once per sample whatever the recursion. */
#include "gateway/query/edges.h"

#include <stdlib.h>

enum { FIRST_CAP = 256 };

/* Places in our own tables, not client bytes: plain mixing will do. */
static uint64_t mix(uint32_t from, uint32_t to)
{
    uint64_t x = ((uint64_t)from << 32 | to) * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ x >> 29;
}

static enum err grow(struct edges *e, struct ask *a)
{
    uint32_t cap = e->cap ? e->cap * 2 : FIRST_CAP, n = cap * 2;
    struct edge *list = GROW(a->arena, e->list, struct edge, e->cap, cap);
    uint32_t *slots = list ? NEW(a->arena, uint32_t, n) : NULL;
    if (!slots)
        return ask_no_memory(a);
    memset(slots, 0xff, n * sizeof(*slots));
    for (uint32_t i = 0; i < e->n; i++) {
        uint64_t at = mix(list[i].from, list[i].to);
        while (slots[at & (n - 1)] != STACK_NONE)
            at++;
        slots[at & (n - 1)] = i;
    }
    *e = (struct edges){list, slots, e->n, cap, n};
    return E_OK;
}

enum err edges_add(struct edges *e, struct ask *a, uint32_t from, uint32_t to, int64_t value, uint32_t mark)
{
    bool over = false;
    if (e->n == e->cap && grow(e, a) != E_OK)
        return a->fault.err;
    uint64_t at = mix(from, to);
    for (; e->slots[at & (e->n_slots - 1)] != STACK_NONE; at++) {
        struct edge *known = &e->list[e->slots[at & (e->n_slots - 1)]];
        if (known->from != from || known->to != to)
            continue;
        if (known->mark != mark)
            known->value = add_sat(known->value, value, &over);
        known->mark = mark;
        return E_OK;
    }
    e->slots[at & (e->n_slots - 1)] = e->n;
    e->list[e->n++] = (struct edge){from, to, value, mark};
    return E_OK;
}

static int compare_names(const struct stacks *s, uint32_t a, uint32_t b)
{
    if (a == b || a == STACK_NONE || b == STACK_NONE)
        return 0;
    int c = str_cmp(s->fns[a].id.name, s->fns[b].id.name);
    return c ? c : str_cmp(s->fns[a].id.file, s->fns[b].id.file);
}

static int compare_edges(const void *a, const void *b, void *ctx)
{
    const struct edge *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    int c = compare_names(ctx, x->from, y->from);
    return c ? c : compare_names(ctx, x->to, y->to);
}

void edges_sort(struct edges *e, const struct stacks *s)
{
    struct stacks view = *s; /* qsort_r takes no const context */
    if (e->n > 1)
        qsort_r(e->list, e->n, sizeof(*e->list), compare_edges, &view);
    e->n_slots = 0;
    e->cap = e->n; /* the next addition, if any, builds the slots anew */
}

struct own_edges {
    struct edges *edges;
    struct stacks *stacks;
    uint32_t mark;
};

static enum err on_stack(void *ctx, const struct stack *st)
{
    struct own_edges *o = ctx;
    o->mark++;
    if (st->own == STACK_NONE || st->own + 1 >= st->n)
        return E_OK;
    return edges_add(o->edges, o->stacks->ask, st->fn[st->own], st->fn[st->own + 1], st->value, o->mark);
}

enum err edges_of_own(struct edges *e, struct stacks *s)
{
    struct own_edges o = {e, s, 0};
    enum err err = stacks_walk(s, on_stack, &o);
    if (err == E_OK)
        edges_sort(e, s);
    return err;
}

void edges_put_row(struct json *j, const struct stacks *s, uint32_t fn, int64_t value)
{
    json_open(j, '{');
    json_key(j, "function");
    json_str(j, s->fns[fn].id.name);
    json_key(j, "file");
    json_str(j, s->fns[fn].id.file);
    json_key(j, "value");
    json_int(j, value);
    json_key(j, "share");
    json_share(j, value, gather_total(s->g));
    json_close(j, '}');
}

void edges_put_from(struct json *j, const struct edges *e, const struct stacks *s, uint32_t from, uint32_t limit)
{
    json_key(j, "callees");
    json_open(j, '[');
    for (uint32_t i = 0; i < e->n && limit; i++) {
        if (e->list[i].from != from)
            continue;
        edges_put_row(j, s, e->list[i].to, e->list[i].value);
        limit--;
    }
    json_close(j, ']');
}
