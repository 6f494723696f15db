/* The series and sets of sample types that a scan has met, by their ids: each is fetched, and asked for, once. */
#ifndef BACKENDS_PG_NAMES_H
#define BACKENDS_PG_NAMES_H

#include "backends/reader.h"

struct pg_name {
    int64_t id;
    bool wanted;               /* of a series: by the selection */
    uint32_t taken, dirty;     /* of a service: hours of the day, a bit each (pg_scan_hours.c) */
    struct series series;      /* a series */
    struct sample_type *types; /* or a set of types */
    uint32_t n_types;
};

/* All zero is an empty table. Entries live in the arena of whoever adds them. */
struct pg_names {
    struct pg_name **slots;
    size_t n, cap;
};
struct pg_name *pg_names_find(const struct pg_names *t, int64_t id);                      /* NULL: not met yet */
struct pg_name *pg_names_add(struct pg_names *t, struct arena *a, int64_t id) MUST_CHECK; /* NULL: no memory */
void pg_names_free(struct pg_names *t);

#endif
