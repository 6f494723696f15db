/* Parses selectors and applies them. A regular expression runs once per distinct value: what it said is remembered. */
#include "gateway/query/selector.h"

#include <stdlib.h>

#include "gateway/query/regex.h"
#include "gateway/query/selector_lex.h"

enum { MATCHERS_MAX = 64, SEEN_SLOTS = 4096 };

enum match_op { MATCH_EQ, MATCH_NE, MATCH_RE, MATCH_NRE };

/* What a regular expression has said about a value. Direct mapped: a newer value takes the slot. */
struct seen {
    char *value;
    size_t len;
    bool matches;
};

struct matcher {
    struct buf name, value;
    enum match_op op;
    struct regex *regex;
    struct seen *seen;
};

struct selector {
    struct matcher matchers[MATCHERS_MAX];
    size_t n;
    struct fault fault; /* of matching */
};

static void matcher_free(struct matcher *m)
{
    buf_free(&m->name);
    buf_free(&m->value);
    regex_free(m->regex);
    for (size_t i = 0; m->seen && i < SEEN_SLOTS; i++)
        free(m->seen[i].value);
    free(m->seen);
}

void selector_free(struct selector *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        matcher_free(&s->matchers[i]);
    free(s);
}

static enum err parse_op(struct lex *l, enum match_op *op)
{
    static const struct {
        struct str text;
        enum match_op op;
    } ops[] = {{{"=~", 2}, MATCH_RE}, {{"!~", 2}, MATCH_NRE}, {{"!=", 2}, MATCH_NE}, {{"=", 1}, MATCH_EQ}};
    for (size_t i = 0; i < COUNTOF(ops); i++) {
        if (!lex_take(l, ops[i].text))
            continue;
        *op = ops[i].op;
        return E_OK;
    }
    return lex_fail(l, "one of = != =~ !~ is wanted");
}

static enum err parse_matcher(struct lex *l, struct matcher *m)
{
    enum err e = lex_name(l, &m->name);
    if (e)
        return e;
    lex_space(l);
    e = parse_op(l, &m->op);
    if (e)
        return e;
    lex_space(l);
    size_t at = lex_at(l);
    e = lex_string(l, &m->value);
    if (e)
        return e;
    if (!utf8_valid(buf_view(&m->value)))
        return lex_fail_at(l, at, "the value is not UTF-8");
    if (m->op != MATCH_RE && m->op != MATCH_NRE)
        return E_OK;
    struct fault why = {0};
    m->regex = regex_new(buf_view(&m->value), &why);
    m->seen = calloc(SEEN_SLOTS, sizeof(*m->seen));
    if (m->regex && m->seen)
        return E_OK;
    return why.err == E_BAD_REQUEST ? lex_fail_at(l, at, why.text) : lex_no_memory(l);
}

static enum err parse_braces(struct lex *l, struct selector *s)
{
    lex_space(l);
    while (!lex_take(l, STR("}"))) {
        if (s->n == MATCHERS_MAX)
            return lex_fail(l, "too many matchers");
        enum err e = parse_matcher(l, &s->matchers[s->n++]);
        if (e)
            return e;
        lex_space(l);
        if (lex_take(l, STR(",")))
            lex_space(l);
        else if (!lex_peek(l, STR("}")))
            return lex_fail(l, "a comma or } is wanted");
    }
    return E_OK;
}

/* name{...}: the name of metrics, which may hold colons, is a matcher on __name__. */
static enum err parse_prefix(struct lex *l, struct selector *s)
{
    struct matcher *m = &s->matchers[0];
    if (lex_peek(l, STR("{")))
        return E_OK;
    s->n = 1;
    enum err e = lex_metric(l, &m->value);
    buf_str(&m->name, STR("__name__"));
    lex_space(l);
    return e;
}

static enum err parse(struct lex *l, struct selector *s)
{
    lex_space(l);
    enum err e = parse_prefix(l, s);
    if (e)
        return e;
    if (lex_take(l, STR("{")))
        e = parse_braces(l, s);
    else
        e = lex_fail(l, "{ is wanted");
    if (e)
        return e;
    lex_space(l);
    return lex_end(l) ? E_OK : lex_fail(l, "nothing may follow the }");
}

struct selector *selector_parse(struct str text, struct fault *f)
{
    struct selector *s = calloc(1, sizeof(*s));
    struct lex l = lex_of(text, f);
    enum err e = s ? parse(&l, s) : fault_set(f, E_NO_MEMORY, NULL);
    for (size_t i = 0; s && i < s->n && e == E_OK; i++)
        if (s->matchers[i].name.failed || s->matchers[i].value.failed)
            e = fault_set(f, E_NO_MEMORY, NULL);
    if (e == E_OK)
        return s;
    selector_free(s);
    return NULL;
}

static uint32_t value_slot(struct str v)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < v.len; i++)
        h = (h ^ (unsigned char)v.p[i]) * 16777619u;
    return (h ^ h >> 15) % SEEN_SLOTS;
}

/* Two values that share a slot only cost each other the memory of the last answer, so the hash needs no key. */
static bool regex_said(struct selector *s, struct matcher *m, struct str value)
{
    struct seen *seen = &m->seen[value_slot(value)];
    bool matches = false;
    if (seen->value && str_eq((struct str){seen->value, seen->len}, value))
        return seen->matches;
    if (regex_match(m->regex, value, &matches, &s->fault) != E_OK)
        return false;
    char *copy = malloc(value.len + 1);
    if (!copy)
        return matches;
    if (value.len)
        memcpy(copy, value.p, value.len);
    free(seen->value);
    *seen = (struct seen){copy, value.len, matches};
    return matches;
}

static bool matcher_agrees(struct selector *s, struct matcher *m, struct str value)
{
    switch (m->op) {
    case MATCH_EQ:
        return str_eq(buf_view(&m->value), value);
    case MATCH_NE:
        return !str_eq(buf_view(&m->value), value);
    case MATCH_RE:
        return regex_said(s, m, value);
    case MATCH_NRE:
        return !regex_said(s, m, value);
    }
    return false;
}

/* service_name and __name__ are of the series, whether or not they stand among its labels. */
static bool series_value(const struct series *s, struct str name, struct str *value)
{
    *value = (struct str){NULL, 0};
    if (str_eq(name, STR("service_name")))
        *value = s->service;
    else if (str_eq(name, STR("__name__")))
        *value = s->name;
    else {
        for (uint32_t i = 0; i < s->n_labels; i++) {
            if (!str_eq(s->labels[i].name, name))
                continue;
            *value = s->labels[i].value;
            return true;
        }
        return false;
    }
    return true;
}

static bool is_type_matcher(const struct matcher *m)
{
    return str_eq(buf_view(&m->name), STR("__profile_type__"));
}

enum verdict selector_series(struct selector *s, const struct series *series)
{
    enum verdict v = VERDICT_YES;
    for (size_t i = 0; i < s->n; i++) {
        struct matcher *m = &s->matchers[i];
        struct str value;
        if (is_type_matcher(m))
            continue;
        if (!series_value(series, buf_view(&m->name), &value))
            v = VERDICT_OPEN;
        else if (!matcher_agrees(s, m, value) || s->fault.err)
            return VERDICT_NO;
    }
    return v;
}

bool selector_type(struct selector *s, struct str type_id)
{
    for (size_t i = 0; i < s->n; i++)
        if (is_type_matcher(&s->matchers[i]) && !matcher_agrees(s, &s->matchers[i], type_id))
            return false;
    return s->fault.err == E_OK;
}

/* A key may stand twice on a sample: one value that agrees is enough for = and =~, one that does not is too many for
 * the others. */
static bool sample_agrees(struct selector *s, struct matcher *m, const struct sample_label *labels, uint32_t n)
{
    bool negative = m->op == MATCH_NE || m->op == MATCH_NRE, found = false;
    for (uint32_t i = 0; i < n; i++) {
        if (labels[i].numeric || !str_eq(labels[i].key, buf_view(&m->name)))
            continue;
        found = true;
        if (matcher_agrees(s, m, labels[i].value) != negative)
            return !negative;
    }
    return found ? negative : matcher_agrees(s, m, (struct str){NULL, 0});
}

bool selector_sample(struct selector *s, const struct series *series, const struct sample_label *labels, uint32_t n)
{
    for (size_t i = 0; i < s->n; i++) {
        struct matcher *m = &s->matchers[i];
        struct str value;
        if (is_type_matcher(m) || series_value(series, buf_view(&m->name), &value))
            continue;
        if (!sample_agrees(s, m, labels, n))
            return false;
    }
    return s->fault.err == E_OK;
}

bool selector_may_open(const struct selector *s)
{
    static const struct series nothing;
    for (size_t i = 0; i < s->n; i++) {
        struct str value;
        if (!is_type_matcher(&s->matchers[i]) && !series_value(&nothing, buf_view(&s->matchers[i].name), &value))
            return true;
    }
    return false;
}

bool selector_reaches(const struct selector *s, const struct series *series, const struct str *names, uint32_t n)
{
    struct str value;
    for (size_t i = 0; i < s->n; i++) {
        struct str name = buf_view(&s->matchers[i].name);
        if (is_type_matcher(&s->matchers[i]) || series_value(series, name, &value))
            continue;
        for (uint32_t j = 0; j < n; j++)
            if (str_eq(names[j], name))
                return true;
    }
    return false;
}

bool selector_names(const struct selector *s, bool (*is)(struct str name))
{
    for (size_t i = 0; i < s->n; i++)
        if (is(buf_view(&s->matchers[i].name)))
            return true;
    return false;
}

enum err selector_error(const struct selector *s, struct fault *f)
{
    return s->fault.err ? fault_set(f, s->fault.err, "%s", s->fault.text) : E_OK;
}
