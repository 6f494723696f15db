/* Goes through the stored profiles of a selection, and through the samples that count where a selector reaches into
 * them. */
#ifndef GATEWAY_QUERY_SCAN_H
#define GATEWAY_QUERY_SCAN_H

#include "gateway/query/ask.h"

/* One profile that counts, or an hour of them. Valid during the visit. */
struct seen_profile {
    const struct stored *stored;
    const struct record_view *view; /* NULL unless bodies were asked for or needed */
    const bool *keep;               /* by label set: which samples count; NULL: all */
};
typedef enum err (*scan_visit)(void *ctx, const struct seen_profile *p); /* not E_OK ends the scan with it */

struct scan_spec {
    bool bodies, newest_first;
    bool hours;      /* rows may stand for an hour of profiles each, where the selector allows it */
    struct str type; /* only profiles with this type: an id or a sample type's name; empty: any */
    scan_visit visit;
    void *ctx;
    bool (*time_match)(void *time_ctx, int64_t time_ns); /* NULL: any time in the window */
    void *time_ctx;
};
/* E_NOT_FOUND where one profile was asked for and is not there. Faults are in a->fault. */
enum err scan_profiles(struct ask *a, const struct scan_spec *spec) MUST_CHECK;

/*
 * Where single profiles are gone (retention.raw) the window becomes one of whole hours, or begins where they begin, if
 * the answer needs them; answers say which window they are about. Every scan does it; call it before anything that
 * depends on the window.
 */
void scan_window(struct ask *a, bool hours);

/* In words. An id says nothing of its time, so where profiles have gone before their hours this one may have too. */
enum err scan_not_found(struct ask *a);

/* Of one profile: the samples that count, and the sum of a type over them. */
uint64_t scan_samples(const struct seen_profile *p);
int64_t scan_total(const struct seen_profile *p, uint32_t type);

/* What answers say about their selection (api.md): fed profile by profile, oldest first for `covered`. */
struct spans;
struct tally {
    uint64_t profiles, samples, series;
    struct spans *covered; /* under some profile; NULL once closed: */
    int64_t covered_ns;
    int64_t first_ns, last_ns, duration_ns;
    struct idset *ids;
};
enum err tally_open(struct tally *t, struct ask *a) MUST_CHECK;
enum err tally_add(struct tally *t, struct ask *a, const struct seen_profile *p) MUST_CHECK;
void tally_close(struct tally *t, const struct ask *a); /* a NULL: `covered` is not asked for any more */
/* 0..1 */
double tally_covered(const struct tally *t, const struct ask *a);

#endif
