/* Open addressing; ids are keyed hashes already. */
#include "backends/pg_names.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 64 };

static size_t slot_of(const struct pg_names *t, int64_t id)
{
    size_t i = (size_t)((uint64_t)id ^ (uint64_t)id >> 29) & (t->cap - 1);

    while (t->slots[i] && t->slots[i]->id != id)
        i = (i + 1) & (t->cap - 1);
    return i;
}

static bool grow(struct pg_names *t)
{
    struct pg_names big = {.n = t->n, .cap = t->cap ? t->cap * 2 : FIRST_SLOTS};

    big.slots = calloc(big.cap, sizeof(struct pg_name *));
    if (!big.slots)
        return false;
    for (size_t i = 0; i < t->cap; i++)
        if (t->slots[i])
            big.slots[slot_of(&big, t->slots[i]->id)] = t->slots[i];
    free(t->slots);
    *t = big;
    return true;
}

struct pg_name *pg_names_find(const struct pg_names *t, int64_t id)
{
    return t->cap ? t->slots[slot_of(t, id)] : NULL;
}

struct pg_name *pg_names_add(struct pg_names *t, struct arena *a, int64_t id)
{
    struct pg_name *e = NEW(a, struct pg_name, 1);

    if (!e || (t->n * 2 >= t->cap && !grow(t)))
        return NULL;
    e->id = id;
    t->slots[slot_of(t, id)] = e;
    t->n++;
    return e;
}

void pg_names_free(struct pg_names *t)
{
    free(t->slots);
    *t = (struct pg_names){0};
}
