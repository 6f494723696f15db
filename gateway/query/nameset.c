/* Open addressing over keyed hashes: clients choose the strings, so they must not choose the slots. */
#include "gateway/query/nameset.h"

enum { FIRST_CAP = 64, FREE = UINT32_MAX };

static uint32_t *find_slot(const struct ask *a, const struct nameset *s, struct str text)
{
    uint64_t at = hash64(&a->key, text.p, text.len);
    while (s->slots[at & (s->n_slots - 1)] != FREE && !str_eq(s->list[s->slots[at & (s->n_slots - 1)]], text))
        at++;
    return &s->slots[at & (s->n_slots - 1)];
}

static enum err grow(struct ask *a, struct nameset *s)
{
    uint32_t cap = s->cap ? s->cap * 2 : FIRST_CAP;
    struct str *list = GROW(a->arena, s->list, struct str, s->cap, cap);
    uint32_t *slots = list ? NEW(a->arena, uint32_t, cap * 2) : NULL;
    if (!slots)
        return ask_no_memory(a);
    memset(slots, 0xff, cap * 2 * sizeof(*slots));
    *s = (struct nameset){list, slots, s->n, cap, cap * 2};
    for (uint32_t i = 0; i < s->n; i++)
        *find_slot(a, s, s->list[i]) = i;
    return E_OK;
}

enum err nameset_add(struct nameset *s, struct ask *a, struct str text, bool copy, uint32_t *place)
{
    if (s->n == s->cap && grow(a, s) != E_OK)
        return a->fault.err;
    uint32_t *slot = find_slot(a, s, text);
    if (*slot == FREE) {
        s->list[s->n] = text;
        if (copy && !arena_str(a->arena, text, &s->list[s->n]))
            return ask_no_memory(a);
        *slot = s->n++;
    }
    *place = *slot;
    return E_OK;
}
