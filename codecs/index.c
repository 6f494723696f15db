/* Growth of the open-addressing index, and of the arena arrays that it points into. */
#include "codecs/index.h"
#include "codecs/vec.h"

enum { SLOTS_MIN = 32 };

struct any_vec {
    void *p;
    uint32_t n, cap;
};

bool vec_grow(struct arena *a, void *vec, size_t size, size_t align, size_t more)
{
    struct any_vec v;

    memcpy(&v, vec, sizeof v);
    size_t want = (size_t)v.n + more, cap = (size_t)v.cap + v.cap / 2 + 8;
    if (cap < want)
        cap = want;
    if (cap > UINT32_MAX - 1)
        cap = want <= UINT32_MAX - 1 ? UINT32_MAX - 1 : SIZE_MAX / size; /* the latter fails by the arena's limit */
    void *p = arena_grow(a, v.p, size, align, v.cap, cap);
    if (!p)
        return false;
    v.p = p;
    v.cap = (uint32_t)cap;
    memcpy(vec, &v, sizeof v);
    return true;
}

static void place(uint64_t *slots, uint32_t mask, uint32_t home, uint64_t slot)
{
    while (slots[home & mask])
        home++;
    slots[home & mask] = slot;
}

static bool resize(struct index *x, struct arena *a, uint32_t n_slots)
{
    uint64_t *slots = NEW(a, uint64_t, n_slots);

    if (!slots)
        return false;
    for (uint32_t i = 0; x->slots && i <= x->mask; i++)
        if (x->slots[i])
            place(slots, n_slots - 1, (uint32_t)(x->slots[i] >> 32), x->slots[i]);
    x->slots = slots;
    x->mask = n_slots - 1;
    return true;
}

bool index_reserve(struct index *x, struct arena *a, uint32_t n)
{
    uint64_t slots = x->slots ? (uint64_t)x->mask + 1 : SLOTS_MIN;

    while (slots < (uint64_t)n * 2)
        slots *= 2;
    if (x->slots && slots == (uint64_t)x->mask + 1)
        return true;
    if (slots > UINT32_MAX)
        return false;
    return resize(x, a, (uint32_t)slots);
}

bool index_add(struct index *x, struct arena *a, uint64_t hash, uint32_t at)
{
    if (!index_reserve(x, a, x->n + 1))
        return false;
    uint32_t tag = (uint32_t)(hash >> 32);
    place(x->slots, x->mask, tag, (uint64_t)tag << 32 | (at + 1));
    x->n++;
    return true;
}
