/* Comparing a record read back with its profile, field by field. */
#include "test/oracle/record_same.h"

static bool same_labels(const struct sample_label *a, const struct sample_label *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!str_eq(a[i].key, b[i].key) || !str_eq(a[i].value, b[i].value) || !str_eq(a[i].unit, b[i].unit) ||
            a[i].num != b[i].num || a[i].numeric != b[i].numeric)
            return false;
    return true;
}

static const char *series_differ(const struct series *a, const struct series *b)
{
    if (!str_eq(a->project, b->project) || !str_eq(a->service, b->service) || !str_eq(a->name, b->name) ||
        !str_eq(a->spy, b->spy) || a->n_labels != b->n_labels)
        return "series";
    for (uint32_t i = 0; i < a->n_labels; i++)
        if (!str_eq(a->labels[i].name, b->labels[i].name) || !str_eq(a->labels[i].value, b->labels[i].value))
            return "labels";
    return NULL;
}

static const char *types_differ(const struct sample_type *a, const struct sample_type *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!str_eq(a[i].type, b[i].type) || !str_eq(a[i].unit, b[i].unit) || !str_eq(a[i].id, b[i].id) ||
            a[i].aggregation != b[i].aggregation || a[i].total != b[i].total)
            return "types";
    return NULL;
}

static const char *head_differs(const struct record_view *v, const struct profile *p, const struct record *r)
{
    if (v->time_ns != p->time_ns || v->duration_ns != p->duration_ns || v->period != p->period)
        return "times";
    if (!str_eq(v->period_type, p->period_type) || !str_eq(v->period_unit, p->period_unit))
        return "period type";
    if (!str_eq(v->format, r->format) || !str_eq(v->comment, p->comment))
        return "format or comment";
    if (v->drops.broken_references != p->drops.broken_references ||
        v->drops.negative_values != p->drops.negative_values || v->drops.zero_samples != p->drops.zero_samples ||
        v->drops.truncated_stacks != p->drops.truncated_stacks || v->drops.saturated != p->drops.saturated)
        return "drops";
    if (v->n_types != p->n_types || v->primary != p->primary || v->n_sets != p->n_sets || v->n_samples != p->n_samples)
        return "counts";
    return NULL;
}

static const char *samples_differ(const struct record_view *v, const struct profile *p, const struct record *r)
{
    for (uint32_t i = 0; i < p->n_samples; i++) {
        if (v->stack_ids[v->sample_stack[i]] != r->symbols->stack_ids[p->sample_stack[i]])
            return "stacks";
        if (v->sample_set[i] != p->sample_set[i])
            return "label sets of samples";
        for (uint32_t t = 0; t < p->n_types; t++)
            if (v->values[t][i] != p->values[t][i])
                return "values";
    }
    return NULL;
}

const char *record_differs(const struct record_view *v, const struct profile *p, const struct record *r)
{
    const char *what = series_differ(&v->series, &p->series);

    if (!what)
        what = head_differs(v, p, r);
    if (!what)
        what = types_differ(v->types, p->types, p->n_types);
    for (uint32_t i = 0; !what && i < p->n_sets; i++)
        if (v->set_at[i + 1] != p->set_at[i + 1])
            what = "label sets";
    if (!what && !same_labels(v->labels, p->labels, p->set_at[p->n_sets]))
        what = "sample labels";
    return what ? what : samples_differ(v, p, r);
}

static uint32_t stack_of(const struct record *r, uint64_t id)
{
    uint32_t i = 0;

    while (r->symbols->stack_ids[i] != id)
        i++;
    return i;
}

struct profile *record_again(struct arena *a, const struct record_view *v, const struct profile *p,
                             const struct record *r)
{
    struct profile *q = NEW(a, struct profile, 1);
    uint32_t *stacks = NEW(a, uint32_t, v->n_samples + (size_t)1), *at = NEW(a, uint32_t, v->n_stacks + (size_t)1);

    ASSERT(q && stacks && at);
    for (uint32_t i = 0; i < v->n_stacks; i++)
        at[i] = stack_of(r, v->stack_ids[i]);
    for (uint32_t i = 0; i < v->n_samples; i++)
        stacks[i] = at[v->sample_stack[i]];
    *q = *p;
    q->series = v->series;
    q->time_ns = v->time_ns;
    q->duration_ns = v->duration_ns;
    q->period_type = v->period_type;
    q->period_unit = v->period_unit;
    q->period = v->period;
    q->comment = v->comment;
    q->types = v->types;
    q->set_at = v->set_at;
    q->labels = v->labels;
    q->sample_stack = stacks;
    q->sample_set = v->sample_set;
    q->values = v->values;
    q->drops = v->drops;
    return q;
}
