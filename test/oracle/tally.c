/* A table of functions and a loop over samples. Not fast, on purpose: short enough to be believed. */
#include "test/oracle/tally.h"

#include "codecs/idmap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct tally *tally_new(struct arena *a)
{
    struct tally *t = NEW(a, struct tally, 1);

    ASSERT(t);
    t->a = a;
    t->n_slots = 64;
    t->slots = NEW(a, uint32_t, t->n_slots);
    ASSERT(t->slots);
    return t;
}

static uint32_t hash_of(struct str name, struct str file)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (uint8_t)name.p[i]) * 16777619u;
    h *= 31;
    for (size_t i = 0; i < file.len; i++)
        h = (h ^ (uint8_t)file.p[i]) * 16777619u;
    return h;
}

static uint32_t *slot_of(const struct tally *t, struct str name, struct str file)
{
    uint32_t at = hash_of(name, file);

    for (;; at++) {
        uint32_t *slot = &t->slots[at & (t->n_slots - 1)];
        if (!*slot || (str_eq(t->rows[*slot - 1].name, name) && str_eq(t->rows[*slot - 1].file, file)))
            return slot;
    }
}

struct tally_row *tally_find(const struct tally *t, struct str name, struct str file)
{
    uint32_t *slot = slot_of(t, name, file);
    return *slot ? &t->rows[*slot - 1] : NULL;
}

static void grow(struct tally *t)
{
    uint32_t cap = t->cap_rows ? t->cap_rows * 2 : 32;

    t->rows = GROW(t->a, t->rows, struct tally_row, t->cap_rows, cap);
    t->cap_rows = cap;
    t->n_slots = cap * 4;
    t->slots = NEW(t->a, uint32_t, t->n_slots);
    ASSERT(t->rows && t->slots);
    for (uint32_t i = 0; i < t->n_rows; i++)
        *slot_of(t, t->rows[i].name, t->rows[i].file) = i + 1;
}

static struct tally_row *row_of(struct tally *t, struct str name, struct str file)
{
    if (t->n_rows == t->cap_rows)
        grow(t);
    uint32_t *slot = slot_of(t, name, file);
    if (!*slot) {
        t->rows[t->n_rows++] = (struct tally_row){.name = name, .file = file};
        *slot = t->n_rows;
    }
    return &t->rows[*slot - 1];
}

void tally_sample(struct tally *t, const struct tally_frame *frames, uint32_t n, const int64_t *values)
{
    t->samples++;
    for (uint32_t k = 0; k < t->n_types; k++)
        t->types[k].total = add_sat(t->types[k].total, values[k], &t->over);
    for (uint32_t i = 0; i < n; i++) {
        struct tally_row *r = row_of(t, frames[i].name, frames[i].file);
        for (uint32_t k = 0; k < t->n_types; k++) {
            if (i == 0)
                r->self[k] = add_sat(r->self[k], values[k], &t->over);
            if (r->stamp != t->samples)
                r->total[k] = add_sat(r->total[k], values[k], &t->over);
        }
        r->stamp = t->samples;
    }
}

static struct tally_frame frame_of(struct arena *a, const struct symbols *s, const struct frame *f)
{
    struct tally_frame out = {{"", 0}, {"", 0}};
    char hex[32];

    if (f->function != PROFILE_NONE)
        return (struct tally_frame){s->functions[f->function].name, s->functions[f->function].file};
    int n = snprintf(hex, sizeof hex, "0x%" PRIx64, f->address);
    ASSERT(arena_str(a, (struct str){hex, (size_t)n}, &out.name));
    if (f->mapping != PROFILE_NONE)
        out.file = s->mappings[f->mapping].file;
    return out;
}

static void add_sample(struct tally *t, const struct record_view *v, const struct symbols *s, uint32_t stack,
                       uint32_t i)
{
    uint32_t from = s->stack_at[stack], n = s->stack_at[stack + 1] - from;
    struct tally_frame *frames = calloc(n + 1, sizeof *frames);
    int64_t values[TALLY_TYPES];

    ASSERT(frames);
    for (uint32_t k = 0; k < n; k++)
        frames[n - 1 - k] = frame_of(t->a, s, &s->frames[s->stack_frames[from + k]]);
    for (uint32_t k = 0; k < t->n_types; k++)
        values[k] = v->values[k][i];
    tally_sample(t, frames, n, values);
    free(frames);
}

struct tally *tally_record(struct arena *a, const struct record *r)
{
    struct tally *t = tally_new(a);
    struct record_view v;
    struct fault f = {0};
    struct idmap stacks = {0};

    ASSERT(record_open(&v, r->body, a, &f) == E_OK);
    t->n_types = v.n_types;
    for (uint32_t k = 0; k < v.n_types; k++) {
        t->types[k].type = v.types[k].type;
        t->types[k].unit = v.types[k].unit;
    }
    for (uint32_t s = 0; s < r->symbols->n_stacks; s++)
        ASSERT(idmap_add(&stacks, r->symbols->stack_ids[s], s) == s);
    for (uint32_t i = 0; i < v.n_samples; i++)
        add_sample(t, &v, r->symbols, idmap_get(&stacks, v.stack_ids[v.sample_stack[i]]), i);
    idmap_free(&stacks);
    for (uint32_t k = 0; k < v.n_types; k++)
        ASSERT(t->types[k].total == v.types[k].total || v.drops.saturated);
    return t;
}

static char words[512];

const char *tally_differs(const struct tally *a, const struct tally *b)
{
    if (a->n_types != b->n_types || a->n_rows != b->n_rows) {
        snprintf(words, sizeof words, "%u types and %u functions, %u and %u", a->n_types, a->n_rows, b->n_types,
                 b->n_rows);
        return words;
    }
    for (uint32_t k = 0; k < a->n_types; k++) {
        if (!str_eq(a->types[k].type, b->types[k].type) || !str_eq(a->types[k].unit, b->types[k].unit) ||
            (a->types[k].total != b->types[k].total && !a->over && !b->over)) {
            snprintf(words, sizeof words, "type %u: %.*s/%.*s %" PRId64 ", %.*s/%.*s %" PRId64, k,
                     STR_ARG(a->types[k].type), STR_ARG(a->types[k].unit), a->types[k].total, STR_ARG(b->types[k].type),
                     STR_ARG(b->types[k].unit), b->types[k].total);
            return words;
        }
    }
    for (uint32_t i = 0; i < a->n_rows; i++) {
        const struct tally_row *x = &a->rows[i], *y = tally_find(b, x->name, x->file);
        for (uint32_t k = 0; k < a->n_types; k++) {
            if (y && ((x->self[k] == y->self[k] && x->total[k] == y->total[k]) || a->over || b->over))
                continue;
            snprintf(words, sizeof words,
                     "function %.*s (%.*s), type %u: self %" PRId64 " total %" PRId64 ", %s%" PRId64 " %" PRId64,
                     STR_ARG(x->name), STR_ARG(x->file), k, x->self[k], x->total[k], y ? "" : "none ",
                     y ? y->self[k] : 0, y ? y->total[k] : 0);
            return words;
        }
    }
    return NULL;
}
