/*
 * The one merge. Rows are (stack, label set); a column of sums per type grows with them. Everything lives in one arena,
 * whose limit is the query's.
 */
#include "codecs/merge.h"

#include "codecs/idmap.h"
#include "codecs/labelsets.h"

#include <stdlib.h>

enum { FIRST_ROWS = 256, FIRST_TYPES = 4 };
#define NO_ROW UINT32_MAX

struct merge {
    struct merge_spec spec;
    struct merged out;
    struct arena *a;
    struct idmap row_of; /* of stack ids; with by_labels of stacks and sets mixed */
    struct labelsets *sets;
    uint32_t rows_cap, types_cap;
    bool any;
};

struct merge *merge_new(const struct merge_spec *spec)
{
    struct merge *m = calloc(1, sizeof *m);

    if (!m)
        return NULL;
    m->spec = *spec;
    m->a = arena_new(spec->memory_limit);
    m->sets = m->a ? labelsets_new(m->a) : NULL;
    if (m->sets)
        return m;
    merge_free(m);
    return NULL;
}

/* The table of rows is on malloc; it counts against the limit by what is left of it. */
static bool room_in_table(const struct merge *m)
{
    return merge_bytes(m) <= m->spec.memory_limit;
}

static enum err no_room(const struct merge *m, struct fault *f)
{
    if (!arena_over_limit(m->a) && room_in_table(m))
        return fault_set(f, E_NO_MEMORY, NULL);
    return fault_set(f, E_PROFILE_TOO_LARGE, "this query needs more than the %zu bytes of memory that a query may take",
                     m->spec.memory_limit);
}

static bool copy_type(struct merge *m, const struct sample_type *from, struct merged_type *to)
{
    to->aggregation = from->aggregation;
    return arena_str(m->a, from->type, &to->type) && arena_str(m->a, from->unit, &to->unit) &&
           arena_str(m->a, from->id, &to->id);
}

static bool grow_types(struct merge *m)
{
    struct merged *o = &m->out;
    uint32_t cap = m->types_cap ? m->types_cap * 2 : FIRST_TYPES;
    struct merged_type *types = GROW(m->a, o->types, struct merged_type, m->types_cap, cap);

    if (!types)
        return false;
    o->types = types;
    int64_t **values = GROW(m->a, o->values, int64_t *, m->types_cap, cap);
    if (!values)
        return false;
    o->values = values;
    m->types_cap = cap;
    return true;
}

/* The column of a type, made with zeros for the rows that are there already. False: no room. */
static bool column_of(struct merge *m, const struct sample_type *t, uint32_t *column)
{
    struct merged *o = &m->out;

    for (*column = 0; *column < o->n_types; ++*column)
        if (str_eq(o->types[*column].id, t->id))
            return true;
    if (o->n_types == m->types_cap && !grow_types(m))
        return false;
    o->values[o->n_types] = NEW(m->a, int64_t, m->rows_cap ? m->rows_cap : 1);
    if (!o->values[o->n_types] || !copy_type(m, t, &o->types[o->n_types]))
        return false;
    o->n_types++;
    return true;
}

static bool grow_rows(struct merge *m)
{
    struct merged *o = &m->out;
    uint32_t old = m->rows_cap, cap = old ? old * 2 : FIRST_ROWS;
    uint64_t *stack = GROW(m->a, o->stack, uint64_t, old, cap);

    if (!stack)
        return false;
    o->stack = stack;
    if (m->spec.by_labels) {
        uint32_t *set = GROW(m->a, o->set, uint32_t, old, cap);
        if (!set)
            return false;
        o->set = set;
    }
    for (uint32_t t = 0; t < o->n_types; t++) {
        int64_t *v = GROW(m->a, o->values[t], int64_t, old ? old : 1, cap);
        if (!v)
            return false;
        o->values[t] = v;
    }
    m->rows_cap = cap;
    return room_in_table(m);
}

/* The row of (stack, set), NO_ROW if there is no room. Two pairs that mix to the same key are told apart by trying the
 * next. */
static uint32_t row_of(struct merge *m, uint64_t stack, uint32_t set)
{
    struct merged *o = &m->out;
    uint64_t key = stack + set * UINT64_C(0x9e3779b97f4a7c15);

    if (o->n_rows == m->rows_cap && !grow_rows(m))
        return NO_ROW;
    for (;; key += UINT64_C(0xc2b2ae3d27d4eb4f)) {
        uint32_t row = idmap_add(&m->row_of, key, o->n_rows);
        if (row == IDMAP_NONE)
            return NO_ROW;
        if (row == o->n_rows) {
            o->stack[row] = stack;
            if (o->set)
                o->set[row] = set;
            o->n_rows++;
            return row;
        }
        if (o->stack[row] == stack && (!o->set || o->set[row] == set))
            return row;
    }
}

/* What one record is added with; arrays are by its own numbers, in an arena of the record's. */
struct adding {
    struct merge *m;
    const struct record_view *v;
    const int64_t **from; /* columns of the record that count, */
    uint32_t *to;         /* and where they go */
    uint32_t n_columns;
    bool *keep;
    uint32_t *set, *row; /* of the record's label sets and stacks, NO_ROW while not looked up */
};

/* A sum that has saturated stays where it is. */
static void add_value(struct merge *m, int64_t *sum, int64_t value)
{
    if (*sum != INT64_MAX && *sum != INT64_MIN)
        *sum = add_sat(*sum, value, &m->out.saturated);
    else if (value)
        m->out.saturated = true;
}

static bool all_zero(const struct adding *a, uint32_t sample)
{
    for (uint32_t c = 0; c < a->n_columns; c++)
        if (a->from[c][sample])
            return false;
    return true;
}

static uint32_t row_of_sample(struct adding *a, uint32_t sample)
{
    uint32_t stack = a->v->sample_stack[sample], set = a->v->sample_set[sample];

    if (a->m->spec.by_labels)
        return row_of(a->m, a->v->stack_ids[stack], a->set[set]);
    if (a->row[stack] == NO_ROW)
        a->row[stack] = row_of(a->m, a->v->stack_ids[stack], 0);
    return a->row[stack];
}

static bool add_samples(struct adding *a)
{
    struct merged *o = &a->m->out;

    for (uint32_t i = 0; i < a->v->n_samples; i++) {
        if (!a->keep[a->v->sample_set[i]] || all_zero(a, i))
            continue;
        uint32_t row = row_of_sample(a, i);
        if (row == NO_ROW)
            return false;
        for (uint32_t c = 0; c < a->n_columns; c++) {
            add_value(a->m, &o->values[a->to[c]][row], a->from[c][i]);
            add_value(a->m, &o->types[a->to[c]].total, a->from[c][i]);
        }
    }
    o->samples += a->v->n_samples;
    return true;
}

static bool wanted(const struct merge *m, const struct sample_type *t)
{
    return !m->spec.type_id.p || str_eq(t->id, m->spec.type_id);
}

static bool choose_columns(struct adding *a, struct arena *scratch)
{
    a->from = NEW(scratch, const int64_t *, a->v->n_types + (size_t)1);
    a->to = NEW(scratch, uint32_t, a->v->n_types + (size_t)1);
    if (!a->from || !a->to)
        return false;
    for (uint32_t t = 0; t < a->v->n_types; t++) {
        if (!wanted(a->m, &a->v->types[t]))
            continue;
        if (!column_of(a->m, &a->v->types[t], &a->to[a->n_columns]))
            return false;
        a->from[a->n_columns++] = a->v->values[t];
    }
    return true;
}

static bool add_set(struct adding *a, uint32_t i, struct arena *scratch)
{
    const struct record_view *v = a->v;
    const struct sample_label *labels = v->labels + v->set_at[i];
    uint32_t n = v->set_at[i + 1] - v->set_at[i], kept = 0;
    struct sample_label *rest;

    if (!a->m->spec.drop_links || !n)
        return labelsets_add(a->m->sets, labels, n, &a->set[i]);
    rest = NEW(scratch, struct sample_label, n);
    for (uint32_t j = 0; rest && j < n; j++)
        if (label_link(labels[j].key) == LINK_NONE)
            rest[kept++] = labels[j];
    return rest && labelsets_add(a->m->sets, rest, kept, &a->set[i]);
}

static bool choose_sets(struct adding *a, struct arena *scratch)
{
    const struct record_view *v = a->v;

    a->keep = NEW(scratch, bool, v->n_sets + (size_t)1);
    a->set = NEW(scratch, uint32_t, v->n_sets + (size_t)1);
    a->row = NEW(scratch, uint32_t, v->n_stacks + (size_t)1);
    if (!a->keep || !a->set || !a->row)
        return false;
    memset(a->row, 0xff, sizeof *a->row * v->n_stacks);
    memset(a->keep, !a->m->spec.filter, v->n_sets);
    if (a->m->spec.filter)
        a->m->spec.filter(a->m->spec.filter_ctx, v, a->keep);
    for (uint32_t i = 0; i < v->n_sets && a->m->spec.by_labels; i++)
        if (a->keep[i] && !add_set(a, i, scratch))
            return false;
    return true;
}

static bool add_times(struct merge *m, const struct record_view *v)
{
    struct merged *o = &m->out;
    bool over = false;

    o->duration_ns = add_sat(o->duration_ns, v->duration_ns, &over);
    if (!m->any || v->time_ns < o->time_ns)
        o->time_ns = v->time_ns;
    if (m->any)
        return true;
    m->any = true;
    o->period = v->period;
    return arena_str(m->a, v->period_type, &o->period_type) && arena_str(m->a, v->period_unit, &o->period_unit);
}

enum err merge_add(struct merge *m, const struct record_view *v, struct fault *f)
{
    struct arena *scratch = arena_new(SIZE_MAX);
    struct adding a = {.m = m, .v = v};
    enum err e = E_OK;

    if (!scratch)
        return fault_set(f, E_NO_MEMORY, NULL);
    bool ok = choose_columns(&a, scratch);
    if (ok && a.n_columns)
        ok = choose_sets(&a, scratch) && add_times(m, v) && add_samples(&a);
    if (!ok)
        e = no_room(m, f);
    arena_free(scratch);
    return e;
}

const struct merged *merge_result(struct merge *m)
{
    labelsets_view(m->sets, &m->out.set_at, &m->out.labels, &m->out.n_sets);
    return &m->out;
}

size_t merge_bytes(const struct merge *m)
{
    return arena_used(m->a) + idmap_bytes(&m->row_of);
}

void merge_free(struct merge *m)
{
    if (!m)
        return;
    labelsets_free(m->sets);
    idmap_free(&m->row_of);
    arena_free(m->a);
    free(m);
}
