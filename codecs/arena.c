/* Bump memory with a limit. Whole blocks are charged, so that the memory ledger counts what is really held. */
#include "codecs/base.h"

#include <stdlib.h>

enum { BLOCK_BYTES = 64 * 1024, LARGE_BYTES = BLOCK_BYTES / 4 };

/* A block of shared small pieces, or one large piece. Lives on its arena's doubly linked list. */
struct block {
    struct block *prev, *next;
    size_t bytes; /* with this header */
    size_t pad;
};
_Static_assert(sizeof(struct block) % _Alignof(max_align_t) == 0, "pieces behind the header are aligned");

struct arena {
    struct block blocks;        /* list head */
    char *at, *end;             /* free part of the newest shared block */
    size_t used, limit, wanted; /* wanted: in all, by what went over the limit */
    bool over_limit;
};

struct arena *arena_new(size_t limit_bytes)
{
    struct arena *a = calloc(1, sizeof *a);

    if (!a)
        return NULL;
    a->blocks.prev = a->blocks.next = &a->blocks;
    a->limit = limit_bytes;
    return a;
}

void arena_free(struct arena *a)
{
    if (!a)
        return;
    for (struct block *b = a->blocks.next, *next; b != &a->blocks; b = next) {
        next = b->next;
        free(b);
    }
    free(a);
}

static bool charge(struct arena *a, size_t bytes)
{
    if (bytes <= a->limit - a->used)
        return true;
    a->over_limit = true;
    a->wanted = bytes < SIZE_MAX - a->used ? a->used + bytes : SIZE_MAX;
    return false;
}

static void link_block(struct arena *a, struct block *b, size_t bytes)
{
    b->bytes = bytes;
    b->next = a->blocks.next;
    b->prev = &a->blocks;
    b->next->prev = b->prev->next = b;
    a->used += bytes;
}

static struct block *block_new(struct arena *a, size_t payload)
{
    size_t bytes = payload + sizeof(struct block);

    if (bytes < payload || !charge(a, bytes))
        return NULL;
    struct block *b = malloc(bytes);
    if (b)
        link_block(a, b, bytes);
    return b;
}

static void *alloc_large(struct arena *a, size_t bytes)
{
    struct block *b = block_new(a, bytes);
    return b ? memset(b + 1, 0, bytes) : NULL;
}

void *arena_alloc(struct arena *a, size_t size, size_t align, size_t n)
{
    size_t bytes;

    if (__builtin_mul_overflow(size, n, &bytes)) {
        a->over_limit = true;
        a->wanted = SIZE_MAX;
        return NULL;
    }
    if (bytes >= LARGE_BYTES)
        return alloc_large(a, bytes);
    size_t pad = -(uintptr_t)a->at & (align - 1);
    if (!a->at || bytes + pad > (size_t)(a->end - a->at)) {
        struct block *b = block_new(a, BLOCK_BYTES - sizeof *b);
        if (!b)
            return NULL;
        a->at = (char *)(b + 1);
        a->end = (char *)b + BLOCK_BYTES;
        pad = 0;
    }
    void *p = memset(a->at + pad, 0, bytes);
    a->at += pad + bytes;
    return p;
}

/* A large piece grows in place of its block: nothing of the old one stays behind. */
static void *grow_large(struct arena *a, void *old, size_t old_bytes, size_t new_bytes)
{
    struct block *b = (struct block *)old - 1;
    size_t bytes = new_bytes + sizeof *b;

    if (bytes < new_bytes || !charge(a, bytes - b->bytes))
        return NULL;
    struct block *moved = realloc(b, bytes);
    if (!moved)
        return NULL;
    moved->prev->next = moved->next->prev = moved;
    a->used += bytes - moved->bytes;
    moved->bytes = bytes;
    memset((char *)(moved + 1) + old_bytes, 0, new_bytes - old_bytes);
    return moved + 1;
}

void *arena_grow(struct arena *a, void *old, size_t size, size_t align, size_t old_n, size_t new_n)
{
    size_t new_bytes;

    ASSERT(new_n >= old_n);
    if (__builtin_mul_overflow(size, new_n, &new_bytes)) {
        a->over_limit = true;
        a->wanted = SIZE_MAX;
        return NULL;
    }
    if (old && size * old_n >= LARGE_BYTES)
        return grow_large(a, old, size * old_n, new_bytes);
    void *p = arena_alloc(a, size, align, new_n);
    if (p && old)
        memcpy(p, old, size * old_n);
    return p;
}

size_t arena_used(const struct arena *a)
{
    return a->used + sizeof *a;
}

bool arena_over_limit(const struct arena *a)
{
    return a->over_limit;
}

bool arena_str(struct arena *a, struct str in, struct str *out)
{
    char *p = NEW(a, char, in.len + 1);

    if (!p)
        return false;
    if (in.len)
        memcpy(p, in.p, in.len);
    *out = (struct str){p, in.len};
    return true;
}

enum err arena_error(const struct arena *a, struct fault *f)
{
    if (!a->over_limit)
        return fault_set(f, E_NO_MEMORY, NULL);
    return fault_set(f, E_PROFILE_TOO_LARGE, "profile needs more than limits.decoded (%zu bytes) of memory: %zu so far",
                     a->limit, a->wanted);
}
