/* GET flamegraph: the merged flame graph in the format that is wanted. */
#include "gateway/query/flamegraph.h"

#include "gateway/query/endpoints.h"
#include "gateway/query/text.h"

static void write_json(const struct ask *a, const struct gathered *g, const struct flame *f)
{
    struct json j = {.out = &a->answer->body};
    json_open(&j, '{');
    gather_head(&j, a, g);
    json_key(&j, "names");
    json_open(&j, '[');
    for (uint32_t i = 0; i < f->n_names; i++)
        json_str(&j, f->names[i]);
    json_close(&j, ']');
    json_key(&j, "levels");
    json_open(&j, '[');
    for (uint32_t d = 0; d < f->n_levels; d++) {
        int64_t end = 0;
        json_open(&j, '[');
        for (uint32_t i = f->level_at[d]; i < f->level_at[d + 1]; i++) {
            const struct flame_box *b = &f->boxes[i];
            json_int(&j, b->x - end);
            json_int(&j, b->total);
            json_int(&j, b->self);
            json_int(&j, b->name);
            end = b->x + b->total;
        }
        json_close(&j, ']');
    }
    json_close(&j, ']');
    json_key(&j, "max_self");
    json_int(&j, f->max_self);
    json_key(&j, "cut");
    json_open(&j, '{');
    json_key(&j, "value");
    json_int(&j, f->cut_value);
    json_key(&j, "nodes");
    json_uint(&j, f->cut_nodes);
    json_close(&j, '}');
    json_close(&j, '}');
}

enum { AS_JSON, AS_TEXT, AS_FOLDED, AS_SPEEDSCOPE, AS_DOT, AS_PPROF };

static enum err write_as(struct ask *a, const struct gathered *g, struct stacks *s, size_t format, uint32_t max_nodes)
{
    struct flame f;
    switch (format) {
    case AS_FOLDED:
        a->answer->content_type = "text/plain; charset=utf-8";
        return folded_write(a, s);
    case AS_SPEEDSCOPE:
        return speedscope_write(a, s);
    case AS_DOT:
        a->answer->content_type = "text/vnd.graphviz; charset=utf-8";
        return dot_write(a, s);
    default:
        break;
    }
    enum err e = flame_build(&f, s, max_nodes);
    if (e == E_OK && format == AS_TEXT)
        icicle_write(a, g, &f);
    else if (e == E_OK)
        write_json(a, g, &f);
    return e;
}

static enum err read_nodes(struct ask *a, uint32_t *max_nodes)
{
    *max_nodes = a->limit ? a->limit : FLAME_NODES;
    if (a->limit && a->params.given[PARAM_MAX_NODES])
        return fault_set(&a->fault, E_BAD_REQUEST,
                         "parameter \"max_nodes\" is another name of \"limit\" here: give one");
    return params_number(&a->params, PARAM_MAX_NODES, 1, FLAME_NODES_MAX, max_nodes, &a->fault);
}

enum err flamegraph_run(struct ask *a)
{
    static const char *const formats[] = {"json", "text", "folded", "speedscope", "dot", "pprof"};
    struct gathered g = {0};
    struct stacks s;
    uint32_t max_nodes;
    size_t format;
    enum err e = ask_format(a, formats, COUNTOF(formats), &format);
    if (e == E_OK)
        e = read_nodes(a, &max_nodes);
    if (e)
        return e;
    if (format == AS_PPROF)
        return download_pprof(a, false);
    e = gather(a, GATHER_ONE_TYPE, false, &g);
    if (e == E_OK)
        e = stacks_open(&s, a, &g);
    if (e == E_OK)
        e = write_as(a, &g, &s, format, max_nodes);
    gather_close(&g);
    return e;
}
