/*
 * What sample types mean: one table (codecs/types.def), read by decoding, by reading and by the documentation.
 * Source: design.md 4, product.md F7 and F8, protocol.md 1.5.
 */
#ifndef CODECS_TYPES_H
#define CODECS_TYPES_H

#include "codecs/base.h"

enum aggregation { AGG_SUM, AGG_AVERAGE };

/* Group shown to people ("CPU time", "memory", ..., "Other") and how a window of it is read. `type` as sent. */
const char *type_group(struct str type);
enum aggregation type_aggregation(struct str type);
/* Rank of a type for "primary" (cpu ns, wall, inuse_space, alloc_space, then anything): smaller wins, equal keeps
 * order. */
int type_primary_rank(struct str type, struct str unit);

/* "ns", "us", "microseconds", "s", "kB", ... to its base unit and factor: nanoseconds, bytes; anything else is itself,
 * factor 1. */
struct unit {
    struct str name; /* static storage, or the argument itself */
    int64_t factor;
};
struct unit unit_normal(struct str unit);
int64_t unit_scale(int64_t value, int64_t factor, bool *saturated);

/* A known last part of an application name of the text formats (cpu, wall, inuse_space, ...): protocol.md 1.5. */
struct suffix {
    const char *suffix, *name, *type, *unit; /* name is __name__ */
    bool timed;                              /* count x period, period type cpu nanoseconds */
};
const struct suffix *suffix_find(struct str last_part); /* NULL: not a type */

#endif
