/* Numbers by id; see codecs/idmap.h. */
#include "codecs/idmap.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 64 };

/* Ids that were not made by us (a damaged block) may share low bits; a multiplication spreads those as well. */
static size_t first_slot(const struct idmap *m, uint64_t id)
{
    return (size_t)((id * 0x9e3779b97f4a7c15u) >> 20) & m->mask;
}

static struct idmap_slot *slot_of(const struct idmap *m, uint64_t id)
{
    size_t i = first_slot(m, id);

    while (m->slots[i].value1 && m->slots[i].id != id)
        i = (i + 1) & m->mask;
    return &m->slots[i];
}

static bool resize(struct idmap *m, size_t slots)
{
    struct idmap big = {calloc(slots, sizeof *big.slots), slots - 1, m->n};

    if (!big.slots)
        return false;
    for (size_t i = 0; m->slots && i <= m->mask; i++)
        if (m->slots[i].value1)
            *slot_of(&big, m->slots[i].id) = m->slots[i];
    free(m->slots);
    *m = big;
    return true;
}

bool idmap_reserve(struct idmap *m, size_t n)
{
    size_t slots = m->slots ? m->mask + 1 : FIRST_SLOTS;

    while (slots / 3 * 2 <= m->n + n)
        slots *= 2;
    return (m->slots && slots == m->mask + 1) || resize(m, slots);
}

uint32_t idmap_get(const struct idmap *m, uint64_t id)
{
    return m->slots ? slot_of(m, id)->value1 - 1 : IDMAP_NONE;
}

uint32_t idmap_add(struct idmap *m, uint64_t id, uint32_t value)
{
    if (!m->slots || m->n + 1 > m->mask / 3 * 2) {
        if (!idmap_reserve(m, 1))
            return idmap_get(m, id);
    }
    struct idmap_slot *s = slot_of(m, id);
    if (!s->value1) {
        *s = (struct idmap_slot){id, value + 1};
        m->n++;
    }
    return s->value1 - 1;
}

size_t idmap_bytes(const struct idmap *m)
{
    return m->slots ? (m->mask + 1) * sizeof *m->slots : 0;
}

void idmap_free(struct idmap *m)
{
    free(m->slots);
    *m = (struct idmap){0};
}
