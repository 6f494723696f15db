/* Display names, and the names of series that follow from them. */
#include "codecs/type_config.h"

#include "codecs/json.h"
#include "codecs/types.h"

enum { TYPES_MAX = 64 };

struct reader {
    struct json json;
    struct arena *a;
    struct type_config *out;
    uint32_t n;
    enum { K_OTHER, K_DISPLAY, K_CUMULATIVE } key;
    char text[256];
    size_t n_text;
};

static bool take_key(struct reader *r, struct str key)
{
    if (r->json.depth == 1) {
        if (r->n == TYPES_MAX)
            return true;
        r->out[r->n].display = (struct str){"", 0};
        return arena_str(r->a, key, &r->out[r->n++].type);
    }
    r->key = K_OTHER;
    if (r->json.depth == 2 && str_eq_nocase(key, STR("display-name")))
        r->key = K_DISPLAY;
    if (r->json.depth == 2 && str_eq_nocase(key, STR("cumulative")))
        r->key = K_CUMULATIVE;
    return true;
}

static bool take(struct reader *r, enum json_event e, struct str text)
{
    struct type_config *last = r->n ? &r->out[r->n - 1] : NULL;

    if (e == JSON_KEY)
        return take_key(r, text);
    if (e == JSON_STRING)
        r->n_text = 0;
    if (e == JSON_PIECE) {
        size_t n = text.len < sizeof r->text - r->n_text ? text.len : sizeof r->text - r->n_text;
        memcpy(r->text + r->n_text, text.p, n);
        r->n_text += n;
    }
    if (e == JSON_STRING_END && r->json.depth == 2 && r->key == K_DISPLAY && last)
        return arena_str(r->a, (struct str){r->text, r->n_text}, &last->display);
    if (e == JSON_SCALAR && r->json.depth == 2 && r->key == K_CUMULATIVE && last)
        last->cumulative = str_eq(text, STR("true"));
    return true;
}

enum err type_config_parse(struct str text, struct arena *a, struct type_config **out, uint32_t *n, struct fault *f)
{
    struct reader *r = NEW(a, struct reader, 1);

    *n = 0;
    *out = NULL;
    if (str_trim(text).len == 0)
        return E_OK;
    if (!r || !(r->out = NEW(a, struct type_config, TYPES_MAX)))
        return arena_error(a, f);
    r->a = a;
    if (str_trim(text).p[0] != '{')
        return fault_set(f, E_BAD_INPUT, "sample_type_config is not a JSON object");
    for (;;) {
        struct str piece;
        enum json_event e = json_next(&r->json, &text, &piece);
        if (e == JSON_BAD)
            return fault_set(f, E_BAD_INPUT, "sample_type_config: %s", r->json.reason);
        if (e == JSON_NEED_MORE)
            break;
        if (!take(r, e, piece))
            return arena_error(a, f);
    }
    if (!json_done(&r->json))
        return fault_set(f, E_BAD_INPUT, "sample_type_config: it ends too early");
    *out = r->out;
    *n = r->n;
    return E_OK;
}

static struct str display(struct str type, const struct type_config *config, uint32_t n)
{
    static const struct type_config built_in[] = {
        {{"samples", 7}, {"cpu", 3}, false},
        {{"goroutine", 9}, {"goroutines", 10}, false},
        {{"contentions", 11}, {"mutex_count", 11}, false},
        {{"delay", 5}, {"mutex_duration", 14}, false},
    };

    if (!config) {
        config = built_in;
        n = COUNTOF(built_in);
    }
    for (uint32_t i = 0; i < n; i++)
        if (str_eq(config[i].type, type) && config[i].display.len)
            return config[i].display;
    return type;
}

static bool has(struct str s, const char *part)
{
    return s.len && memmem(s.p, s.len, part, strlen(part)) != NULL;
}

/* Empty: nothing known in it. */
static struct str group_name(struct str s)
{
    if (has(s, "cpu"))
        return STR("process_cpu");
    if (has(s, "alloc_") || has(s, "inuse_") || has(s, "alloc-") || has(s, "inuse-") || str_eq(s, STR("space")) ||
        str_eq(s, STR("objects")))
        return STR("memory");
    if (has(s, "mutex_"))
        return STR("mutex");
    if (has(s, "block_"))
        return STR("block");
    return has(s, "goroutines") ? STR("goroutines") : STR("");
}

struct str type_config_name(const struct pprof *d, const struct type_config *config, uint32_t n)
{
    struct str last = STR("");

    for (uint32_t i = 0; i < d->types.n; i++)
        if (str_eq(pprof_type_name(d, i), STR("wall")))
            return STR("wall");
    for (uint32_t i = 0; i < d->types.n; i++) {
        last = display(pprof_type_name(d, i), config, n);
        struct str name = group_name(last);
        if (name.len)
            return name;
    }
    return last.len ? last : STR("unknown");
}

struct str type_first_name(const struct pprof *d)
{
    struct str first = pprof_type_name(d, 0);
    const struct suffix *s = suffix_find(first);

    if (s)
        return str_of(s->name);
    struct str name = group_name(display(first, NULL, 0));
    if (name.len)
        return name;
    return first.len ? first : STR("unknown");
}
