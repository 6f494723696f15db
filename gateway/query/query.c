/* From a path to its endpoint, and from what went wrong to an answer that says so. */
#include "gateway/query/query.h"

#include "gateway/query/endpoints.h"

#define COMMON PARAMS_COMMON
#define BIT(name) PARAM_BIT(PARAM_##name)

/* A path of one word; `rest`: with more behind it, which may have a last word of its own. */
enum shape { SHAPE_WORD, SHAPE_REST };
static const struct endpoint {
    const char *word, *tail;
    enum shape shape;
    uint32_t params;
    enum err (*run)(struct ask *a);
} endpoints[] = {
    {"services", "", SHAPE_WORD, COMMON | BIT(KERNEL), services_run},
    {"types", "", SHAPE_WORD, COMMON, typelist_run},
    {"labels", "", SHAPE_WORD, COMMON, labels_run},
    {"labels", "", SHAPE_REST, COMMON, labels_run},
    {"overview", "", SHAPE_WORD, COMMON, overview_run},
    {"functions", "", SHAPE_WORD, COMMON | BIT(SORT) | BIT(OWN), functions_run},
    {"flamegraph", "", SHAPE_WORD, COMMON | BIT(MAX_NODES), flamegraph_run},
    {"function", "", SHAPE_WORD, COMMON | BIT(FUNCTION) | BIT(FILE), function_run},
    {"timeline", "", SHAPE_WORD, COMMON | BIT(STEP) | BIT(BY), timeline_run},
    {"profiles", "", SHAPE_WORD, COMMON | BIT(CURSOR), profiles_run},
    {"profiles", "/original", SHAPE_REST, 0, original_run},
    {"profiles", "/pprof", SHAPE_REST, 0, download_profile_run},
    {"profiles", "", SHAPE_REST, BIT(FORMAT), profile_run},
    {"merge.pb.gz", "", SHAPE_WORD, COMMON, download_merge_run},
    {"uploads", "", SHAPE_WORD,
     BIT(SERVICE) | BIT(FROM) | BIT(UNTIL) | BIT(LIMIT) | BIT(FORMAT) | BIT(KEY) | BIT(VERDICT) | BIT(REASON),
     uploads_run},
    {"rules", "", SHAPE_WORD, COMMON, rulelist_run},
};

/* rest: what stands between the word and the tail, not decoded. */
static bool fits(const struct endpoint *e, struct str path, struct str *rest)
{
    struct str word = str_of(e->word), tail = str_of(e->tail);
    *rest = (struct str){NULL, 0};
    if (e->shape == SHAPE_WORD)
        return str_eq(path, word);
    if (path.len < word.len + 2 + tail.len || !str_starts(path, word) || path.p[word.len] != '/' ||
        !str_ends(path, tail))
        return false;
    *rest = (struct str){path.p + word.len + 1, path.len - word.len - 1 - tail.len};
    return rest->len > 0 && !memchr(rest->p, '/', rest->len);
}

static const struct endpoint *find(struct str path, struct str *rest)
{
    for (size_t i = 0; i < COUNTOF(endpoints); i++)
        if (fits(&endpoints[i], path, rest))
            return &endpoints[i];
    return NULL;
}

bool query_known(struct str path)
{
    struct str rest;
    return find(path, &rest) != NULL;
}

static void write_error(struct answer *a, const struct fault *f)
{
    struct json j = {.out = &a->body};
    buf_free(&a->body);
    a->status = err_status(f->err);
    a->content_type = "application/json";
    a->disposition[0] = 0;
    a->nosniff = true;
    json_open(&j, '{');
    json_key(&j, "code");
    json_str(&j, str_of(err_code(f->err)));
    json_key(&j, "message");
    json_str(&j, str_of(f->text[0] ? f->text : err_text(f->err)));
    json_close(&j, '}');
}

static enum err decode_rest(struct ask *a, struct str raw)
{
    if (raw.len == 0)
        return E_OK;
    enum err e = params_decode(raw, false, a->arena, &a->rest);
    if (e == E_NO_MEMORY)
        return ask_no_memory(a);
    return e ? fault_set(&a->fault, e, "the path is badly encoded") : E_OK;
}

static enum err run(struct ask *a, const struct query *q, struct answer *answer)
{
    struct str raw = {NULL, 0};
    const struct endpoint *e = find(q->path, &raw);
    if (!e)
        return fault_set(&a->fault, E_NO_ROUTE, NULL);
    enum err err = ask_open(a, q, e->params, answer);
    if (err == E_OK)
        err = decode_rest(a, raw);
    if (err == E_OK)
        err = e->run(a);
    if (err == E_OK && answer->body.failed)
        err = fault_set(&a->fault, E_NO_MEMORY, NULL);
    return err;
}

void query_run(const struct query *q, struct answer *a)
{
    struct ask ask = {0};
    *a = (struct answer){.status = 200, .nosniff = true};
    enum err e = run(&ask, q, a);
    if (e) {
        if (ask.fault.err == E_OK)
            (void)fault_set(&ask.fault, e, NULL);
        write_error(a, &ask.fault);
    }
    if (!a->content_type)
        a->content_type = ask.text ? "text/plain; charset=utf-8" : "application/json";
    ask_close(&ask);
}
