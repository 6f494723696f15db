/* GET function: one function, who calls it and what it calls, and the own code above it where it is library code (F20).
 */
#include "gateway/query/edges.h"
#include "gateway/query/endpoints.h"
#include "gateway/query/fnrow.h"
#include "gateway/query/text.h"

enum { ROWS = 100 };

struct one {
    struct ask *ask;
    struct gathered g;
    struct stacks stacks;
    struct edges callers, callees, own_callers; /* all from the other function to this one's place, or back */
    uint32_t fn, mark;                          /* STACK_NONE: not in this selection */
    uint32_t limit;
};

/* By name, and by file where one is given; of several the one with most. */
static uint32_t find_fn(const struct one *o)
{
    const struct params *p = &o->ask->params;
    uint32_t found = STACK_NONE;
    for (uint32_t i = 0; i < o->stacks.n_fns; i++) {
        const struct fn *f = &o->stacks.fns[i];
        if (!str_eq(f->id.name, p->value[PARAM_FUNCTION]) ||
            (p->given[PARAM_FILE] && !str_eq(f->id.file, p->value[PARAM_FILE])))
            continue;
        if (found == STACK_NONE || f->total > o->stacks.fns[found].total)
            found = i;
    }
    return found;
}

/* Its nearest own caller: the deepest own frame above the deepest of its own places in the stack. */
static enum err add_own_caller(struct one *o, const struct stack *st, uint32_t deepest)
{
    for (uint32_t i = deepest; i-- > 0;)
        if (o->stacks.fns[st->fn[i]].own_code && st->fn[i] != o->fn)
            return edges_add(&o->own_callers, o->ask, st->fn[i], o->fn, st->value, o->mark);
    return E_OK;
}

static enum err on_stack(void *ctx, const struct stack *st)
{
    struct one *o = ctx;
    uint32_t deepest = STACK_NONE;
    enum err e = E_OK;
    o->mark++;
    for (uint32_t i = 0; i < st->n && e == E_OK; i++) {
        if (st->fn[i] != o->fn)
            continue;
        deepest = i;
        if (i > 0)
            e = edges_add(&o->callers, o->ask, st->fn[i - 1], o->fn, st->value, o->mark);
        if (i + 1 < st->n && e == E_OK)
            e = edges_add(&o->callees, o->ask, o->fn, st->fn[i + 1], st->value, o->mark);
    }
    if (e == E_OK && deepest != STACK_NONE && !o->stacks.fns[o->fn].own_code)
        e = add_own_caller(o, st, deepest);
    return e;
}

static enum err compute(struct one *o)
{
    struct ask *a = o->ask;
    if (!a->params.given[PARAM_FUNCTION])
        return fault_set(&a->fault, E_BAD_REQUEST, "parameter \"function\" is missing");
    enum err e = gather(a, GATHER_ONE_TYPE, false, &o->g);
    if (e == E_OK)
        e = stacks_open(&o->stacks, a, &o->g);
    if (e == E_OK)
        e = stacks_charge(&o->stacks);
    o->fn = find_fn(o);
    o->limit = a->limit ? a->limit : ROWS;
    if (e == E_OK && o->fn != STACK_NONE)
        e = stacks_walk(&o->stacks, on_stack, o);
    edges_sort(&o->callers, &o->stacks);
    edges_sort(&o->callees, &o->stacks);
    edges_sort(&o->own_callers, &o->stacks);
    return e;
}

static void write_json(const struct one *o)
{
    struct json j = {.out = &o->ask->answer->body};
    const struct params *p = &o->ask->params;
    const struct fn absent = {.id = {.name = p->value[PARAM_FUNCTION], .file = p->value[PARAM_FILE]}};
    json_open(&j, '{');
    gather_head(&j, o->ask, &o->g);
    json_key(&j, "function");
    fnrow_put(&j, o->fn == STACK_NONE ? &absent : &o->stacks.fns[o->fn], gather_total(&o->g), true);
    json_close(&j, '}');
    json_key(&j, "callers");
    json_open(&j, '[');
    for (uint32_t i = 0; i < o->callers.n && i < o->limit; i++)
        edges_put_row(&j, &o->stacks, o->callers.list[i].from, o->callers.list[i].value);
    json_close(&j, ']');
    edges_put_from(&j, &o->callees, &o->stacks, o->fn, o->limit);
    json_key(&j, "source_url");
    json_null(&j);
    json_key(&j, "own_caller");
    if (o->own_callers.n)
        edges_put_row(&j, &o->stacks, o->own_callers.list[0].from, o->own_callers.list[0].value);
    else
        json_null(&j);
    json_close(&j, '}');
}

static void put_line(struct buf *out, const struct one *o, uint32_t fn, int64_t value)
{
    text_percent(out, value, gather_total(&o->g));
    buf_str(out, STR("  "));
    text_name(out, o->stacks.fns[fn].id.name, 50);
    buf_str(out, STR("  "));
    text_end(out, o->stacks.fns[fn].id.file, 38);
    buf_char(out, '\n');
}

static void write_text(const struct one *o)
{
    struct buf *out = &o->ask->answer->body;
    static const struct fn absent;
    const struct fn *f = o->fn == STACK_NONE ? &absent : &o->stacks.fns[o->fn];
    int64_t total = gather_total(&o->g);
    text_head(out, o->ask, &o->g);
    text_name(out, o->ask->params.value[PARAM_FUNCTION], TEXT_COLUMNS);
    buf_str(out, STR("\nself "));
    text_percent_words(out, f->self, total);
    buf_str(out, STR(", total "));
    text_percent_words(out, f->total, total);
    buf_str(out, STR(", own "));
    text_percent_words(out, f->own, total);
    buf_str(out, STR("\ncallers\n"));
    for (uint32_t i = 0; i < o->callers.n && i < o->limit; i++)
        put_line(out, o, o->callers.list[i].from, o->callers.list[i].value);
    buf_str(out, STR("callees\n"));
    for (uint32_t i = 0; i < o->callees.n && i < o->limit; i++)
        put_line(out, o, o->callees.list[i].to, o->callees.list[i].value);
}

enum err function_run(struct ask *a)
{
    static const char *const formats[] = {"json", "text"};
    struct one o = {.ask = a, .fn = STACK_NONE};
    size_t format;
    enum err e = ask_format(a, formats, COUNTOF(formats), &format);
    if (e == E_OK)
        e = compute(&o);
    if (e == E_OK && format == 1)
        write_text(&o);
    else if (e == E_OK)
        write_json(&o);
    gather_close(&o.g);
    return e;
}
