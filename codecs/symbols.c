/* Sealing the symbols of a profile: ids for its frames and stacks, and a copy of everything in one piece of memory. */
#include "codecs/symbols.h"

#include <stdlib.h>

enum { SEEN = 512 };

/* A string met lately; many functions share one file, and most share name and system name. */
struct seen {
    const char *p, *copy;
    size_t len;
    uint64_t hash;
};

/* Copies strings to `at`, or only counts their bytes in `used` while `at` is NULL; both runs see the same strings
 * twice. */
struct copier {
    const struct hash_key *key;
    char *at;
    size_t used;
    struct seen seen[SEEN];
};

static uint64_t keep(struct copier *c, struct str *s)
{
    struct seen *e = &c->seen[((uintptr_t)s->p ^ (uintptr_t)s->p >> 9 ^ s->len) % SEEN];

    if (s->len == 0) {
        s->p = "";
        return 0;
    }
    if (e->p != s->p || e->len != s->len) {
        *e = (struct seen){s->p, NULL, s->len, 0};
        if (c->at) {
            e->copy = memcpy(c->at + c->used, s->p, s->len);
            e->hash = hash64(c->key, s->p, s->len);
        }
        c->used += s->len;
    }
    s->p = e->copy;
    return e->hash;
}

static size_t string_bytes(const struct profile *p, struct copier *c)
{
    for (uint32_t i = 0; i < p->n_mappings; i++) {
        struct mapping m = p->mappings[i];
        keep(c, &m.file);
        keep(c, &m.build_id);
    }
    for (uint32_t i = 0; i < p->n_functions; i++) {
        struct function f = p->functions[i];
        keep(c, &f.name);
        keep(c, &f.system_name);
        keep(c, &f.file);
    }
    return c->used;
}

static void seal_mappings(struct symbols *s, const struct profile *p, struct copier *c, uint64_t *hashes)
{
    for (uint32_t i = 0; i < p->n_mappings; i++) {
        struct mapping *m = &s->mappings[i];
        *m = p->mappings[i];
        uint64_t of[] = {keep(c, &m->file), keep(c, &m->build_id)};
        hashes[i] = hash64(c->key, of, sizeof of);
    }
}

static void seal_functions(struct symbols *s, const struct profile *p, struct copier *c, uint64_t *hashes)
{
    for (uint32_t i = 0; i < p->n_functions; i++) {
        struct function *f = &s->functions[i];
        *f = p->functions[i];
        uint64_t name = keep(c, &f->name), system_name = keep(c, &f->system_name), file = keep(c, &f->file);
        uint64_t of[] = {name, system_name, file, (uint64_t)f->start_line};
        hashes[i] = hash64(c->key, of, sizeof of);
    }
}

/* 0 is kept for the empty stack. */
static uint64_t nonzero(uint64_t id)
{
    return id ? id : 1;
}

static void seal_frames(struct symbols *s, const struct profile *p, const struct hash_key *k, const uint64_t *functions,
                        const uint64_t *mappings)
{
    if (p->n_frames)
        memcpy(s->frames, p->frames, sizeof *p->frames * p->n_frames);
    for (uint32_t i = 0; i < p->n_frames; i++) {
        const struct frame *f = &p->frames[i];
        uint64_t of[] = {f->function == PROFILE_NONE ? 0 : functions[f->function],
                         f->mapping == PROFILE_NONE ? 0 : mappings[f->mapping],
                         (uint64_t)f->line,
                         (uint64_t)f->column,
                         f->address,
                         f->flags};
        s->frame_ids[i] = nonzero(hash64(k, of, sizeof of));
    }
}

static void seal_stacks(struct symbols *s, const struct profile *p, const struct hash_key *k, uint64_t *of)
{
    memcpy(s->stack_at, p->stack_at, sizeof *p->stack_at * (p->n_stacks + 1));
    if (p->stack_at[p->n_stacks])
        memcpy(s->stack_frames, p->stack_frames, sizeof *p->stack_frames * p->stack_at[p->n_stacks]);
    for (uint32_t i = 0; i < p->n_stacks; i++) {
        uint32_t from = p->stack_at[i], n = p->stack_at[i + 1] - from;
        for (uint32_t j = 0; j < n; j++)
            of[j] = s->frame_ids[p->stack_frames[from + j]];
        s->stack_ids[i] = n ? nonzero(hash64(k, of, n * sizeof *of)) : 0;
    }
}

/* Words of scratch: a hash per function and mapping, later the frame ids of the deepest stack. */
static size_t scratch_words(const struct profile *p)
{
    size_t n = (size_t)p->n_functions + p->n_mappings + 1;

    for (uint32_t i = 0; i < p->n_stacks; i++)
        if (p->stack_at[i + 1] - p->stack_at[i] > n)
            n = p->stack_at[i + 1] - p->stack_at[i];
    return n;
}

/* Largest alignment first, so that no piece needs padding. */
static void *cut(char **at, size_t size, size_t n)
{
    char *p = *at;

    *at += size * n;
    return p;
}

static struct symbols *symbols_new(const struct profile *p, size_t strings, char **at)
{
    size_t refs = p->n_stacks ? p->stack_at[p->n_stacks] : 0;
    size_t bytes = sizeof(struct symbols) + sizeof(struct mapping) * p->n_mappings +
                   sizeof(struct function) * p->n_functions + (sizeof(struct frame) + 8) * (size_t)p->n_frames +
                   8 * (size_t)p->n_stacks + 4 * ((size_t)p->n_stacks + 1 + refs) + strings;
    struct symbols *s = malloc(bytes);

    if (!s)
        return NULL;
    *at = (char *)(s + 1);
    *s = (struct symbols){.n_mappings = p->n_mappings,
                          .n_functions = p->n_functions,
                          .n_frames = p->n_frames,
                          .n_stacks = p->n_stacks,
                          .bytes = bytes};
    s->mappings = cut(at, sizeof *s->mappings, p->n_mappings);
    s->functions = cut(at, sizeof *s->functions, p->n_functions);
    s->frames = cut(at, sizeof *s->frames, p->n_frames);
    s->frame_ids = cut(at, 8, p->n_frames);
    s->stack_ids = cut(at, 8, p->n_stacks);
    s->stack_at = cut(at, 4, (size_t)p->n_stacks + 1);
    s->stack_frames = cut(at, 4, refs);
    s->stack_at[0] = 0;
    return s;
}

struct symbols *symbols_seal(const struct profile *p, const struct hash_key *k)
{
    struct copier count = {.key = k}, copy = {.key = k};
    uint64_t *scratch = malloc(scratch_words(p) * sizeof *scratch);
    struct symbols *s = scratch ? symbols_new(p, string_bytes(p, &count), &copy.at) : NULL;

    if (s) {
        seal_mappings(s, p, &copy, scratch);
        seal_functions(s, p, &copy, scratch + p->n_mappings);
        seal_frames(s, p, k, scratch + p->n_mappings, scratch);
        if (p->n_stacks)
            seal_stacks(s, p, k, scratch);
    }
    free(scratch);
    return s;
}

void symbols_free(struct symbols *s)
{
    free(s);
}
