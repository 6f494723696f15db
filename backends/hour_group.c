/* Groups are by class (expiry and symbols are), series without instance labels, types. */
#include "backends/hour_group.h"

#include <stdlib.h>

#include "backends/hour_row.h"
#include "codecs/instance.h"
#include "codecs/pack.h"
#include "codecs/shares.h"

enum { FIRST_CAP = 8 };

void hour_group_key(const struct stored *s, struct buf *b)
{
    const struct series *series = s->series;

    pack_u64(b, s->class_days);
    pack_str(b, series->name);
    pack_str(b, series->spy);
    for (uint32_t i = 0; i < series->n_labels; i++) {
        if (label_left_out(series->labels[i].name))
            continue;
        pack_str(b, series->labels[i].name);
        pack_str(b, series->labels[i].value);
    }
    pack_u64(b, s->primary);
    for (uint32_t i = 0; i < s->n_types; i++) {
        pack_str(b, s->types[i].id);
        pack_u64(b, s->types[i].aggregation);
    }
}

static bool copy_series(struct series *to, const struct series *from, struct arena *a)
{
    if (!arena_str(a, from->project, &to->project) || !arena_str(a, from->service, &to->service) ||
        !arena_str(a, from->name, &to->name) || !arena_str(a, from->spy, &to->spy))
        return false;
    to->labels = NEW(a, struct label, (size_t)from->n_labels + 1);
    for (uint32_t i = 0; to->labels && i < from->n_labels; i++) {
        const struct label *l = &from->labels[i];
        struct label *out = &to->labels[to->n_labels];

        if (label_left_out(l->name))
            continue;
        if (!arena_str(a, l->name, &out->name) || !arena_str(a, l->value, &out->value))
            return false;
        to->n_labels++;
    }
    return to->labels != NULL;
}

static bool copy_types(struct stored *sum, const struct stored *s, struct arena *a)
{
    struct sample_type *types = NEW(a, struct sample_type, (size_t)s->n_types + 1);

    for (uint32_t i = 0; types && i < s->n_types; i++) {
        types[i].aggregation = s->types[i].aggregation;
        if (!arena_str(a, s->types[i].type, &types[i].type) || !arena_str(a, s->types[i].unit, &types[i].unit) ||
            !arena_str(a, s->types[i].id, &types[i].id))
            return false;
    }
    sum->types = types;
    return types != NULL;
}

enum err hour_group_open(struct hour_group *g, struct str key, const struct stored *s, size_t memory, struct arena *a,
                         struct fault *f)
{
    *g = (struct hour_group){0};
    if (!arena_str(a, key, &g->key) || !copy_series(&g->series, s->series, a) || !copy_types(&g->sum, s, a))
        return arena_error(a, f);
    g->sum.n_types = s->n_types;
    g->sum.primary = s->primary;
    g->sum.class_days = s->class_days;
    g->merge = merge_new(&(struct merge_spec){.by_labels = true, .drop_links = true, .memory_limit = memory});
    return g->merge ? E_OK : fault_set(f, E_NO_MEMORY, NULL);
}

static bool add_name(struct hour_names *names, struct str name, struct arena *a)
{
    for (uint32_t i = 0; i < names->n; i++)
        if (str_eq(names->list[i], name))
            return true;
    if (names->n == names->cap) {
        uint32_t cap = names->cap ? names->cap * 2 : FIRST_CAP;
        struct str *list = GROW(a, names->list, struct str, names->cap, cap);
        if (!list)
            return false;
        names->list = list;
        names->cap = cap;
    }
    return arena_str(a, name, &names->list[names->n++]);
}

/* What is left out is noted as the list of labels shows it: of samples those with text. */
static bool note_names(struct hour_group *g, const struct stored *s, const struct record_view *v, struct arena *a)
{
    for (uint32_t i = 0; i < s->series->n_labels; i++)
        if (label_left_out(s->series->labels[i].name) && !add_name(&g->left_out, s->series->labels[i].name, a))
            return false;
    for (uint32_t i = 0; i < v->set_at[v->n_sets]; i++) {
        const struct sample_label *l = &v->labels[i];
        bool link = label_link(l->key) != LINK_NONE;
        if (link && (l->numeric || !l->value.len))
            continue;
        if (!add_name(link ? &g->left_out : &g->sample_names, l->key, a))
            return false;
    }
    return true;
}

static bool note_series(struct hour_group *g, uint64_t id, struct arena *a)
{
    uint32_t place = idmap_add(&g->series_at, id, g->n_series);

    if (place == IDMAP_NONE)
        return false;
    if (place < g->n_series)
        return true;
    if (g->n_series == g->cap_series) {
        uint32_t cap = g->cap_series ? g->cap_series * 2 : FIRST_CAP;
        uint64_t *ids = GROW(a, g->series_ids, uint64_t, g->cap_series, cap);
        if (!ids)
            return false;
        g->series_ids = ids;
        g->cap_series = cap;
    }
    g->series_ids[g->n_series++] = id;
    return true;
}

static bool note(struct hour_group *g, const struct stored *s, const struct record_view *v, struct arena *a)
{
    int64_t lasts = s->duration_ns > 0 ? s->duration_ns : 0;
    bool over = false;

    if (!g->sum.n_profiles) {
        g->sum.attempt = s->attempt;
        g->sum.time_ns = s->time_ns;
    }
    g->sum.n_profiles++;
    g->last_ns = s->time_ns;
    g->check += share_check(s->attempt.boot, s->attempt.group, s->attempt.place);
    g->sum.n_samples += s->n_samples;
    g->sum.duration_ns = add_sat(g->sum.duration_ns, lasts, &over);
    return spans_add(&g->covered, (struct span){s->time_ns, add_sat(s->time_ns, lasts, &over)}) &&
           note_series(g, s->series_id, a) && note_names(g, s, v, a);
}

enum err hour_group_add(struct hour_group *g, const struct stored *s, struct arena *a, struct fault *f)
{
    struct arena *scratch = arena_new(SIZE_MAX);
    struct record_view v;
    enum err e = scratch ? record_open(&v, s->body, scratch, f) : fault_set(f, E_NO_MEMORY, NULL);

    if (!e)
        e = merge_add(g->merge, &v, f);
    if (!e && !note(g, s, &v, a))
        e = fault_set(f, E_NO_MEMORY, NULL);
    arena_free(scratch);
    return e;
}

/* The columns of the merge are in the order of the group's types, which all its profiles share. */
static enum err take_totals(struct hour_group *g, const struct merged *m, struct arena *a, struct fault *f)
{
    struct sample_type *types = NEW(a, struct sample_type, (size_t)g->sum.n_types + 1);

    if (!types)
        return arena_error(a, f);
    if (m->n_types != g->sum.n_types)
        return fault_set(f, E_INTERNAL, "an hour's types are not those of its profiles");
    for (uint32_t i = 0; i < m->n_types; i++) {
        types[i] = g->sum.types[i];
        types[i].total = m->types[i].total;
    }
    g->sum.types = types;
    return E_OK;
}

static int by_id(const void *pa, const void *pb)
{
    const uint64_t *a = pa, *b = pb;

    return (*a > *b) - (*a < *b);
}

static int by_name(const void *pa, const void *pb)
{
    return str_cmp(*(const struct str *)pa, *(const struct str *)pb);
}

static void sort_names(struct hour_names *names)
{
    if (names->n)
        qsort(names->list, names->n, sizeof *names->list, by_name);
}

enum err hour_group_pack(struct hour_group *g, int64_t hour_number, struct buf *about, struct buf *body,
                         struct arena *a, struct fault *f)
{
    const struct merged *m = merge_result(g->merge);
    struct stored_hour hour = {.hour = hour_number, .last_ns = g->last_ns, .check = g->check};
    struct stored s;
    uint32_t n;

    if (m->saturated)
        return fault_set(f, E_INTERNAL, "sums of this hour do not fit into 64 bits");
    if (take_totals(g, m, a, f))
        return f->err;
    s = g->sum;
    spans_unite(&g->covered);
    if (g->n_series)
        qsort(g->series_ids, g->n_series, sizeof *g->series_ids, by_id);
    sort_names(&g->left_out);
    sort_names(&g->sample_names);
    hour.covered = g->covered.list;
    hour.n_covered = g->covered.n;
    hour.series_ids = g->series_ids;
    hour.n_series = g->n_series;
    hour.left_out = g->left_out.list;
    hour.n_left_out = g->left_out.n;
    hour.sample_names = g->sample_names.list;
    hour.n_sample_names = g->sample_names.n;
    s.series = &g->series;
    s.hour = &hour;
    hour_about(&s, about);
    return !about->failed && merge_body(g->merge, &g->series, s.primary, body, &n) ? E_OK
                                                                                   : fault_set(f, E_NO_MEMORY, NULL);
}

void hour_group_close(struct hour_group *g)
{
    merge_free(g->merge);
    spans_free(&g->covered);
    idmap_free(&g->series_at);
    *g = (struct hour_group){0};
}
