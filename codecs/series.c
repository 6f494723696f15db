/* Binding labels, with the limits by name. */
#include "codecs/series.h"

#include <stdlib.h>

#include "codecs/name.h"

struct placed {
    struct label label;
    uint32_t at;
};

static int placed_cmp(const void *pa, const void *pb)
{
    const struct placed *a = pa, *b = pb;
    int c = str_cmp(a->label.name, b->label.name);

    return c ? c : (a->at > b->at) - (a->at < b->at);
}

static struct str first_of(const struct series_labels *in, struct str name)
{
    for (uint32_t i = 0; i < in->n; i++)
        if (str_eq(in->labels[i].name, name) && str_trim(in->labels[i].value).len)
            return str_trim(in->labels[i].value);
    return (struct str){"", 0};
}

static enum err check_label(const struct label *l, const struct limits *lim, struct fault *f)
{
    if (l->name.len == 0)
        return fault_set(f, E_BAD_NAME, "a label has an empty name");
    if (l->name.len > lim->label_name)
        return fault_set(f, E_LABEL_NAME_LONG, "a label name has %zu bytes, limits.label_name is %u", l->name.len,
                         lim->label_name);
    if (!utf8_valid(l->name))
        return fault_set(f, E_BAD_NAME, "a label name is not valid UTF-8");
    if (l->value.len > lim->label_value)
        return fault_set(f, E_LABEL_VALUE_LONG, "the value of label %.*s has %zu bytes, limits.label_value is %u",
                         STR_ARG(l->name), l->value.len, lim->label_value);
    if (!utf8_valid(l->value))
        return fault_set(f, E_BAD_NAME, "the value of label %.*s is not valid UTF-8", STR_ARG(l->name));
    return E_OK;
}

/* Names with two underscores in front are the protocol's own, but for the one that tells a host's series apart. */
static bool reserved(struct str name)
{
    return str_starts(name, STR("__")) && !str_eq(name, STR("__session_id__"));
}

/* What is kept, in the order sent; how many. *added: those of them that the client did not send as labels. */
static uint32_t collect(struct placed *out, const struct series_labels *in, struct str service, uint32_t *added)
{
    uint32_t n = 0;
    bool named = first_of(in, STR("service_name")).len != 0;
    bool spy = in->spy.len != 0;

    for (uint32_t i = 0; i < in->n; i++) {
        struct label l = in->labels[i];
        if (reserved(l.name) || l.value.len == 0 || str_eq(l.name, STR("service_name")))
            continue;
        spy = spy && !str_eq(l.name, STR("pyroscope_spy"));
        out[n] = (struct placed){l, n};
        n++;
    }
    out[n] = (struct placed){{STR("service_name"), service}, n};
    n++;
    if (spy) {
        out[n] = (struct placed){{STR("pyroscope_spy"), in->spy}, n};
        n++;
    }
    *added = !named + spy;
    return n;
}

static enum err publish(struct series *out, struct placed *all, uint32_t n, uint32_t added, const struct limits *lim,
                        struct fault *f)
{
    qsort(all, n, sizeof *all, placed_cmp);
    for (uint32_t i = 0; i < n; i++) {
        if (check_label(&all[i].label, lim, f) != E_OK)
            return f->err;
        if (i + 1 < n && str_eq(all[i].label.name, all[i + 1].label.name))
            continue;
        out->labels[out->n_labels++] = all[i].label;
    }
    if (out->n_labels - added > lim->labels)
        return fault_set(f, E_TOO_MANY_LABELS, "series has %u labels, limits.labels is %u", out->n_labels - added,
                         lim->labels);
    return E_OK;
}

struct str series_service(const struct series_labels *in)
{
    struct str service = first_of(in, STR("service_name"));

    if (service.len == 0)
        service = in->app.len ? in->app : STR("unknown_service");
    return service;
}

enum err series_bind(struct series *out, const struct series_labels *in, const struct limits *lim, struct arena *a,
                     bool *cumulative, struct fault *f)
{
    struct placed *all = NEW(a, struct placed, (size_t)in->n + 2);
    struct str service = series_service(in);

    out->labels = NEW(a, struct label, (size_t)in->n + 2);
    if (!all || !out->labels)
        return arena_error(a, f);
    if (!name_printable(service))
        return fault_set(f, E_BAD_NAME, "service_name is not printable UTF-8");
    out->service = service;
    out->name = first_of(in, STR("__name__"));
    if (out->name.len && (!utf8_valid(out->name) || out->name.len > lim->label_value))
        return fault_set(f, E_BAD_NAME, "__name__ is not valid UTF-8, or longer than limits.label_value (%u)",
                         lim->label_value);
    *cumulative = str_eq(first_of(in, STR("__delta__")), STR("true"));
    out->spy = in->spy.len ? in->spy : first_of(in, STR("pyroscope_spy"));
    if (out->spy.len == 0)
        out->spy = first_of(in, STR("spy_name"));
    uint32_t added, n = collect(all, in, service, &added);
    return publish(out, all, n, added, lim, f);
}

bool series_type_ids(struct profile *p, struct arena *a)
{
    struct buf id = {0};
    bool good = true;

    for (uint32_t t = 0; t < p->n_types && good; t++) {
        id.len = 0;
        buf_printf(&id, "%.*s:%.*s:%.*s:%.*s:%.*s", STR_ARG(p->series.name), STR_ARG(p->types[t].type),
                   STR_ARG(p->types[t].unit), STR_ARG(p->period_type), STR_ARG(p->period_unit));
        good = !id.failed && arena_str(a, buf_view(&id), &p->types[t].id);
    }
    buf_free(&id);
    return good;
}
