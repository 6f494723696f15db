/*
 * Counting once (design.md 6). Every attempt to store a profile is a row; rows of one content id are retries of one
 * upload, or byte-equal siblings. Of them max(1, told) count; just 1 if the payload has an identity of its own.
 *
 * Pure: the store fills the rows of its selection, asks which share a content id, fetches the marks of those only, and
 * lets choose.
 */
#ifndef BACKENDS_ONCE_H
#define BACKENDS_ONCE_H

#include "backends/backend.h"

struct once_row {
    struct hash128 content_id;
    struct attempt attempt;
    int64_t time_ns;
    bool identity;
    bool told;     /* by the marks; looked at only where `repeated` */
    bool repeated; /* set by once_find */
    bool counts;   /* set by once_choose */
    /* The store's own, carried along by the sorting. */
    uint32_t file;
    int64_t id, series_id;
    bool near; /* only looked at in choosing */
    bool hour; /* stands for an hour */
};

/* Sorts by content id, then time, then attempt; sets `repeated`. Returns how many rows are. */
size_t once_find(struct once_row *rows, size_t n);

/*
 * After once_find and the marks: sets `counts`. The told ones count (the first of them where there is an identity);
 * where nobody was told, the first row does. So the choice depends on the rows alone, not on who asks.
 */
void once_choose(struct once_row *rows, size_t n);

/* Earlier time first, then attempt. The order in which profiles are listed. */
int once_order(const struct once_row *a, const struct once_row *b);

#endif
