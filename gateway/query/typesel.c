/* Collects the types of a selection and chooses among them: by id, by the sample type's name, or by rank. */
#include "gateway/query/typesel.h"

#include <stdlib.h>

struct listing {
    struct ask *ask;
    struct type_list *list;
    struct tally *tally;
};

static struct type_row *find_row(struct type_list *l, struct str id)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (str_eq(l->rows[i].id, id))
            return &l->rows[i];
    return NULL;
}

static struct type_row *new_row(struct ask *a, struct type_list *l, const struct sample_type *t)
{
    if (l->n == l->cap) {
        uint32_t cap = l->cap ? l->cap * 2 : 16;
        struct type_row *rows = GROW(a->arena, l->rows, struct type_row, l->cap, cap);
        if (!rows)
            return NULL;
        l->rows = rows;
        l->cap = cap;
    }
    struct type_row *r = &l->rows[l->n];
    *r = (struct type_row){.aggregation = t->aggregation};
    if (!arena_str(a->arena, t->id, &r->id) || !arena_str(a->arena, t->type, &r->type) ||
        !arena_str(a->arena, t->unit, &r->unit))
        return NULL;
    l->n++;
    return r;
}

static enum err on_profile(void *ctx, const struct seen_profile *p)
{
    struct listing *l = ctx;
    bool over = false;
    for (uint32_t i = 0; i < p->stored->n_types; i++) {
        const struct sample_type *t = &p->stored->types[i];
        if (l->ask->selector && !selector_type(l->ask->selector, t->id))
            continue;
        struct type_row *r = find_row(l->list, t->id);
        if (!r)
            r = new_row(l->ask, l->list, t);
        if (!r)
            return ask_no_memory(l->ask);
        r->profiles += p->stored->n_profiles;
        r->total = add_sat(r->total, scan_total(p, i), &over);
    }
    return l->tally ? tally_add(l->tally, l->ask, p) : E_OK;
}

static int compare_rows(const void *a, const void *b)
{
    const struct type_row *x = a, *y = b;
    return str_cmp(x->id, y->id);
}

/* The smallest rank; then most profiles; then the first id. */
static bool comes_before(const struct type_row *a, const struct type_row *b)
{
    int ra = type_primary_rank(a->type, a->unit), rb = type_primary_rank(b->type, b->unit);
    return ra != rb ? ra < rb : a->profiles > b->profiles;
}

enum err typesel_list(struct ask *a, struct type_list *list, struct tally *t)
{
    struct listing l = {a, list, t};
    *list = (struct type_list){0};
    enum err e = scan_profiles(a, &(struct scan_spec){.hours = true, .visit = on_profile, .ctx = &l});
    if (e)
        return e;
    if (list->n)
        qsort(list->rows, list->n, sizeof(*list->rows), compare_rows);
    for (uint32_t i = 1; i < list->n; i++)
        if (comes_before(&list->rows[i], &list->rows[list->primary]))
            list->primary = i;
    return E_OK;
}

static enum err refuse(struct ask *a, const struct type_list *list, struct str wanted)
{
    struct buf ids = {0};
    for (uint32_t i = 0; i < list->n; i++)
        if (str_eq(list->rows[i].type, wanted))
            buf_printf(&ids, "%s%.*s", ids.len ? ", " : "", STR_ARG(list->rows[i].id));
    enum err e = fault_set(&a->fault, E_BAD_REQUEST, "parameter \"type\" is ambiguous here, one of: %.*s",
                           STR_ARG(buf_view(&ids)));
    buf_free(&ids);
    return e;
}

enum err typesel_choose(struct ask *a, const struct type_row **out)
{
    struct type_list list;
    struct str wanted = a->params.value[PARAM_TYPE];
    uint32_t named = 0;
    *out = NULL;
    enum err e = typesel_list(a, &list, NULL);
    if (e || list.n == 0)
        return e;
    if (wanted.len == 0) {
        *out = &list.rows[list.primary];
        return E_OK;
    }
    for (uint32_t i = 0; i < list.n; i++) {
        if (str_eq(list.rows[i].id, wanted)) {
            *out = &list.rows[i];
            return E_OK;
        }
        if (str_eq(list.rows[i].type, wanted)) {
            *out = &list.rows[i];
            named++;
        }
    }
    return named > 1 ? refuse(a, &list, wanted) : E_OK;
}
