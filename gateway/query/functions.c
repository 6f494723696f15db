/* GET functions: the rows by self, total or own code, with what is not shown as a remainder, so that sums stay exact.
 */
#include "gateway/query/edges.h"
#include "gateway/query/endpoints.h"
#include "gateway/query/fnrow.h"
#include "gateway/query/text.h"

enum { JSON_ROWS = 100, TEXT_ROWS = 30, OWN_CALLEES = 5, NAME_COLUMNS = 40 };

struct functions {
    struct ask *ask;
    struct gathered g;
    struct stacks stacks;
    struct edges callees;
    uint32_t *order, shown;
    enum stack_key key;
    bool own;
    struct {
        uint32_t functions;
        int64_t self, own;
    } other;
};

static enum err read_sort(struct functions *f)
{
    static const char *const names[] = {"self", "total", "own"};
    struct str sort = f->ask->params.value[PARAM_SORT];
    enum err e = params_flag(&f->ask->params, PARAM_OWN, &f->own, &f->ask->fault);
    for (f->key = KEY_SELF; e == E_OK && sort.len && !str_eq(sort, str_of(names[f->key])); f->key++)
        if (f->key == KEY_OWN)
            return fault_set(&f->ask->fault, E_BAD_REQUEST, "parameter \"sort\": one of self, total, own is wanted");
    f->own = f->own || f->key == KEY_OWN || f->ask->text;
    return e;
}

/* Own functions first, in their order; the others behind them. */
static enum err own_first(struct functions *f)
{
    uint32_t *sorted = NEW(f->ask->arena, uint32_t, f->stacks.n_fns + 1), n = 0;
    if (!sorted)
        return ask_no_memory(f->ask);
    for (int own = 1; own >= 0; own--)
        for (uint32_t i = 0; i < f->stacks.n_fns; i++)
            if (f->stacks.fns[f->order[i]].own_code == own)
                sorted[n++] = f->order[i];
    f->order = sorted;
    return E_OK;
}

static enum err compute(struct functions *f)
{
    struct ask *a = f->ask;
    bool over = false;
    enum err e = read_sort(f);
    if (e == E_OK)
        e = gather(a, f->own ? GATHER_ONE_TYPE : GATHER_SHARES, false, &f->g);
    if (e == E_OK)
        e = stacks_open(&f->stacks, a, &f->g);
    if (e == E_OK)
        e = stacks_charge(&f->stacks);
    if (e)
        return e;
    f->order = stacks_rank(&f->stacks, f->key);
    if (!f->order)
        return a->fault.err;
    if (f->key == KEY_OWN) {
        e = own_first(f);
        if (e == E_OK)
            e = edges_of_own(&f->callees, &f->stacks);
    }
    uint32_t limit = a->limit ? a->limit : a->text ? TEXT_ROWS : JSON_ROWS;
    f->shown = f->stacks.n_fns < limit ? f->stacks.n_fns : limit;
    for (uint32_t i = f->shown; i < f->stacks.n_fns; i++) {
        const struct fn *fn = &f->stacks.fns[f->order[i]];
        f->other.functions++;
        f->other.self = add_sat(f->other.self, fn->self, &over);
        f->other.own = add_sat(f->other.own, fn->own, &over);
    }
    return e;
}

static void put_int(struct json *j, const char *key, int64_t v)
{
    json_key(j, key);
    json_int(j, v);
}

static void put_row(struct json *j, const struct functions *f, uint32_t i)
{
    fnrow_put(j, &f->stacks.fns[i], gather_total(&f->g), f->own);
    if (f->key == KEY_OWN)
        edges_put_from(j, &f->callees, &f->stacks, i, OWN_CALLEES);
    json_close(j, '}');
}

static void write_json(const struct functions *f)
{
    struct json j = {.out = &f->ask->answer->body};
    json_open(&j, '{');
    gather_head(&j, f->ask, &f->g);
    json_key(&j, "functions");
    json_open(&j, '[');
    for (uint32_t i = 0; i < f->shown; i++)
        put_row(&j, f, f->order[i]);
    json_close(&j, ']');
    json_key(&j, "other");
    json_open(&j, '{');
    put_int(&j, "functions", f->other.functions);
    put_int(&j, "self", f->other.self);
    if (f->own)
        put_int(&j, "own", f->other.own);
    json_close(&j, '}');
    if (f->own)
        put_int(&j, "no_own_code", f->stacks.no_own_code);
    json_close(&j, '}');
}

static void write_text_row(struct buf *out, const struct functions *f, const struct fn *fn)
{
    int64_t total = gather_total(&f->g);
    struct buf place = {0};
    text_percent(out, fn->self, total);
    buf_char(out, ' ');
    text_percent(out, fn->total, total);
    buf_char(out, ' ');
    text_percent(out, fn->own, total);
    buf_str(out, STR("  "));
    if (fn->id.file.len) {
        buf_str(&place, fn->id.file);
        if (fn->line > 0)
            buf_printf(&place, ":%lld", (long long)fn->line);
        text_pad_name(out, fn->id.name, NAME_COLUMNS);
        buf_char(out, ' ');
        text_end(out, buf_view(&place), TEXT_COLUMNS - 3 * 8 - NAME_COLUMNS - 2);
    } else {
        text_name(out, fn->id.name, TEXT_COLUMNS - 3 * 8 - 1);
    }
    buf_char(out, '\n');
    buf_free(&place);
}

static void write_text(const struct functions *f)
{
    struct buf *out = &f->ask->answer->body;
    text_head(out, f->ask, &f->g);
    buf_str(out, STR("   self   total     own  function\n"));
    for (uint32_t i = 0; i < f->shown; i++)
        write_text_row(out, f, &f->stacks.fns[f->order[i]]);
    buf_str(out, STR("                "));
    text_percent(out, f->stacks.no_own_code, gather_total(&f->g));
    buf_str(out, STR("  [no own code]\n"));
    if (!f->other.functions)
        return;
    text_percent(out, f->other.self, gather_total(&f->g));
    buf_str(out, STR("         "));
    text_percent(out, f->other.own, gather_total(&f->g));
    buf_printf(out, "  (%u more)\n", f->other.functions);
}

enum err functions_run(struct ask *a)
{
    static const char *const formats[] = {"json", "text"};
    struct functions f = {.ask = a};
    size_t format;
    enum err e = ask_format(a, formats, COUNTOF(formats), &format);
    if (e == E_OK)
        e = compute(&f);
    if (e == E_OK && a->text)
        write_text(&f);
    else if (e == E_OK)
        write_json(&f);
    gather_close(&f.g);
    return e;
}
