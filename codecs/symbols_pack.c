/*
 * The symbols of one profile as bytes, ids included, and back. The counts come first, so that a reader knows its memory
 * before it begins; strings of what was read point into one copy of the bytes.
 */
#include "codecs/symbols.h"

#include <stdlib.h>

#include "codecs/pack.h"

enum { SAME_SYSTEM_NAME = 1, SAME_FILE = 2 }; /* as the name; as the function's before */

static void pack_functions(struct buf *b, const struct symbols *s)
{
    struct str file = {"", 0};

    for (uint32_t i = 0; i < s->n_functions; i++) {
        const struct function *f = &s->functions[i];
        unsigned same =
            (str_eq(f->system_name, f->name) ? SAME_SYSTEM_NAME : 0) | (str_eq(f->file, file) ? SAME_FILE : 0);

        pack_u64(b, same);
        pack_str(b, f->name);
        if (!(same & SAME_SYSTEM_NAME))
            pack_str(b, f->system_name);
        if (!(same & SAME_FILE))
            pack_str(b, f->file);
        pack_i64(b, f->start_line);
        file = f->file;
    }
}

void symbols_pack(const struct symbols *s, struct buf *b)
{
    uint32_t refs = s->n_stacks ? s->stack_at[s->n_stacks] : 0;

    pack_u64(b, s->n_mappings);
    pack_u64(b, s->n_functions);
    pack_u64(b, s->n_frames);
    pack_u64(b, s->n_stacks);
    pack_u64(b, refs);
    for (uint32_t i = 0; i < s->n_mappings; i++) {
        const struct mapping *m = &s->mappings[i];

        pack_str(b, m->file);
        pack_str(b, m->build_id);
        pack_u64(b, m->start);
        pack_u64(b, m->limit);
        pack_u64(b, m->offset);
    }
    pack_functions(b, s);
    for (uint32_t i = 0; i < s->n_frames; i++) {
        const struct frame *f = &s->frames[i];

        pack_u64(b, f->function == PROFILE_NONE ? 0 : (uint64_t)f->function + 1);
        pack_u64(b, f->mapping == PROFILE_NONE ? 0 : (uint64_t)f->mapping + 1);
        pack_i64(b, f->line);
        pack_i64(b, f->column);
        pack_u64(b, f->address);
        pack_u64(b, f->flags);
    }
    pack_ids(b, s->frame_ids, s->n_frames);
    pack_ids(b, s->stack_ids, s->n_stacks);
    for (uint32_t i = 0; i < s->n_stacks; i++)
        pack_u64(b, s->stack_at[i + 1] - s->stack_at[i]);
    for (uint32_t i = 0; i < refs; i++)
        pack_u64(b, s->stack_frames[i]);
}

static void read_mappings(struct unpack *u, struct symbols *s)
{
    for (uint32_t i = 0; i < s->n_mappings; i++) {
        struct mapping *m = &s->mappings[i];

        m->file = unpack_str(u);
        m->build_id = unpack_str(u);
        m->start = unpack_u64(u);
        m->limit = unpack_u64(u);
        m->offset = unpack_u64(u);
    }
}

static void read_functions(struct unpack *u, struct symbols *s)
{
    struct str file = {"", 0};

    for (uint32_t i = 0; i < s->n_functions; i++) {
        struct function *f = &s->functions[i];
        uint64_t same = unpack_u64(u);

        f->name = unpack_str(u);
        f->system_name = same & SAME_SYSTEM_NAME ? f->name : unpack_str(u);
        f->file = same & SAME_FILE ? file : unpack_str(u);
        f->start_line = unpack_i64(u);
        file = f->file;
    }
}

/* What may be missing is written plus one. */
static uint32_t read_index(struct unpack *u, uint32_t n)
{
    uint32_t i = unpack_below(u, (uint64_t)n + 1);

    return i ? i - 1 : PROFILE_NONE;
}

static void read_frames(struct unpack *u, struct symbols *s)
{
    for (uint32_t i = 0; i < s->n_frames; i++) {
        struct frame *f = &s->frames[i];

        f->function = read_index(u, s->n_functions);
        f->mapping = read_index(u, s->n_mappings);
        f->line = unpack_i64(u);
        f->column = unpack_i64(u);
        f->address = unpack_u64(u);
        f->flags = unpack_below(u, UINT32_MAX);
    }
    unpack_ids(u, s->frame_ids, s->n_frames);
}

static void read_stacks(struct unpack *u, struct symbols *s, uint32_t refs)
{
    unpack_ids(u, s->stack_ids, s->n_stacks);
    s->stack_at[0] = 0;
    for (uint32_t i = 0; i < s->n_stacks; i++)
        s->stack_at[i + 1] = s->stack_at[i] + unpack_below(u, (uint64_t)refs - s->stack_at[i] + 1);
    u->bad |= s->stack_at[s->n_stacks] != refs;
    for (uint32_t i = 0; i < refs && !u->bad; i++)
        s->stack_frames[i] = unpack_below(u, s->n_frames);
}

/* Largest alignment first, so that no piece needs padding; the bytes that strings point into last. NULL: no memory. */
static struct symbols *make_room(const struct symbols *n, uint32_t refs, struct unpack *u)
{
    size_t left = (size_t)(u->end - u->p);
    size_t bytes = sizeof *n + sizeof *n->mappings * n->n_mappings + sizeof *n->functions * n->n_functions +
                   (sizeof *n->frames + 8) * (size_t)n->n_frames + 8 * (size_t)n->n_stacks +
                   4 * ((size_t)n->n_stacks + 1 + refs) + left;
    struct symbols *s = malloc(bytes);

    if (!s)
        return NULL;
    *s = *n;
    s->bytes = bytes;
    s->mappings = (struct mapping *)(void *)(s + 1);
    s->functions = (struct function *)(void *)(s->mappings + n->n_mappings);
    s->frames = (struct frame *)(void *)(s->functions + n->n_functions);
    s->frame_ids = (uint64_t *)(void *)(s->frames + n->n_frames);
    s->stack_ids = s->frame_ids + n->n_frames;
    s->stack_at = (uint32_t *)(void *)(s->stack_ids + n->n_stacks);
    s->stack_frames = s->stack_at + n->n_stacks + 1;
    char *strings = memcpy((char *)(s->stack_frames + refs), u->p, left);
    *u = unpack_of((struct str){strings, left});
    return s;
}

enum err symbols_unpack(struct str bytes, struct symbols **out, struct fault *f)
{
    struct unpack u = unpack_of(bytes);
    struct symbols n = {0}, *s = NULL;
    uint32_t refs;

    n.n_mappings = unpack_count(&u, 5);
    n.n_functions = unpack_count(&u, 3);
    n.n_frames = unpack_count(&u, 14);
    n.n_stacks = unpack_count(&u, 9);
    refs = unpack_count(&u, 1);
    if (!u.bad && !(s = make_room(&n, refs, &u)))
        return fault_set(f, E_NO_MEMORY, NULL);
    if (!u.bad) {
        read_mappings(&u, s);
        read_functions(&u, s);
        read_frames(&u, s);
        read_stacks(&u, s, refs);
    }
    if (!u.bad && u.p == u.end) {
        *out = s;
        return E_OK;
    }
    symbols_free(s);
    return fault_set(f, E_BAD_INPUT, "not the symbols of a profile");
}
