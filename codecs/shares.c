/* Charging functions with the values of a record, stack by stack, and adding the results up. */
#include "codecs/shares.h"

#include <stdlib.h>

#include "codecs/identity.h"
#include "codecs/idmap.h"
#include "codecs/pack.h"

struct ranked {
    uint64_t id;
    uint32_t place;
};

/* One record on its way to shares: frames and stacks by place, functions in order of appearance. */
struct charging {
    const struct symbols *symbols;
    struct arena *arena;
    struct idmap functions; /* identity -> place in ids */
    uint64_t *ids;
    uint32_t n_ids;
    uint32_t *frame_function; /* frame -> place */
    uint32_t no_stack;        /* place of [no stack] */
    uint32_t *stamp;          /* last stack + 1 that was charged to the function */
    struct share *sums;       /* by place; zeros between types */
    struct ranked *ranked;    /* by id */
};

static bool intern(struct charging *c, uint64_t id, uint32_t *place)
{
    *place = idmap_add(&c->functions, id, c->n_ids);
    if (*place == IDMAP_NONE)
        return false;
    if (*place == c->n_ids)
        c->ids[c->n_ids++] = id;
    return true;
}

/* Frames with a function are told apart by it alone, so each function is hashed once. */
static bool intern_functions(struct charging *c, const struct hash_key *k, uint32_t *place)
{
    const struct symbols *s = c->symbols;

    for (uint32_t i = 0; i < s->n_functions; i++) {
        struct identity id = identity_of(&s->functions[i], NULL, 0, NULL);
        if (!intern(c, identity_hash(&id, k), &place[i]))
            return false;
    }
    return true;
}

static bool intern_frames(struct charging *c, const struct hash_key *k)
{
    const struct symbols *s = c->symbols;
    uint32_t *place = NEW(c->arena, uint32_t, s->n_functions + 1);
    struct identity none = identity_lone("[no stack]");
    char text[IDENTITY_TEXT];

    if (!place || !intern_functions(c, k, place))
        return false;
    for (uint32_t i = 0; i < s->n_frames; i++) {
        const struct frame *fr = &s->frames[i];
        const struct mapping *m = fr->mapping == PROFILE_NONE ? NULL : &s->mappings[fr->mapping];
        if (fr->function != PROFILE_NONE) {
            c->frame_function[i] = place[fr->function];
            continue;
        }
        struct identity id = identity_of(NULL, m, fr->address, text);
        if (!intern(c, identity_hash(&id, k), &c->frame_function[i]))
            return false;
    }
    return intern(c, identity_hash(&none, k), &c->no_stack);
}

/* Where the view's stacks are in the symbols; PROFILE_NONE: the empty one. */
static bool find_stacks(const struct symbols *s, const struct record_view *v, uint32_t *place)
{
    struct idmap stacks = {0};
    bool ok = idmap_reserve(&stacks, s->n_stacks);

    for (uint32_t i = 0; ok && i < s->n_stacks; i++)
        ok = idmap_add(&stacks, s->stack_ids[i], i) != IDMAP_NONE;
    for (uint32_t i = 0; ok && i < v->n_stacks; i++)
        place[i] = v->stack_ids[i] ? idmap_get(&stacks, v->stack_ids[i]) : PROFILE_NONE;
    idmap_free(&stacks);
    return ok;
}

static void charge_stack(struct charging *c, uint32_t stack, uint32_t mark, int64_t value)
{
    const struct symbols *s = c->symbols;
    struct share *rows = c->sums;
    uint32_t at = stack == PROFILE_NONE ? 0 : s->stack_at[stack];
    uint32_t end = stack == PROFILE_NONE ? 0 : s->stack_at[stack + 1];
    uint32_t leaf = at == end ? c->no_stack : c->frame_function[s->stack_frames[end - 1]];
    bool over = false;

    rows[leaf].self = add_sat(rows[leaf].self, value, &over);
    if (at == end)
        rows[leaf].total = add_sat(rows[leaf].total, value, &over);
    for (; at < end; at++) {
        uint32_t fn = c->frame_function[s->stack_frames[at]];
        if (c->stamp[fn] == mark)
            continue;
        c->stamp[fn] = mark;
        rows[fn].total = add_sat(rows[fn].total, value, &over);
    }
}

/* By one byte of the ids, those that are equal staying in their order. */
static void sort_by_byte(const struct ranked *from, struct ranked *to, uint32_t n, unsigned shift)
{
    uint32_t at[256] = {0}, sum = 0;

    for (uint32_t i = 0; i < n; i++)
        at[from[i].id >> shift & 0xff]++;
    for (unsigned b = 0; b < 256; b++) {
        uint32_t here = at[b];
        at[b] = sum;
        sum += here;
    }
    for (uint32_t i = 0; i < n; i++)
        to[at[from[i].id >> shift & 0xff]++] = from[i];
}

/*
 * The places of all functions in the order of their ids, once for all types. Ids are hashes: by their upper half they
 * are as good as sorted, and what is left costs one more look at each.
 */
static bool rank(struct charging *c)
{
    struct ranked *a = NEW(c->arena, struct ranked, c->n_ids + 1), *b = NEW(c->arena, struct ranked, c->n_ids + 1);

    if (!a || !b)
        return false;
    for (uint32_t i = 0; i < c->n_ids; i++)
        a[i] = (struct ranked){c->ids[i], i};
    for (unsigned shift = 32; shift < 64; shift += 16) {
        sort_by_byte(a, b, c->n_ids, shift);
        sort_by_byte(b, a, c->n_ids, shift + 8);
    }
    for (uint32_t i = 1; i < c->n_ids; i++) {
        struct ranked x = a[i];
        uint32_t j = i;
        for (; j > 0 && a[j - 1].id > x.id; j--)
            a[j] = a[j - 1];
        a[j] = x;
    }
    c->ranked = a;
    return true;
}

/* What functions got, by id; those that got nothing are left out. The sums are zeros again. */
static bool settle(struct charging *c, struct shares *out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->n_ids; i++)
        n += c->sums[i].self || c->sums[i].total;
    out->rows = NEW(c->arena, struct share, (size_t)n + 1);
    if (!out->rows)
        return false;
    for (uint32_t i = 0; i < c->n_ids; i++) {
        struct share *s = &c->sums[c->ranked[i].place];
        if (!s->self && !s->total)
            continue;
        out->rows[out->n++] = (struct share){c->ranked[i].id, s->self, s->total};
        *s = (struct share){0};
    }
    return true;
}

static enum err charge_type(struct charging *c, const struct record_view *v, const uint32_t *place, uint32_t type,
                            struct shares *out, struct fault *f)
{
    int64_t *per_stack = NEW(c->arena, int64_t, v->n_stacks + 1);
    bool over = false;

    if (!per_stack)
        return arena_error(c->arena, f);
    for (uint32_t i = 0; i < v->n_samples; i++) {
        int64_t value = v->values[type][i];
        per_stack[v->sample_stack[i]] = add_sat(per_stack[v->sample_stack[i]], value, &over);
        out->total = add_sat(out->total, value, &over);
    }
    for (uint32_t i = 0; i < v->n_stacks; i++)
        if (per_stack[i])
            charge_stack(c, place[i], type * v->n_stacks + i + 1, per_stack[i]);
    return settle(c, out) ? E_OK : arena_error(c->arena, f);
}

static enum err charge_all(struct charging *c, const struct record_view *v, const struct hash_key *k,
                           struct shares **out, struct fault *f)
{
    uint32_t *place = NEW(c->arena, uint32_t, v->n_stacks + 1);
    size_t most = (size_t)c->symbols->n_functions + c->symbols->n_frames + 1;

    c->ids = NEW(c->arena, uint64_t, most);
    c->stamp = NEW(c->arena, uint32_t, most);
    c->frame_function = NEW(c->arena, uint32_t, c->symbols->n_frames + 1);
    *out = NEW(c->arena, struct shares, v->n_types + 1);
    if (!place || !c->ids || !c->stamp || !c->frame_function || !*out)
        return arena_error(c->arena, f);
    if (!intern_frames(c, k) || !find_stacks(c->symbols, v, place))
        return fault_set(f, E_NO_MEMORY, NULL);
    c->sums = NEW(c->arena, struct share, c->n_ids + 1);
    if (!c->sums || !rank(c))
        return arena_error(c->arena, f);
    for (uint32_t t = 0; t < v->n_types; t++) {
        enum err e = charge_type(c, v, place, t, &(*out)[t], f);
        if (e)
            return e;
    }
    return E_OK;
}

enum err shares_of(const struct record *r, const struct hash_key *k, struct arena *a, struct shares **out,
                   struct fault *f)
{
    struct charging c = {.symbols = r->symbols, .arena = a};
    struct record_view v;
    enum err e = record_open(&v, r->body, a, f);

    if (e == E_OK)
        e = charge_all(&c, &v, k, out, f);
    idmap_free(&c.functions);
    return e;
}

enum err shares_add(const struct shares *x, const struct shares *y, struct arena *a, struct shares *out,
                    struct fault *f)
{
    struct share *rows = NEW(a, struct share, (size_t)x->n + y->n + 1);
    uint32_t i = 0, j = 0, n = 0;
    bool over = false;

    if (!rows)
        return arena_error(a, f);
    while (i < x->n || j < y->n) {
        bool left = j == y->n || (i < x->n && x->rows[i].function <= y->rows[j].function);
        bool both = left && j < y->n && i < x->n && x->rows[i].function == y->rows[j].function;
        rows[n] = left ? x->rows[i++] : y->rows[j++];
        if (both) {
            rows[n].self = add_sat(rows[n].self, y->rows[j].self, &over);
            rows[n].total = add_sat(rows[n].total, y->rows[j++].total, &over);
        }
        n++;
    }
    *out = (struct shares){rows, n, add_sat(x->total, y->total, &over), x->check + y->check};
    return E_OK;
}

void shares_pack(const struct shares *s, struct buf *out)
{
    pack_u64(out, s->n);
    pack_i64(out, s->total);
    pack_ids(out, &s->check, 1);
    for (uint32_t i = 0; i < s->n; i++)
        pack_ids(out, &s->rows[i].function, 1);
    for (uint32_t i = 0; i < s->n; i++) {
        pack_i64(out, s->rows[i].self);
        pack_i64(out, s->rows[i].total);
    }
}

enum err shares_unpack(struct str packed, struct arena *a, struct shares *out, struct fault *f)
{
    struct unpack u = unpack_of(packed);

    out->n = unpack_count(&u, sizeof(uint64_t) + 2);
    out->total = unpack_i64(&u);
    unpack_ids(&u, &out->check, 1);
    out->rows = NEW(a, struct share, (size_t)out->n + 1);
    if (!out->rows)
        return arena_error(a, f);
    for (uint32_t i = 0; i < out->n; i++)
        unpack_ids(&u, &out->rows[i].function, 1);
    for (uint32_t i = 0; i < out->n; i++) {
        out->rows[i].self = unpack_i64(&u);
        out->rows[i].total = unpack_i64(&u);
        if (i && out->rows[i].function <= out->rows[i - 1].function)
            u.bad = true;
    }
    if (u.bad || u.p != u.end)
        return fault_set(f, E_BAD_INPUT, "damaged function shares");
    return E_OK;
}

/* The finaliser of splitmix64, chained. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint64_t share_check(uint64_t boot, uint64_t group, uint16_t place)
{
    return mix(mix(boot + UINT64_C(0x9e3779b97f4a7c15)) + (group << 16 | place));
}
