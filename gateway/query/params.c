/* Query strings: each name is known and given once, each value decodes to valid UTF-8. What is wrong is named. */
#include "gateway/query/params.h"

#include <stdlib.h>

static const char *const names[PARAM_COUNT] = {
#define X(name, text) [PARAM_##name] = (text),
    PARAM_MAP(X)
#undef X
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

enum err params_decode(struct str in, bool plus, struct arena *a, struct str *out)
{
    char *p = NEW(a, char, in.len + 1);
    size_t n = 0;
    if (!p)
        return E_NO_MEMORY;
    for (size_t i = 0; i < in.len; i++) {
        char c = in.p[i];
        if (c == '+' && plus)
            c = ' ';
        if (c == '%') {
            int hi = in.len - i > 2 ? hex_digit(in.p[i + 1]) : -1;
            int lo = hi >= 0 ? hex_digit(in.p[i + 2]) : -1;
            if (lo < 0)
                return E_BAD_REQUEST;
            c = (char)(hi << 4 | lo);
            i += 2;
        }
        p[n++] = c;
    }
    *out = (struct str){p, n};
    return utf8_valid(*out) ? E_OK : E_BAD_REQUEST;
}

static struct str take_until(struct str *s, char stop)
{
    const char *at = s->len ? memchr(s->p, stop, s->len) : NULL;
    struct str part = {s->p, at ? (size_t)(at - s->p) : s->len};
    size_t used = part.len + (at ? 1 : 0);
    *s = (struct str){s->p + used, s->len - used};
    return part;
}

static enum param find_param(struct str name)
{
    enum param p = 0;
    while (p < PARAM_COUNT && !str_eq(name, str_of(names[p])))
        p++;
    return p;
}

/* Whether an empty value means something: every service, a function without a file. */
static bool may_be_empty(enum param p)
{
    return p == PARAM_SERVICE || p == PARAM_FILE;
}

static enum err add_pair(struct params *p, struct str pair, uint32_t allowed, struct arena *a, struct fault *f)
{
    struct str raw_name = take_until(&pair, '='), name, value;
    enum err e = params_decode(raw_name, true, a, &name);
    if (e)
        return e == E_NO_MEMORY ? arena_error(a, f) : fault_set(f, e, "a parameter's name is badly encoded");
    enum param which = find_param(name);
    if (which == PARAM_COUNT || !(allowed & PARAM_BIT(which)))
        return fault_set(f, E_BAD_REQUEST, "unknown parameter \"%.*s\"", (int)(name.len > 60 ? 60 : name.len), name.p);
    if (p->given[which])
        return fault_set(f, E_BAD_REQUEST, "parameter \"%s\" is given twice", names[which]);
    e = params_decode(pair, true, a, &value);
    if (e == E_NO_MEMORY)
        return arena_error(a, f);
    if (e || (value.len && memchr(value.p, 0, value.len)))
        return fault_set(f, E_BAD_REQUEST, "parameter \"%s\" is badly encoded", names[which]);
    if (value.len == 0 && !may_be_empty(which))
        return fault_set(f, E_BAD_REQUEST, "parameter \"%s\" is empty", names[which]);
    p->given[which] = true;
    p->value[which] = value;
    return E_OK;
}

enum err params_parse(struct params *p, struct str query, uint32_t allowed, struct arena *a, struct fault *f)
{
    *p = (struct params){0};
    while (query.len) {
        struct str pair = take_until(&query, '&');
        enum err e = pair.len ? add_pair(p, pair, allowed, a, f) : E_OK;
        if (e)
            return e;
    }
    return E_OK;
}

enum err params_number(const struct params *p, enum param which, uint32_t min, uint32_t max, uint32_t *out,
                       struct fault *f)
{
    struct str v = p->value[which];
    uint64_t n = 0;
    if (!p->given[which])
        return E_OK;
    for (size_t i = 0; i < v.len; i++) {
        bool digit = v.p[i] >= '0' && v.p[i] <= '9';
        n = digit && n <= max ? n * 10 + (uint64_t)(v.p[i] - '0') : UINT64_C(1) << 40;
    }
    if (v.len == 0 || n < min || n > max)
        return fault_set(f, E_BAD_REQUEST, "parameter \"%s\": a whole number from %u to %u is wanted", names[which],
                         min, max);
    *out = (uint32_t)n;
    return E_OK;
}

enum err params_flag(const struct params *p, enum param which, bool *out, struct fault *f)
{
    struct str v = p->value[which];
    *out = str_eq(v, STR("true")) || str_eq(v, STR("1"));
    if (!p->given[which] || *out || str_eq(v, STR("false")) || str_eq(v, STR("0")))
        return E_OK;
    return fault_set(f, E_BAD_REQUEST, "parameter \"%s\": true or false is wanted", names[which]);
}

/* "q=0.5" in thousands; 1000 where there is none. */
static int quality(struct str range)
{
    while (range.len) {
        struct str part = str_trim(take_until(&range, ';'));
        char digits[8] = {0};
        if (part.len < 3 || !str_starts(part, STR("q=")))
            continue;
        memcpy(digits, part.p + 2, part.len - 2 < 7 ? part.len - 2 : 7);
        return (int)(strtod(digits, NULL) * 1000);
    }
    return 1000;
}

bool params_wants_text(struct str accept)
{
    int text = 0, json = 0, order = 0;
    while (accept.len) {
        struct str range = take_until(&accept, ',');
        struct str params = range;
        struct str media = str_trim(take_until(&params, ';'));
        int rank = quality(params) * 64 - (order < 63 ? order : 63);
        bool is_text = str_eq_nocase(media, STR("text/plain"));
        order++;
        if (is_text && rank > text)
            text = rank;
        if (!is_text && (str_eq_nocase(media, STR("application/json")) || str_eq_nocase(media, STR("*/*"))) &&
            rank > json)
            json = rank;
    }
    return text > json;
}
