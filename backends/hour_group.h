/* One group of an hour's profiles on its way to a row: what they merge to, and what is said of them. */
#ifndef BACKENDS_HOUR_GROUP_H
#define BACKENDS_HOUR_GROUP_H

#include "backends/hours.h"
#include "backends/spans.h"
#include "codecs/idmap.h"
#include "codecs/merge.h"

/* Distinct; few. */
struct hour_names {
    struct str *list;
    uint32_t n, cap;
};

struct hour_group {
    struct str key; /* hour_group_key; in the arena, as all that is here borrowed */
    struct series series;
    struct stored sum;
    int64_t last_ns;
    uint64_t check;
    struct merge *merge;
    struct spans covered;
    struct idmap series_at; /* id -> place in series_ids */
    uint64_t *series_ids;
    uint32_t n_series, cap_series;
    struct hour_names left_out, sample_names;
};

/* What profiles of one group have in common, as bytes. out->failed: no memory. */
void hour_group_key(const struct stored *s, struct buf *out);
/* The group that s begins; memory: a hard limit of its merge. */
enum err hour_group_open(struct hour_group *g, struct str key, const struct stored *s, size_t memory, struct arena *a,
                         struct fault *f) MUST_CHECK;
/* s in the order of time, with its body. */
enum err hour_group_add(struct hour_group *g, const struct stored *s, struct arena *a, struct fault *f) MUST_CHECK;
/* Appends the row's bytes. E_INTERNAL: sums saturate, so the hour is not exact. */
enum err hour_group_pack(struct hour_group *g, int64_t hour, struct buf *about, struct buf *body, struct arena *a,
                         struct fault *f) MUST_CHECK;
void hour_group_close(struct hour_group *g);

#endif
