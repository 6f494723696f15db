/*
 * How many services and series each project has sent since midnight UTC (limits.services, limits.series): what is known
 * goes on, what is new and one too many is refused by name. Kept by this process alone: another replica, and another
 * day, counts for itself; after a restart those that come first are the known ones.
 */
#ifndef GATEWAY_INGEST_CENSUS_H
#define GATEWAY_INGEST_CENSUS_H

#include "codecs/record.h"

struct census;
struct census *census_new(void) MUST_CHECK; /* NULL: no memory */
void census_free(struct census *c);         /* NULL is fine */

struct census_limits {
    uint32_t services, series; /* 0: as many as come */
};
/* E_OK, and it is known from now on. E_TOO_MANY_SERVICES, E_TOO_MANY_SERIES: f names limit, project and how many there
 * are. Without memory for it a record goes through uncounted. */
enum err census_take(struct census *c, const struct record *r, struct census_limits l, int64_t now_ns,
                     struct fault *f) MUST_CHECK;
size_t census_bytes(const struct census *c);

#endif
