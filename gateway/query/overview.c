/* GET overview: where the time goes, in one sentence; and the own code behind it where the top is library code (F15).
 */
#include "gateway/query/edges.h"
#include "gateway/query/endpoints.h"
#include "gateway/query/text.h"

enum { CALLEES = 10, CALLEES_IN_WORDS = 3, NAME_IN_WORDS = 80 };

struct overview {
    struct ask *ask;
    struct gathered g;
    struct stacks stacks;
    struct edges callees;
    const struct fn *top, *own; /* NULL: none */
    uint32_t own_place;
};

static enum err compute(struct overview *o)
{
    struct ask *a = o->ask;
    enum err e = gather(a, GATHER_ONE_TYPE, false, &o->g);
    if (e == E_OK)
        e = stacks_open(&o->stacks, a, &o->g);
    if (e == E_OK)
        e = stacks_charge(&o->stacks);
    if (e == E_OK)
        e = edges_of_own(&o->callees, &o->stacks);
    if (e || o->stacks.n_fns == 0)
        return e;
    const uint32_t *by_self = stacks_rank(&o->stacks, KEY_SELF), *by_own = stacks_rank(&o->stacks, KEY_OWN);
    if (!by_self || !by_own)
        return a->fault.err;
    o->top = &o->stacks.fns[by_self[0]];
    o->own_place = by_own[0];
    if (o->stacks.fns[by_own[0]].own > 0)
        o->own = &o->stacks.fns[by_own[0]];
    return E_OK;
}

static void put_service(struct buf *out, const struct overview *o)
{
    struct str service = gather_service(o->ask, &o->g);
    text_put(out, service.len ? service : STR("all services"), NAME_IN_WORDS);
}

static void say_nothing(struct buf *out, const struct overview *o)
{
    buf_str(out, STR("There are no "));
    if (o->g.type) {
        text_group(out, o->g.type->type);
        buf_char(out, ' ');
    }
    buf_str(out, STR("samples of "));
    put_service(out, o);
    buf_str(out, o->ask->window.by_default ? STR(" in the ") : STR(" in "));
    text_window(out, o->ask);
    buf_char(out, '.');
}

/* What the own function that takes most calls, where the top of the list is not own code itself. */
static void say_own(struct buf *out, const struct overview *o)
{
    int64_t total = gather_total(&o->g);
    uint32_t said = 0;
    buf_str(out, STR("; of your own code, "));
    text_name(out, o->own->id.name, NAME_IN_WORDS);
    buf_str(out, STR(" takes most, "));
    text_percent_words(out, o->own->own, total);
    for (uint32_t i = 0; i < o->callees.n && said < CALLEES_IN_WORDS; i++) {
        const struct edge *e = &o->callees.list[i];
        if (e->from != o->own_place)
            continue;
        buf_str(out, said++ ? STR(", ") : STR(", calling "));
        text_name(out, o->stacks.fns[e->to].id.name, NAME_IN_WORDS);
        buf_str(out, STR(" ("));
        text_percent_words(out, e->value, total);
        buf_char(out, ')');
    }
}

static void say(struct buf *out, const struct overview *o)
{
    if (!o->top || gather_total(&o->g) == 0) {
        say_nothing(out, o);
        return;
    }
    buf_str(out, STR("In "));
    put_service(out, o);
    buf_str(out, STR(", "));
    text_percent_words(out, o->top->self, gather_total(&o->g));
    buf_str(out, STR(" of "));
    text_group(out, o->g.type->type);
    buf_str(out, STR(" is spent in "));
    text_name(out, o->top->id.name, NAME_IN_WORDS);
    if (!o->top->own_code && o->own)
        say_own(out, o);
    buf_char(out, '.');
}

static void put_fn(struct json *j, const struct overview *o, const char *key, const struct fn *f, const char *what,
                   int64_t value)
{
    json_key(j, key);
    if (!f) {
        json_null(j);
        return;
    }
    json_open(j, '{');
    json_key(j, "function");
    json_str(j, f->id.name);
    json_key(j, "file");
    json_str(j, f->id.file);
    json_key(j, what);
    json_int(j, value);
    json_key(j, "share");
    json_share(j, value, gather_total(&o->g));
    json_close(j, '}');
}

static void write_json(const struct overview *o, struct str sentence)
{
    struct json j = {.out = &o->ask->answer->body};
    json_open(&j, '{');
    gather_head(&j, o->ask, &o->g);
    json_key(&j, "sentence");
    json_str(&j, sentence);
    put_fn(&j, o, "top", o->top, "self", o->top ? o->top->self : 0);
    put_fn(&j, o, "own", o->own, "own", o->own ? o->own->own : 0);
    edges_put_from(&j, &o->callees, &o->stacks, o->own ? o->own_place : STACK_NONE, CALLEES);
    json_close(&j, '}');
}

/* The sentence broken at spaces, so that it fits. */
static void put_wrapped(struct buf *out, struct str s)
{
    size_t column = 0;
    while (s.len) {
        const char *space = memchr(s.p, ' ', s.len);
        size_t n = space ? (size_t)(space - s.p) : s.len, columns = 0;
        for (size_t i = 0; i < n; i++)
            columns += ((unsigned char)s.p[i] & 0xc0) != 0x80;
        if (column && column + 1 + columns > TEXT_COLUMNS) {
            buf_char(out, '\n');
            column = 0;
        }
        if (column) {
            buf_char(out, ' ');
            column++;
        }
        buf_add(out, s.p, n);
        column += columns;
        n += space ? 1 : 0;
        s = (struct str){s.p + n, s.len - n};
    }
    buf_char(out, '\n');
}

enum err overview_run(struct ask *a)
{
    static const char *const formats[] = {"json", "text"};
    struct overview o = {.ask = a};
    struct buf sentence = {0};
    size_t format;
    enum err e = ask_format(a, formats, COUNTOF(formats), &format);
    if (e == E_OK)
        e = compute(&o);
    if (e == E_OK)
        say(&sentence, &o);
    if (e == E_OK && sentence.failed)
        e = fault_set(&a->fault, E_NO_MEMORY, NULL);
    if (e == E_OK && a->text) {
        put_wrapped(&a->answer->body, buf_view(&sentence));
        text_head(&a->answer->body, a, &o.g);
    } else if (e == E_OK) {
        write_json(&o, buf_view(&sentence));
    }
    buf_free(&sentence);
    gather_close(&o.g);
    return e;
}
