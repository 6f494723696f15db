/* Sniffing and stacking of layers, and the one place that knows what a payload looks like when it is not a profile. */
#include "codecs/payload.h"

struct payload *payload_new(struct intake *in, enum payload_kind kind, bool alone)
{
    struct payload *p = NEW(in->arena, struct payload, 1);

    if (!p) {
        (void)intake_no_room(in);
        return NULL;
    }
    p->in = in;
    p->kind = kind;
    p->alone = alone;
    for (size_t i = 0; i < COUNTOF(p->levels); i++)
        p->levels[i].payload = p;
    p->hashing = hash_new(in->spec->key);
    if (!p->hashing) {
        (void)fault_set(&in->fault, E_NO_MEMORY, NULL);
        return NULL;
    }
    return p;
}

static void drop_layers(struct payload *p)
{
    for (size_t i = 0; i < COUNTOF(p->levels); i++) {
        layer_free(p->levels[i].layer, p->in);
        p->levels[i].layer = NULL;
    }
}

void payload_drop(struct payload *p)
{
    if (!p)
        return;
    drop_layers(p);
    hash_free(p->hashing);
    p->hashing = NULL;
}

static const char *looks_like(const struct payload_level *v)
{
    struct str s = str_trim((struct str){v->head, v->n_head});

    if (s.len == 0)
        return NULL;
    if (s.p[0] == '<')
        return "HTML or XML";
    if (s.p[0] == '{' || s.p[0] == '[')
        return "JSON";
    for (size_t i = 0; i < s.len; i++)
        if ((uint8_t)s.p[i] < 0x20 && s.p[i] != '\t' && s.p[i] != '\n' && s.p[i] != '\r')
            return NULL;
    return s.len >= 4 ? "text" : NULL;
}

static const struct payload_level *innermost(const struct payload *p)
{
    const struct payload_level *v = p->levels;

    while (v->layer)
        v++;
    return v;
}

/* A malformed pprof that plainly is something else is named as that. */
static void name_it(struct payload *p)
{
    const char *what = looks_like(innermost(p));

    if (p->kind == PAYLOAD_PPROF && p->fault.err == E_BAD_INPUT && what) {
        p->fault = (struct fault){0};
        (void)fault_set(&p->fault, E_BAD_INPUT, "not a pprof: looks like %s", what);
    }
}

static enum step unsupported(struct payload *p, const char *what)
{
    (void)fault_set(&p->fault, E_UNSUPPORTED_TYPE, "%s is not taken here; send pprof or folded text", what);
    return STEP_FAIL;
}

/* Folded text never begins like this; a profile as JSON does. */
static enum step check_folded(struct payload *p, struct str head)
{
    if (str_starts(head, STR("{\"nodes\"")))
        return unsupported(p, "a V8 cpuprofile (JSON)");
    if (str_starts(head, STR("{\"")) || str_starts(head, STR("{\n")) || str_starts(head, STR("{ ")))
        return unsupported(p, "a JSON profile (speedscope or V8 cpuprofile)");
    return STEP_MORE;
}

static bool decoder_new(struct payload *p)
{
    if (p->kind == PAYLOAD_PPROF)
        return (p->pprof = pprof_new(p->in, &p->fault)) != NULL;
    return (p->folded = folded_new(p->in, &p->fault)) != NULL;
}

/* Decides what this level is from its first bytes. */
static enum step know(struct payload_level *v)
{
    struct payload *p = v->payload;
    size_t depth = (size_t)(v - p->levels), outer = p->in->spec->coding != CODING_IDENTITY;
    struct str head = {v->head, v->n_head};

    v->known = true;
    v->replay = head;
    if (head.len == 0)
        return STEP_MORE;
    if (str_starts(head, STR("\x1f\x8b"))) {
        if (depth + outer >= LAYERS_MAX) {
            (void)fault_set(&p->fault, E_BAD_ENCODING, "gzip inside of %d compressed layers: at most %d are taken",
                            LAYERS_MAX, LAYERS_MAX);
            return STEP_FAIL;
        }
        v->layer = layer_new(p->in, CODING_GZIP, depth ? "gzip inside of gzip" : "gzip payload");
        return v->layer ? STEP_MORE : STEP_FAIL;
    }
    if (str_starts(head, (struct str){"FLR\0", 4}))
        return unsupported(p, "JFR (Java Flight Recorder)");
    if (p->kind == PAYLOAD_FOLDED && check_folded(p, head) != STEP_MORE)
        return STEP_FAIL;
    return decoder_new(p) ? STEP_MORE : STEP_FAIL;
}

static enum step level_feed(void *ctx, struct str *in, uint32_t *budget);

static enum step pass_on(struct payload_level *v, struct str *in, uint32_t *budget)
{
    struct payload *p = v->payload;

    if (v->layer)
        return layer_feed(v->layer, in, budget, level_feed, v + 1, &p->fault);
    if (in->len && *budget == 0)
        return STEP_AGAIN;
    return p->pprof ? pprof_feed(p->pprof, in, budget) : folded_feed(p->folded, in, budget);
}

static enum step level_feed(void *ctx, struct str *in, uint32_t *budget)
{
    struct payload_level *v = ctx;
    enum step s = STEP_MORE;

    while (!v->known && in->len && v->n_head < HEAD_BYTES) {
        v->head[v->n_head++] = *in->p++;
        in->len--;
        budget_take(budget, 1);
    }
    if (!v->known && v->n_head < HEAD_BYTES)
        return STEP_MORE;
    if (!v->known)
        s = know(v);
    if (s == STEP_MORE && v->replay.len)
        s = pass_on(v, &v->replay, budget);
    return s == STEP_MORE && (in->len || v->layer) ? pass_on(v, in, budget) : s;
}

static enum step level_end(struct payload_level *v, uint32_t *budget)
{
    struct payload *p = v->payload;
    enum step s = v->known ? STEP_MORE : know(v);

    if (s == STEP_MORE && v->replay.len)
        s = pass_on(v, &v->replay, budget);
    if (s != STEP_MORE)
        return s;
    if (v->layer) {
        s = layer_end(v->layer, budget, level_feed, v + 1, &p->fault);
        return s == STEP_MORE ? level_end(v + 1, budget) : s;
    }
    if (p->pprof)
        return pprof_end(p->pprof);
    return p->folded ? folded_end(p->folded) : STEP_MORE;
}

/* A fault of the payload fails the request only where there is nothing else in it. */
static enum step settle(struct payload *p, enum step s)
{
    if (s != STEP_FAIL)
        return s;
    if (p->in->fault.err != E_OK)
        return STEP_FAIL;
    name_it(p);
    drop_layers(p);
    if (!p->alone)
        return STEP_MORE;
    p->in->fault = p->fault;
    return STEP_FAIL;
}

static enum step keep_original(struct payload *p, struct str piece)
{
    if (p->original_cap - p->bytes < piece.len) {
        size_t need = (size_t)p->bytes + piece.len, cap = need + need / 2 + 1024;
        char *o = GROW(p->in->arena, p->original, char, p->original_cap, cap);
        if (!o)
            return intake_no_room(p->in);
        p->original = o;
        p->original_cap = cap;
    }
    memcpy(p->original + p->bytes, piece.p, piece.len);
    return STEP_MORE;
}

static enum step note(struct payload *p, struct str piece)
{
    hash_feed(p->hashing, piece.p, piece.len);
    if (p->in->spec->keep_originals && piece.len && keep_original(p, piece) != STEP_MORE)
        return STEP_FAIL;
    p->bytes += piece.len;
    return STEP_MORE;
}

enum step payload_feed(struct payload *p, struct str *in, uint32_t *budget)
{
    const char *from = in->p;
    enum step s = p->fault.err == E_OK ? settle(p, level_feed(p->levels, in, budget)) : STEP_MORE;

    if (s == STEP_MORE && in->len) { /* dead: swallow */
        budget_take(budget, in->len);
        in->p += in->len;
        in->len = 0;
    }
    if (s != STEP_FAIL && note(p, (struct str){from, (size_t)(in->p - from)}) != STEP_MORE)
        return STEP_FAIL;
    return s;
}

enum step payload_end(struct payload *p, uint32_t *budget)
{
    if (p->ended)
        return STEP_MORE;
    enum step s = p->fault.err == E_OK ? settle(p, level_end(p->levels, budget)) : STEP_MORE;

    if (s != STEP_MORE)
        return s;
    p->digest = hash_end(p->hashing);
    p->ended = true;
    payload_drop(p);
    return STEP_MORE;
}

bool payload_empty(const struct payload *p)
{
    return !p->pprof && !p->folded;
}
