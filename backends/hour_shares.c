#include "backends/hour_shares.h"

#include "backends/day.h"

/* A row, copied. */
struct copied {
    struct str body;
    uint64_t check;
    struct copied *next;
};
/* What one type has so far. */
struct type_shares {
    struct str id;
    struct shares sum;
};

struct sharing {
    const struct backend *backend;
    struct sample_store *store;
    const struct hash_key *key;
    const struct hour_todo *todo;
    struct arena *arena;
    struct copied *rows;
    uint32_t days;
    bool dirty;
    struct idset *stacks;
    struct symtab *symbols;
    struct type_shares *types;
    uint32_t n_types, cap_types;
    struct fault *f;
};

static enum err no_memory(struct sharing *h)
{
    return fault_set(h->f, E_NO_MEMORY, NULL);
}

static enum err on_row(void *ctx, const struct stored *s)
{
    struct sharing *h = ctx;
    struct copied *c = NEW(h->arena, struct copied, 1);

    if (!s->hour) {
        h->dirty = true;
        return E_OK;
    }
    if (!c || !arena_str(h->arena, s->body, &c->body))
        return no_memory(h);
    c->check = s->hour->check;
    c->next = h->rows;
    h->rows = c;
    h->days = s->class_days > h->days ? s->class_days : h->days;
    return E_OK;
}

static enum err read_rows(struct sharing *h)
{
    struct selection sel = {
        .project = h->todo->project,
        .service = h->todo->service,
        .from_ns = h->todo->hour * HOUR_NS,
        .until_ns = (h->todo->hour + 1) * HOUR_NS,
    };
    struct fault why = {0};
    enum err e = h->backend->read->scan(h->store, &sel, SCAN_BODY | SCAN_HOURS, on_row, h, &why);

    return e ? fault_set(h->f, e, why.text[0] ? "%s" : NULL, why.text) : E_OK;
}

static enum err want_stacks(struct sharing *h)
{
    for (const struct copied *c = h->rows; c; c = c->next) {
        struct record_view v;

        if (record_open(&v, c->body, h->arena, h->f))
            return h->f->err;
        for (uint32_t i = 0; i < v.n_stacks; i++)
            if (v.stack_ids[i] && !idset_add(h->stacks, v.stack_ids[i]))
                return no_memory(h);
    }
    symtab_want(h->symbols, h->stacks);
    return E_OK;
}

static enum err on_block(void *ctx, struct str block)
{
    struct sharing *h = ctx;

    return symtab_add(h->symbols, block, h->f);
}

static enum err read_symbols(struct sharing *h)
{
    int32_t day = day_of(h->todo->hour * HOUR_NS);
    enum err e = E_OK;

    for (int pass = 0; !e && (pass == 0 || (pass == 1 && symtab_lacks(h->symbols))); pass++)
        e = h->backend->read->symbols(h->store, h->todo->project, h->todo->service, day, day, on_block, h, h->f);
    return e;
}

static enum err add_shares(struct sharing *h, struct str id, const struct shares *shares)
{
    uint32_t i = 0;

    while (i < h->n_types && !str_eq(h->types[i].id, id))
        i++;
    if (i == h->cap_types) {
        uint32_t cap = i ? i * 2 : 8;

        h->types = GROW(h->arena, h->types, struct type_shares, i, cap);
        if (!h->types)
            return no_memory(h);
        h->cap_types = cap;
    }
    if (i < h->n_types) {
        struct shares sum = h->types[i].sum;

        return shares_add(&sum, shares, h->arena, &h->types[i].sum, h->f);
    }
    h->types[h->n_types++] = (struct type_shares){id, *shares};
    return E_OK;
}

static enum err charge_row(struct sharing *h, const struct copied *c)
{
    struct record_view v;
    struct shares *shares;
    struct record r = {.body = c->body};
    enum err e = record_open(&v, c->body, h->arena, h->f);

    if (e)
        return e;
    r.n_types = v.n_types;
    r.symbols = symtab_pick(h->symbols, v.stack_ids, v.n_stacks, h->key);
    if (!r.symbols)
        return no_memory(h);
    e = shares_of(&r, h->key, h->arena, &shares, h->f);
    for (uint32_t t = 0; !e && t < v.n_types; t++) {
        shares[t].check = c->check;
        e = add_shares(h, v.types[t].id, &shares[t]);
    }
    symbols_free(r.symbols);
    return e;
}

static enum err compute(struct sharing *h)
{
    enum err e = want_stacks(h);

    if (!e)
        e = read_symbols(h);
    for (const struct copied *c = h->rows; !e && c; c = c->next)
        e = charge_row(h, c);
    return e;
}

enum err hour_shares_put(const struct backend *b, struct sample_store *s, const struct hash_key *k,
                         const struct hour_todo *t, const struct share_store_ops *ops, struct share_store *to,
                         struct fault *f)
{
    struct sharing h = {.backend = b, .store = s, .key = k, .todo = t, .f = f, .arena = arena_new(SIZE_MAX)};
    enum err e;

    h.stacks = idset_new();
    h.symbols = symtab_new();
    e = h.arena && h.stacks && h.symbols ? read_rows(&h) : no_memory(&h);
    if (!e && !h.dirty && h.rows)
        e = compute(&h);
    for (uint32_t i = 0; !e && i < h.n_types; i++) {
        struct share_of of = {t->project, t->service, h.types[i].id};

        e = ops->put_hour(to, &of, t->hour, &h.types[i].sum, h.days, f);
    }
    symtab_free(h.symbols);
    idset_free(h.stacks);
    arena_free(h.arena);
    return e;
}
