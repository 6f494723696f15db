/* A merge's result packed as a record body: what an hour keeps. Rows are put into an order that packs well. */
#include <stdlib.h>

#include "codecs/idmap.h"
#include "codecs/merge.h"
#include "codecs/record_body.h"

enum { HOUR_ZSTD_LEVEL = 7 };

/* One row and what it is sorted by. */
struct place {
    uint32_t set;
    int64_t value;
    uint64_t stack;
    uint32_t row;
};

/* Label set by label set, so that their column is zeros; large values first, so that neighbours are alike. */
static int compare_places(const void *pa, const void *pb)
{
    const struct place *a = pa, *b = pb;

    if (a->set != b->set)
        return a->set < b->set ? -1 : 1;
    if (a->value != b->value)
        return a->value > b->value ? -1 : 1;
    return (a->stack > b->stack) - (a->stack < b->stack);
}

static struct place *sort_rows(const struct merged *m, struct arena *a)
{
    struct place *places = NEW(a, struct place, (size_t)m->n_rows + 1);

    for (uint32_t i = 0; places && i < m->n_rows; i++)
        places[i] = (struct place){m->set ? m->set[i] : 0, m->n_types ? m->values[0][i] : 0, m->stack[i], i};
    if (places && m->n_rows)
        qsort(places, m->n_rows, sizeof *places, compare_places);
    return places;
}

static bool fill_types(struct profile *p, const struct merged *m, struct arena *a)
{
    p->n_types = m->n_types;
    p->types = NEW(a, struct sample_type, (size_t)m->n_types + 1);
    p->values = NEW(a, int64_t *, (size_t)m->n_types + 1);
    if (!p->types || !p->values)
        return false;
    for (uint32_t t = 0; t < m->n_types; t++) {
        const struct merged_type *from = &m->types[t];
        p->types[t] = (struct sample_type){from->type, from->unit, from->id, from->aggregation, from->total};
        p->values[t] = NEW(a, int64_t, (size_t)m->n_rows + 1);
        if (!p->values[t])
            return false;
    }
    return true;
}

/* Columns in the order of places; stacks are numbered as they come. */
static bool fill_samples(struct profile *p, const struct merged *m, const struct place *places, uint64_t *ids,
                         struct arena *a)
{
    struct idmap stacks = {0};
    bool ok = idmap_reserve(&stacks, m->n_rows);

    p->n_samples = m->n_rows;
    p->sample_stack = NEW(a, uint32_t, (size_t)m->n_rows + 1);
    p->sample_set = NEW(a, uint32_t, (size_t)m->n_rows + 1);
    ok = ok && p->sample_stack && p->sample_set;
    for (uint32_t i = 0; ok && i < m->n_rows; i++) {
        uint32_t row = places[i].row, number = idmap_add(&stacks, m->stack[row], p->n_stacks);

        ok = number != IDMAP_NONE;
        if (number == p->n_stacks)
            ids[p->n_stacks++] = m->stack[row];
        p->sample_stack[i] = number;
        p->sample_set[i] = places[i].set;
        for (uint32_t t = 0; t < m->n_types; t++)
            p->values[t][i] = m->values[t][row];
    }
    idmap_free(&stacks);
    return ok;
}

bool merge_body(struct merge *merge, const struct series *series, uint32_t primary, struct buf *out,
                uint32_t *n_samples)
{
    const struct merged *m = merge_result(merge);
    struct arena *a = arena_new(SIZE_MAX);
    struct place *places = a ? sort_rows(m, a) : NULL;
    uint64_t *ids = a ? NEW(a, uint64_t, (size_t)m->n_rows + 1) : NULL;
    struct profile p = {
        .series = *series,
        .time_ns = m->time_ns,
        .duration_ns = m->duration_ns,
        .period_type = m->period_type,
        .period_unit = m->period_unit,
        .period = m->period,
        .primary = primary,
        .set_at = m->set_at,
        .labels = m->labels,
        .n_sets = m->n_sets,
        .drops = {.saturated = m->saturated},
    };
    bool ok = places && ids && fill_types(&p, m, a) && fill_samples(&p, m, places, ids, a) &&
              record_body(&p, ids, STR("hour"), HOUR_ZSTD_LEVEL, out);

    *n_samples = p.n_samples;
    arena_free(a);
    return ok;
}
