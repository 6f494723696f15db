/* GET types: the profile types of a selection, grouped as people know them. */
#include "gateway/query/endpoints.h"
#include "gateway/query/text.h"

static void put_str(struct json *j, const char *key, struct str s)
{
    json_key(j, key);
    json_str(j, s);
}

static bool is_wanted(const struct ask *a, const struct type_row *r)
{
    struct str wanted = a->params.value[PARAM_TYPE];
    return wanted.len == 0 || str_eq(r->id, wanted) || str_eq(r->type, wanted);
}

static void write_json(const struct ask *a, const struct type_list *l, const struct tally *t)
{
    struct json j = {.out = &a->answer->body};
    json_open(&j, '{');
    gather_list_head(&j, a, t, "profiles");
    json_key(&j, "types");
    json_open(&j, '[');
    for (uint32_t i = 0; i < l->n; i++) {
        const struct type_row *r = &l->rows[i];
        if (!is_wanted(a, r))
            continue;
        json_open(&j, '{');
        put_str(&j, "id", r->id);
        put_str(&j, "name", r->type);
        put_str(&j, "unit", r->unit);
        put_str(&j, "group", str_of(type_group(r->type)));
        put_str(&j, "aggregation", str_of(r->aggregation == AGG_AVERAGE ? "average" : "sum"));
        json_key(&j, "primary");
        json_bool(&j, i == l->primary);
        json_key(&j, "profiles");
        json_uint(&j, r->profiles);
        json_key(&j, "total");
        json_int(&j, r->total);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
}

static void write_text(const struct ask *a, const struct type_list *l)
{
    struct buf *out = &a->answer->body;
    buf_printf(out, "%u type%s · ", l->n, l->n == 1 ? "" : "s");
    text_window(out, a);
    buf_str(out, STR("\n  profiles                 total  type\n"));
    for (uint32_t i = 0; i < l->n; i++) {
        const struct type_row *r = &l->rows[i];
        if (!is_wanted(a, r))
            continue;
        buf_printf(out, "%10llu  %20lld  ", (unsigned long long)r->profiles, (long long)r->total);
        text_put(out, r->id, 54);
        buf_str(out, i == l->primary ? STR(" (primary)\n") : STR("\n"));
    }
}

enum err typelist_run(struct ask *a)
{
    static const char *const formats[] = {"json", "text"};
    struct type_list list;
    struct tally tally = {0};
    size_t format;
    enum err e = ask_format(a, formats, COUNTOF(formats), &format);
    if (e == E_OK)
        e = tally_open(&tally, a);
    if (e == E_OK)
        e = typesel_list(a, &list, &tally);
    tally_close(&tally, a);
    if (e == E_OK && format == 1)
        write_text(a, &list);
    else if (e == E_OK)
        write_json(a, &list, &tally);
    return e;
}
