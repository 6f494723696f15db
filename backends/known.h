/*
 * What this writer has stored already: a set of symbol ids per (class, day, service), so that a block holds only what
 * is new. Bounded: the sets used longest ago are forgotten whole, which costs a repeated block and nothing else. One
 * thread.
 */
#ifndef BACKENDS_KNOWN_H
#define BACKENDS_KNOWN_H

#include "codecs/symbols.h"

struct known_key {
    uint16_t class_days;
    int32_t day;
    int64_t service;
};

struct known;
struct known *known_new(size_t max_bytes) MUST_CHECK; /* NULL: no memory */
void known_free(struct known *k);                     /* NULL is fine */

/* NULL: nothing known. Valid until the next call. */
const struct idset *known_get(struct known *k, struct known_key key);
/* After the commit of these symbols. Without memory they stay unknown. */
void known_add(struct known *k, struct known_key key, const struct symbols *const *list, uint32_t n);
/* All services of a (class, day) whose file is gone or in doubt. */
void known_forget(struct known *k, uint16_t class_days, int32_t day);
size_t known_bytes(const struct known *k);

#endif
