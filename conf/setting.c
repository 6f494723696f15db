/* A node of the configuration turned into an option's value, or into a line that says what is wrong with it. */
#include "conf/listener.h"
#include "conf/network.h"
#include "conf/override.h"
#include "conf/value.h"

static void bad(const struct source *s, const struct option *o, const struct doc_node *n, const char *what)
{
    doc_error(s, n->line, n->col, "%s: %s", o->name.p, what);
}

static void bad_text(const struct source *s, const struct option *o, const struct doc_node *n, const char *wanted)
{
    struct str t = n->text;
    if (t.len > 80)
        t.len = 80;
    doc_error(s, n->line, n->col, "%s: \"%.*s\" is not %s", o->name.p, STR_ARG(t), wanted);
}

/* A scalar with a value. */
static bool is_text(const struct source *s, const struct option *o, const struct doc_node *n, const char *wanted)
{
    if (n->kind == DOC_TEXT && !doc_is_null(n))
        return true;
    doc_error(s, n->line, n->col, "%s: needs %s", o->name.p, wanted);
    return false;
}

/* The fields of struct conf are numbers of 4 or 8 bytes. */
static void put_number(struct conf *c, const struct option *o, uint64_t v)
{
    char *at = (char *)c + o->field;
    uint32_t v32 = (uint32_t)v;
    bool v1 = v != 0;

    if (o->width == sizeof v)
        memcpy(at, &v, sizeof v);
    else if (o->width == sizeof v32)
        memcpy(at, &v32, sizeof v32);
    else
        memcpy(at, &v1, sizeof v1);
}

static void put_pointer(struct conf *c, size_t offset, const void *p)
{
    memcpy((char *)c + offset, &p, sizeof p);
}

static void put_count(struct conf *c, const struct option *o, size_t n)
{
    memcpy((char *)c + o->count, &n, sizeof n);
}

static void bad_bounds(const struct source *s, const struct option *o, const struct doc_node *n, enum option_kind kind,
                       uint64_t least, uint64_t most)
{
    struct buf b = {0};

    option_number_text(&b, kind, least);
    buf_str(&b, STR(" to "));
    option_number_text(&b, kind, most);
    doc_error(s, n->line, n->col, "%s: \"%.*s\" is out of bounds, %.*s", o->name.p, STR_ARG(n->text),
              STR_ARG(buf_view(&b)));
    buf_free(&b);
}

/* A number of the kind SIZE, COUNT or TIME between two bounds. */
static bool number(const struct source *s, const struct option *o, const struct doc_node *n, enum option_kind kind,
                   uint64_t least, uint64_t most, uint64_t *v)
{
    static const char *const wanted[] = {"a size such as 16MiB", "a number", "a duration such as 10s"};
    static const char *const units[] = {"a size with one of the units B, KiB, MiB, GiB, TiB", "a number without a unit",
                                        "a duration with one of the units ms, s, m, h, d"};
    int k = kind == OPTION_SIZE ? 0 : kind == OPTION_COUNT ? 1 : 2;

    if (!is_text(s, o, n, wanted[k]))
        return false;
    enum value_result r = k == 0 ? value_size(n->text, v) : k == 1 ? value_count(n->text, v) : value_time(n->text, v);
    if (r == VALUE_NO_NUMBER)
        bad_text(s, o, n, wanted[k]);
    else if (r == VALUE_NO_UNIT || r == VALUE_BAD_UNIT)
        bad_text(s, o, n, units[k]);
    else if (r == VALUE_TOO_LARGE || *v < least || *v > most)
        bad_bounds(s, o, n, kind, least, most);
    else
        return true;
    return false;
}

bool option_number(const struct source *s, const struct option *o, const struct doc_node *n, uint64_t *v)
{
    return number(s, o, n, o->kind, (uint64_t)o->least, (uint64_t)o->most, v);
}

void option_put(struct conf *c, const struct option *o, uint64_t v)
{
    put_number(c, o, v);
}

static bool days(const struct source *s, const struct option *o, const struct doc_node *n, uint32_t *out)
{
    uint64_t ms, day = 86400000;

    if (!number(s, o, n, OPTION_TIME, (uint64_t)o->least * day, (uint64_t)o->most * day, &ms))
        return false;
    if (ms % day) {
        bad_text(s, o, n, "a whole number of days");
        return false;
    }
    *out = (uint32_t)(ms / day);
    return true;
}

static bool is_off(const struct doc_node *n)
{
    return n->kind == DOC_TEXT && str_eq(n->text, STR("off"));
}

static void set_listen(const struct source *s, struct conf *c, const struct option *o, const struct doc_node *n)
{
    const struct doc_node *one = n->kind == DOC_LIST ? n->first : n;
    size_t n_all = n->kind == DOC_LIST ? n->n : 1, i = 0;
    struct conf_address *all = NEW(s->arena, struct conf_address, n_all ? n_all : 1);
    bool good = true;

    if (!all || n_all == 0 || n_all > 64) {
        bad(s, o, n, all ? "needs 1 to 64 addresses" : "out of memory");
        return;
    }
    for (; i < n_all; i++, one = one->next)
        good &= listener_set(s, o, one, &all[i]);
    if (good) {
        c->listen = all;
        c->n_listen = n_all;
    }
}

static void set_admin(const struct source *s, struct conf *c, const struct option *o, const struct doc_node *n)
{
    if (is_off(n))
        c->admin_on = false;
    else if (listener_address(s, o, n, &c->admin))
        c->admin_on = true;
}

static void set_string(const struct source *s, struct conf *c, const struct option *o, const struct doc_node *n)
{
    if (!is_text(s, o, n, "a text"))
        return;
    if (n->text.len == 0 || n->text.len > 4096)
        bad(s, o, n, "needs 1 to 4096 characters");
    else
        put_pointer(c, o->field, n->text.p);
}

static void set_store(const struct source *s, struct conf *c, const struct option *o, const struct doc_node *n)
{
    static const struct str known[] = {{"sqlite:", 7},        {"null:", 5},    {"postgres://", 11},
                                       {"postgresql://", 13}, {"redis://", 8}, {"rediss://", 9}};

    if (!is_text(s, o, n, "the address of a store, such as \"sqlite:\""))
        return;
    for (size_t i = 0; i < COUNTOF(known); i++)
        if (str_starts(n->text, known[i]) && n->text.len <= 4096) {
            put_pointer(c, o->field, n->text.p);
            return;
        }
    bad(s, o, n, "is not the address of a store: sqlite:, null:, postgres://…, redis://…"); /* never shown: it may hold
                                                                                               a secret */
}

/* 1 to 99 of visible ASCII, from a '/', without a part that a route could not be told from. */
static bool is_prefix(struct str p)
{
    if (p.len < 2 || p.len > 99 || p.p[0] != '/' || p.p[p.len - 1] == '/')
        return false;
    for (size_t i = 1; i < p.len; i++)
        if (!(option_is_word_char(p.p[i]) || p.p[i] == '~' || (p.p[i] == '/' && p.p[i - 1] != '/')))
            return false;
    return true;
}

/* In place: the arena's own copy goes to lower case. */
static bool is_header(struct str h)
{
    char *p = (char *)(uintptr_t)h.p;

    for (size_t i = 0; i < h.len; i++) {
        if (!option_is_word_char(p[i]))
            return false;
        if (p[i] >= 'A' && p[i] <= 'Z')
            p[i] = (char)(p[i] + 32);
    }
    return h.len >= 1 && h.len <= 99;
}

static void set_strings(const struct source *s, struct conf *c, const struct option *o, const struct doc_node *n)
{
    bool prefixes = o->kind == OPTION_PREFIXES, good = true;
    const char *wanted = prefixes ? "a path such as /pyroscope" : "a header's name";
    size_t i = 0;

    if (n->kind != DOC_LIST || n->n > 32) {
        bad(s, o, n, n->kind == DOC_LIST ? "more than 32 entries" : "needs a list: [a, b]");
        return;
    }
    const char **all = NEW(s->arena, const char *, n->n + 1);
    if (!all) {
        bad(s, o, n, "out of memory");
        return;
    }
    for (const struct doc_node *k = n->first; k; k = k->next) {
        if (!is_text(s, o, k, wanted)) {
            good = false;
        } else if (prefixes ? !is_prefix(k->text) : !is_header(k->text)) {
            bad_text(s, o, k, wanted);
            good = false;
        }
        all[i++] = k->text.p;
    }
    if (good) {
        put_pointer(c, o->field, all);
        put_count(c, o, i);
    }
}

static void set_networks(const struct source *s, struct conf *c, const struct option *o, const struct doc_node *n)
{
    size_t i = 0;
    bool good = true;

    if (n->kind != DOC_LIST || n->n > 256) {
        bad(s, o, n, n->kind == DOC_LIST ? "more than 256 entries" : "needs a list: [10.0.0.0/8]");
        return;
    }
    struct conf_network *all = NEW(s->arena, struct conf_network, n->n + 1);
    if (!all) {
        bad(s, o, n, "out of memory");
        return;
    }
    for (const struct doc_node *k = n->first; k; k = k->next, i++) {
        if (!is_text(s, o, k, "a network such as 10.0.0.0/8")) {
            good = false;
        } else if (!network_parse(k->text, &all[i])) {
            bad_text(s, o, k, "a network such as 10.0.0.0/8 or fd00::/8, or one address; no bits behind the prefix");
            good = false;
        }
    }
    if (good) {
        put_pointer(c, o->field, all);
        put_count(c, o, n->n);
    }
}

static void set_window(const struct source *s, struct conf *c, const struct option *o, const struct doc_node *n)
{
    uint64_t ms;

    if (is_off(n))
        put_number(c, o, (uint64_t)-1);
    else if (number(s, o, n, OPTION_TIME, (uint64_t)o->least * 1000, (uint64_t)o->most * 1000, &ms))
        put_number(c, o, ms * 1000000);
}

static void set_days(const struct source *s, struct conf *c, const struct option *o, const struct doc_node *n)
{
    uint32_t d = 0;

    if ((o->kind == OPTION_DAYS_OFF && is_off(n)) || days(s, o, n, &d))
        put_number(c, o, d);
}

/* "shop", or of services also "shop/checkout". */
static bool is_day_key(const struct option *o, struct str key)
{
    if (str_ends(o->name, STR(".projects")))
        return option_is_project(key);
    return key.len >= 1 && key.len <= 1024 && key.p[0] != '/' && key.p[key.len - 1] != '/' && utf8_valid(key);
}

static void set_day_map(const struct source *s, struct conf *c, const struct option *o, const struct doc_node *n)
{
    bool good = true;
    size_t i = 0;

    if (n->kind != DOC_MAP) {
        bad(s, o, n, "needs a map: { name: 30d }");
        return;
    }
    struct conf_retention *all = NEW(s->arena, struct conf_retention, n->n + 1);
    if (!all) {
        bad(s, o, n, "out of memory");
        return;
    }
    for (const struct doc_node *k = n->first; k; k = k->next, i++) {
        if (!is_day_key(o, k->key)) {
            doc_error(s, k->key_line, k->key_col, "%s: \"%.*s\" is not a name for this", o->name.p, STR_ARG(k->key));
            good = false;
        }
        all[i].key = (char *)(uintptr_t)k->key.p;
        good &= days(s, o, k, &all[i].days);
    }
    if (good) {
        put_pointer(c, o->field, all);
        put_count(c, o, i);
    }
}

static bool word(const struct source *s, const struct option *o, const struct doc_node *n, uint64_t *v)
{
    const struct option_word *words = option_words(o->kind);
    struct buf b = {0};

    for (const struct option_word *w = words; n->kind == DOC_TEXT && w->text; w++)
        if (str_eq(n->text, str_of(w->text))) {
            *v = w->value;
            return true;
        }
    for (const struct option_word *w = words; w->text; w++)
        buf_printf(&b, "%s%s", w == words ? "" : w[1].text ? ", " : " or ", w->text);
    doc_error(s, n->line, n->col, "%s: needs %.*s", o->name.p, STR_ARG(buf_view(&b)));
    buf_free(&b);
    return false;
}

static void set_word(const struct source *s, struct conf *c, const struct option *o, const struct doc_node *n)
{
    uint64_t v;

    if (word(s, o, n, &v))
        put_number(c, o, v);
}

static void set_words(const struct source *s, struct conf *c, const struct option *o, const struct doc_node *n)
{
    uint64_t all = 0, v;
    bool good = true;

    if (n->kind != DOC_LIST || n->n == 0) {
        bad(s, o, n, "needs a list with at least one word");
        return;
    }
    for (const struct doc_node *k = n->first; k; k = k->next) {
        if (word(s, o, k, &v))
            all |= v;
        else
            good = false;
    }
    if (good)
        put_number(c, o, all);
}

static void set_project(const struct source *s, struct conf *c, const struct option *o, const struct doc_node *n)
{
    if (n->kind != DOC_TEXT || doc_is_null(n))
        bad(s, o, n, "needs a project's name, or \"\" for none");
    else if (n->text.len == 0)
        put_pointer(c, o->field, NULL);
    else if (!option_is_project(n->text))
        bad_text(s, o, n, "a project's name: 1 to 100 printable characters, no '/'");
    else
        put_pointer(c, o->field, n->text.p);
}

void option_set(const struct source *s, struct conf *c, const struct option *o, const struct doc_node *n)
{
    static void (*const setters[])(const struct source *, struct conf *, const struct option *,
                                   const struct doc_node *) = {
        [OPTION_LISTEN] = set_listen,       [OPTION_ADMIN] = set_admin,     [OPTION_TEXT] = set_string,
        [OPTION_OVERRIDES] = overrides_set, [OPTION_STORE] = set_store,     [OPTION_PREFIXES] = set_strings,
        [OPTION_HEADERS] = set_strings,     [OPTION_WINDOW] = set_window,   [OPTION_DAYS] = set_days,
        [OPTION_DAYS_OFF] = set_days,       [OPTION_DAY_MAP] = set_day_map, [OPTION_ROLES] = set_words,
        [OPTION_MAY] = set_words,           [OPTION_MIGRATE] = set_word,    [OPTION_FORMAT] = set_word,
        [OPTION_LEVEL] = set_word,          [OPTION_PROJECT] = set_project, [OPTION_NETWORKS] = set_networks,
    };
    uint64_t v;

    if (o->kind == OPTION_SIZE || o->kind == OPTION_COUNT || o->kind == OPTION_TIME) {
        if (number(s, o, n, o->kind, (uint64_t)o->least, (uint64_t)o->most, &v))
            put_number(c, o, v);
    } else {
        setters[o->kind](s, c, o, n);
    }
}

void option_set_off(struct conf *c, const struct option *o)
{
    if (o->kind == OPTION_WINDOW)
        put_number(c, o, (uint64_t)-1);
    else if (o->kind == OPTION_PROJECT)
        put_pointer(c, o->field, NULL);
}
