/* Call graphs for Graphviz. Names are escaped for DOT's strings; what is not drawn is named in the title. */
#include "gateway/query/edges.h"
#include "gateway/query/flamegraph.h"
#include "gateway/query/text.h"

enum { DOT_NODES = 80 };

struct drawing {
    struct stacks *stacks;
    struct edges edges;
    uint32_t mark;
};

static enum err on_stack(void *ctx, const struct stack *st)
{
    struct drawing *d = ctx;
    d->mark++;
    for (uint32_t i = 1; i < st->n; i++) {
        enum err e = edges_add(&d->edges, d->stacks->ask, st->fn[i - 1], st->fn[i], st->value, d->mark);
        if (e)
            return e;
    }
    return E_OK;
}

static void put_quoted(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.len;) {
        size_t n = 0;
        while (i + n < s.len && s.p[i + n] != '"' && s.p[i + n] != '\\')
            n++;
        text_put(out, (struct str){s.p + i, n}, SIZE_MAX / 2);
        i += n;
        if (i < s.len)
            buf_printf(out, "\\%c", s.p[i++]);
    }
}

static void put_node(struct buf *out, const struct stacks *s, uint32_t i)
{
    const struct fn *f = &s->fns[i];
    int64_t total = gather_total(s->g);
    buf_printf(out, "  n%u [label=\"", i);
    put_quoted(out, f->id.name);
    buf_str(out, STR("\\nself "));
    text_percent_words(out, f->self, total);
    buf_str(out, STR(", total "));
    text_percent_words(out, f->total, total);
    buf_str(out, STR("\" tooltip=\""));
    put_quoted(out, f->id.file);
    buf_str(out, STR("\"];\n"));
}

enum err dot_write(struct ask *a, struct stacks *s)
{
    struct drawing d = {.stacks = s};
    struct buf *out = &a->answer->body;
    enum err e = stacks_charge(s);
    if (e == E_OK)
        e = stacks_walk(s, on_stack, &d);
    const uint32_t *order = e == E_OK ? stacks_rank(s, KEY_TOTAL) : NULL;
    bool *drawn = order ? NEW(a->arena, bool, s->n_fns + 1) : NULL;
    if (!drawn)
        return e ? e : ask_no_memory(a);
    uint32_t limit = a->limit ? a->limit : DOT_NODES, n = s->n_fns < limit ? s->n_fns : limit;
    int64_t self = 0;
    edges_sort(&d.edges, s);
    buf_str(out, STR("digraph profile {\n  node [shape=box fontname=\"sans-serif\"];\n"));
    for (uint32_t i = 0; i < n; i++) {
        put_node(out, s, order[i]);
        drawn[order[i]] = true;
        self += s->fns[order[i]].self;
    }
    for (uint32_t i = 0; i < d.edges.n; i++) {
        const struct edge *edge = &d.edges.list[i];
        if (!drawn[edge->from] || !drawn[edge->to])
            continue;
        buf_printf(out, "  n%u -> n%u [label=\"", edge->from, edge->to);
        text_percent_words(out, edge->value, gather_total(s->g));
        buf_str(out, STR("\"];\n"));
    }
    buf_printf(out, "  label=\"total %lld, not drawn: %u functions, self %lld\";\n}\n", (long long)gather_total(s->g),
               s->n_fns - n, (long long)(gather_total(s->g) - self));
    return E_OK;
}
