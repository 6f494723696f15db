/*
 * Open-addressing index: hash -> position in somebody's array. Holds no keys; whoever asks compares. Hashes come from a
 * keyed function, so that a client cannot aim at one slot.
 */
#ifndef CODECS_INDEX_H
#define CODECS_INDEX_H

#include "codecs/base.h"

#define INDEX_NONE UINT32_MAX

/* Zeroed is empty. A slot is (tag, position + 1), 0 is free; the tag, the upper half of the hash, is its home too, so
 * that growing needs no keys. */
struct index {
    uint64_t *slots;
    uint32_t mask, n;
};
struct probe {
    uint32_t at, tag;
};

static inline uint32_t index_next(const struct index *x, struct probe *p)
{
    for (;; p->at++) {
        uint64_t slot = x->slots[p->at & x->mask];
        if (slot == 0)
            return INDEX_NONE;
        if ((uint32_t)(slot >> 32) == p->tag) {
            p->at++;
            return (uint32_t)slot - 1;
        }
    }
}

/* Candidates for a hash: first, then next, until INDEX_NONE. */
static inline uint32_t index_first(const struct index *x, uint64_t hash, struct probe *p)
{
    *p = (struct probe){(uint32_t)(hash >> 32), (uint32_t)(hash >> 32)};
    return x->slots ? index_next(x, p) : INDEX_NONE;
}

/* Adds position `at`, which must be under UINT32_MAX - 1. false: the arena is full. */
bool index_add(struct index *x, struct arena *a, uint64_t hash, uint32_t at) MUST_CHECK;
/* Makes room for n in all at once. */
bool index_reserve(struct index *x, struct arena *a, uint32_t n) MUST_CHECK;

#endif
