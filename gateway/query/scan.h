/* Goes through the stored profiles of a selection, and through the samples that count where a selector reaches into
 * them. */
#ifndef GATEWAY_QUERY_SCAN_H
#define GATEWAY_QUERY_SCAN_H

#include "gateway/query/ask.h"

/* One profile that counts. Valid during the visit. */
struct seen_profile {
    const struct stored *stored;
    const struct record_view *view; /* NULL unless bodies were asked for or needed */
    const bool *keep;               /* by label set: which samples count; NULL: all */
};
typedef enum err (*scan_visit)(void *ctx, const struct seen_profile *p); /* not E_OK ends the scan with it */

struct scan_spec {
    bool bodies, newest_first;
    struct str type; /* only profiles with this type: an id or a sample type's name; empty: any */
    scan_visit visit;
    void *ctx;
    bool (*time_match)(void *time_ctx, int64_t time_ns); /* NULL: any time in the window */
    void *time_ctx;
};
/* E_NOT_FOUND where one profile was asked for and is not there. Faults are in a->fault. */
enum err scan_profiles(struct ask *a, const struct scan_spec *spec) MUST_CHECK;

/* Of one profile: the samples that count, and the sum of a type over them. */
uint64_t scan_samples(const struct seen_profile *p);
int64_t scan_total(const struct seen_profile *p, uint32_t type);
bool scan_has_type(const struct sample_type *t, struct str wanted); /* by id or by name */

/* What answers say about their selection (api.md): fed profile by profile, oldest first for `covered`. */
struct tally {
    uint64_t profiles, samples, series;
    int64_t covered_ns, edge_ns; /* the part of the window under some profile so far, and where it ends */
    int64_t first_ns, last_ns, duration_ns;
    struct idset *ids;
};
enum err tally_open(struct tally *t, struct ask *a) MUST_CHECK;
enum err tally_add(struct tally *t, struct ask *a, const struct seen_profile *p) MUST_CHECK;
void tally_close(struct tally *t);
/* 0..1 */
double tally_covered(const struct tally *t, const struct ask *a);

#endif
