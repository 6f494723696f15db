/* Out of a symbol table again: some of its stacks, as the symbols of a profile. */
#include "codecs/idmap.h"
#include "codecs/symtab.h"

/* A profile that is nothing but symbols, as it grows: frames, functions and mappings are numbered as they are met. */
struct pick {
    struct idmap frames, functions, mappings; /* number by address */
    struct profile p;
    const struct symframe **stack; /* room for the deepest */
};

static uint32_t number(struct idmap *m, const void *address, uint32_t next)
{
    return idmap_add(m, (uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15), next);
}

/* PROFILE_NONE for NULL, and without memory: *ok tells. */
static uint32_t pick_mapping(struct pick *k, const struct mapping *m, bool *ok)
{
    uint32_t at = m ? number(&k->mappings, m, k->p.n_mappings) : PROFILE_NONE;

    if (m && at == k->p.n_mappings)
        k->p.mappings[k->p.n_mappings++] = *m;
    *ok &= !m || at != IDMAP_NONE;
    return at;
}

static uint32_t pick_function(struct pick *k, const struct function *f, bool *ok)
{
    uint32_t at = f ? number(&k->functions, f, k->p.n_functions) : PROFILE_NONE;

    if (f && at == k->p.n_functions)
        k->p.functions[k->p.n_functions++] = *f;
    *ok &= !f || at != IDMAP_NONE;
    return at;
}

static uint32_t pick_frame(struct pick *k, const struct symframe *f, bool *ok)
{
    uint32_t at = number(&k->frames, f, k->p.n_frames);

    if (at == k->p.n_frames)
        k->p.frames[k->p.n_frames++] = (struct frame){
            .function = pick_function(k, f->function, ok),
            .mapping = pick_mapping(k, f->mapping, ok),
            .line = f->line,
            .column = f->column,
            .address = f->address,
            .flags = f->flags,
        };
    *ok &= at != IDMAP_NONE;
    return at;
}

static bool pick_stacks(struct pick *k, const struct symtab *t, const uint64_t *stacks, uint32_t n)
{
    bool ok = true;

    for (uint32_t i = 0; ok && i < n; i++) {
        uint32_t depth = symtab_stack(t, stacks[i], k->stack, UINT32_MAX), at = k->p.stack_at[k->p.n_stacks];

        if (depth == SYMTAB_UNKNOWN)
            continue;
        for (uint32_t j = 0; ok && j < depth; j++)
            k->p.stack_frames[at + j] = pick_frame(k, k->stack[j], &ok);
        k->p.stack_at[++k->p.n_stacks] = at + depth;
    }
    return ok;
}

/* What the arrays have to hold at most. */
struct need {
    size_t refs, depth;
};
static struct need measure(const struct symtab *t, const uint64_t *stacks, uint32_t n)
{
    struct need need = {0};

    for (uint32_t i = 0; i < n; i++) {
        uint32_t depth = symtab_stack(t, stacks[i], NULL, 0);

        need.refs += depth == SYMTAB_UNKNOWN ? 0 : depth;
        if (depth != SYMTAB_UNKNOWN && depth > need.depth)
            need.depth = depth;
    }
    return need;
}

static bool make_room(struct pick *k, struct arena *a, const struct symtab *t, struct need need, uint32_t n)
{
    size_t each = need.refs < t->n_frames + 1 ? need.refs : t->n_frames + 1; /* one for [unknown] */

    k->p.frames = NEW(a, struct frame, each);
    k->p.functions = NEW(a, struct function, each);
    k->p.mappings = NEW(a, struct mapping, each);
    k->p.stack_at = NEW(a, uint32_t, (size_t)n + 1);
    k->p.stack_frames = NEW(a, uint32_t, need.refs);
    k->stack = NEW(a, const struct symframe *, need.depth);
    if (!k->p.frames || !k->p.functions || !k->p.mappings || !k->p.stack_at || !k->p.stack_frames || !k->stack)
        return false;
    k->p.stack_at[0] = 0;
    return true;
}

struct symbols *symtab_pick(const struct symtab *t, const uint64_t *stacks, uint32_t n, const struct hash_key *key)
{
    struct need need = measure(t, stacks, n);
    struct arena *a = need.refs < UINT32_MAX ? arena_new(SIZE_MAX) : NULL;
    struct pick k = {0};
    struct symbols *s = NULL;

    if (a && make_room(&k, a, t, need, n) && pick_stacks(&k, t, stacks, n))
        s = symbols_seal(&k.p, key);
    idmap_free(&k.frames);
    idmap_free(&k.functions);
    idmap_free(&k.mappings);
    arena_free(a);
    return s;
}
