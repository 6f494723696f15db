/* GET labels and labels/NAME: names and values, of series and of samples. */
#include <stdlib.h>

#include "codecs/instance.h"
#include "gateway/query/endpoints.h"
#include "gateway/query/nameset.h"
#include "gateway/query/text.h"

struct labels {
    struct ask *ask;
    struct tally tally;
    struct nameset found;
};

static enum err add(struct labels *l, struct str text)
{
    uint32_t place;
    return text.len ? nameset_add(&l->found, l->ask, text, true, &place) : E_OK;
}

/* A name of the series, its value, when names (or the values of this name) are asked for. */
static enum err add_pair(struct labels *l, struct str name, struct str value)
{
    if (l->ask->rest.len == 0)
        return value.len ? add(l, name) : E_OK;
    return str_eq(name, l->ask->rest) ? add(l, value) : E_OK;
}

static enum err add_series(struct labels *l, const struct stored *p)
{
    const struct series *s = p->series;
    enum err e = add_pair(l, STR("service_name"), s->service);
    if (e == E_OK)
        e = add_pair(l, STR("__name__"), s->name);
    for (uint32_t i = 0; i < s->n_labels && e == E_OK; i++)
        e = add_pair(l, s->labels[i].name, s->labels[i].value);
    for (uint32_t i = 0; i < p->n_types && e == E_OK; i++)
        e = add_pair(l, STR("__profile_type__"), p->types[i].id);
    for (uint32_t i = 0; p->hour && l->ask->rest.len == 0 && i < p->hour->n_left_out && e == E_OK; i++)
        e = add(l, p->hour->left_out[i]);
    return e;
}

static enum err on_profile(void *ctx, const struct seen_profile *p)
{
    struct labels *l = ctx;
    const struct record_view *v = p->view;
    enum err e = add_series(l, p->stored);
    for (uint32_t s = 0; s < v->n_sets && e == E_OK; s++) {
        if (p->keep && !p->keep[s])
            continue;
        for (uint32_t i = v->set_at[s]; i < v->set_at[s + 1] && e == E_OK; i++)
            if (!v->labels[i].numeric)
                e = add_pair(l, v->labels[i].key, v->labels[i].value);
    }
    return e ? e : tally_add(&l->tally, l->ask, p);
}

static int compare_strs(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void write_json(const struct labels *l, uint32_t shown)
{
    struct json j = {.out = &l->ask->answer->body};
    json_open(&j, '{');
    gather_list_head(&j, l->ask, &l->tally, "profiles");
    json_key(&j, l->ask->rest.len ? "values" : "names");
    json_open(&j, '[');
    for (uint32_t i = 0; i < shown; i++)
        json_str(&j, l->found.list[i]);
    json_close(&j, ']');
    json_key(&j, "other");
    json_uint(&j, l->found.n - shown);
    json_close(&j, '}');
}

static void write_text(const struct labels *l, uint32_t shown)
{
    struct buf *out = &l->ask->answer->body;
    for (uint32_t i = 0; i < shown; i++) {
        text_put(out, l->found.list[i], TEXT_COLUMNS);
        buf_char(out, '\n');
    }
    if (shown < l->found.n)
        buf_printf(out, "(%u more)\n", l->found.n - shown);
}

enum err labels_run(struct ask *a)
{
    static const char *const formats[] = {"json", "text"};
    struct labels l = {.ask = a};
    size_t format;
    enum err e = ask_format(a, formats, COUNTOF(formats), &format);
    if (e == E_OK)
        e = tally_open(&l.tally, a);
    if (e == E_OK)
        e = scan_profiles(a, &(struct scan_spec){.bodies = true,
                                                 .hours = !label_left_out(a->rest),
                                                 .type = a->params.value[PARAM_TYPE],
                                                 .visit = on_profile,
                                                 .ctx = &l});
    tally_close(&l.tally, a);
    if (e)
        return e;
    if (l.found.n > 1)
        qsort(l.found.list, l.found.n, sizeof(*l.found.list), compare_strs);
    uint32_t shown = a->limit && a->limit < l.found.n ? a->limit : l.found.n;
    if (format == 1)
        write_text(&l, shown);
    else
        write_json(&l, shown);
    return E_OK;
}
