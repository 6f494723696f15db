/* Files of speedscope.app: frames once, then a stack and a weight for each merged stack. */
#include "gateway/query/flamegraph.h"

struct scoping {
    struct json json;
    struct buf weights;
    struct ask *ask;
};

static enum err on_stack(void *ctx, const struct stack *st)
{
    struct scoping *s = ctx;
    json_open(&s->json, '[');
    for (uint32_t i = 0; i < st->n; i++)
        json_uint(&s->json, st->fn[i]);
    json_close(&s->json, ']');
    buf_printf(&s->weights, "%s%lld", s->weights.len ? "," : "", (long long)st->value);
    return s->json.out->failed || s->weights.failed ? fault_set(&s->ask->fault, E_NO_MEMORY, NULL) : E_OK;
}

static void put_key_str(struct json *j, const char *key, struct str value)
{
    json_key(j, key);
    json_str(j, value);
}

static void put_frames(struct json *j, const struct stacks *s)
{
    json_key(j, "shared");
    json_open(j, '{');
    json_key(j, "frames");
    json_open(j, '[');
    for (uint32_t i = 0; i < s->n_fns; i++) {
        json_open(j, '{');
        put_key_str(j, "name", s->fns[i].id.name);
        if (s->fns[i].id.file.len)
            put_key_str(j, "file", s->fns[i].id.file);
        if (s->fns[i].line > 0) {
            json_key(j, "line");
            json_int(j, s->fns[i].line);
        }
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

static struct str unit_name(const struct gathered *g)
{
    struct str unit = g->type ? g->type->unit : (struct str){NULL, 0};
    return str_eq(unit, STR("nanoseconds")) || str_eq(unit, STR("bytes")) ? unit : STR("none");
}

enum err speedscope_write(struct ask *a, struct stacks *s)
{
    struct scoping sc = {.json = {.out = &a->answer->body}, .ask = a};
    struct json *j = &sc.json;
    json_open(j, '{');
    put_key_str(j, "$schema", STR("https://www.speedscope.app/file-format-schema.json"));
    put_key_str(j, "exporter", STR("flamegate"));
    put_key_str(j, "name", gather_service(a, s->g));
    json_key(j, "profiles");
    json_open(j, '[');
    json_open(j, '{');
    put_key_str(j, "type", STR("sampled"));
    put_key_str(j, "name", s->g->type ? s->g->type->type : STR("nothing"));
    put_key_str(j, "unit", unit_name(s->g));
    json_key(j, "startValue");
    json_int(j, 0);
    json_key(j, "endValue");
    json_int(j, gather_total(s->g));
    json_key(j, "samples");
    json_open(j, '[');
    enum err e = stacks_walk(s, on_stack, &sc);
    json_close(j, ']');
    json_key(j, "weights");
    json_open(j, '[');
    buf_str(j->out, buf_view(&sc.weights));
    json_close(j, ']');
    json_close(j, '}');
    json_close(j, ']');
    put_frames(j, s);
    json_close(j, '}');
    buf_free(&sc.weights);
    return e;
}
