/* A set of 64-bit ids by open addressing. The ids are keyed hashes already, so their own bits spread them. */
#include "codecs/symbols.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 64 };

/* 0 marks a free slot; the id 0 itself is a flag. `slots` is a power of two, or 0 before the first id. */
struct idset {
    uint64_t *ids;
    size_t slots, n;
    bool zero;
};

struct idset *idset_new(void)
{
    return calloc(1, sizeof(struct idset));
}

/* Slot of id, or the free one where it belongs. */
static size_t slot_of(const struct idset *s, uint64_t id)
{
    size_t i = (size_t)(id ^ id >> 32) & (s->slots - 1);

    while (s->ids[i] && s->ids[i] != id)
        i = (i + 1) & (s->slots - 1);
    return i;
}

static bool grow(struct idset *s)
{
    struct idset big = {.slots = s->slots ? s->slots * 2 : FIRST_SLOTS, .n = s->n, .zero = s->zero};

    big.ids = calloc(big.slots, sizeof *big.ids);
    if (!big.ids)
        return false;
    for (size_t i = 0; i < s->slots; i++)
        if (s->ids[i])
            big.ids[slot_of(&big, s->ids[i])] = s->ids[i];
    free(s->ids);
    *s = big;
    return true;
}

bool idset_has(const struct idset *s, uint64_t id)
{
    if (id == 0)
        return s->zero;
    return s->slots && s->ids[slot_of(s, id)] == id;
}

bool idset_add(struct idset *s, uint64_t id)
{
    if (id == 0) {
        s->zero = true;
        return true;
    }
    if ((s->n + 1) * 3 > s->slots * 2 && !grow(s))
        return idset_has(s, id);
    size_t i = slot_of(s, id);
    s->n += s->ids[i] != id;
    s->ids[i] = id;
    return true;
}

size_t idset_count(const struct idset *s)
{
    return s->n + s->zero;
}

size_t idset_bytes(const struct idset *s)
{
    return sizeof *s + s->slots * sizeof *s->ids;
}

void idset_free(struct idset *s)
{
    if (!s)
        return;
    free(s->ids);
    free(s);
}
