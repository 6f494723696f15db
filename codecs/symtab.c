/* Symbols by id, collected from blocks: the answering half. Reading blocks is symtab_add.c. */
#include "codecs/symtab.h"

#include <stdlib.h>

static const struct function unknown_function = {
    .name = {"[unknown]", 9}, .system_name = {"[unknown]", 9}, .file = {"", 0}};
static const struct symframe unknown_frame = {.function = &unknown_function};

struct symtab *symtab_new(void)
{
    struct symtab *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->a = arena_new(SIZE_MAX);
    if (t->a)
        return t;
    free(t);
    return NULL;
}

void symtab_want(struct symtab *t, const struct idset *stacks)
{
    t->wanted = stacks;
}

bool symtab_lacks(const struct symtab *t)
{
    for (size_t i = 0; i < t->n_frames; i++)
        if (!t->frames[i])
            return true;
    return false;
}

uint32_t symtab_stack(const struct symtab *t, uint64_t stack_id, const struct symframe **out, uint32_t cap)
{
    uint32_t node = stack_id ? idmap_get(&t->stack_of, stack_id) : NODE_NONE;

    if (node == NODE_NONE)
        return stack_id ? SYMTAB_UNKNOWN : 0;
    uint32_t depth = t->nodes[node].depth;
    for (uint32_t i = depth; i-- > 0; node = t->nodes[node].parent) {
        const struct symframe *f = t->frames[t->nodes[node].frame];
        if (i < cap)
            out[i] = f ? f : &unknown_frame;
    }
    return depth;
}

const struct symframe *symtab_frame(const struct symtab *t, size_t i)
{
    return i >= t->n_frames ? NULL : t->frames[i] ? t->frames[i] : &unknown_frame;
}

size_t symtab_bytes(const struct symtab *t)
{
    return sizeof *t + arena_used(t->a) + t->frames_cap * sizeof(void *) + t->nodes_cap * sizeof *t->nodes +
           idmap_bytes(&t->frame_of) + idmap_bytes(&t->stack_of);
}

void symtab_free(struct symtab *t)
{
    if (!t)
        return;
    arena_free(t->a);
    free(t->frames);
    free(t->nodes);
    idmap_free(&t->frame_of);
    idmap_free(&t->stack_of);
    free(t);
}
