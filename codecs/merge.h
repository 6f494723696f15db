/*
 * The one merge: records in, (stack, label set) -> exact sums out. Every number that anybody sees comes from here.
 * Sums are int64 and saturate (and say so); they do not depend on the order of the records.
 */
#ifndef CODECS_MERGE_H
#define CODECS_MERGE_H

#include "codecs/record.h"

/* Which samples of a record count: called with its label sets once per record; sets keep[set]. */
typedef void (*merge_filter)(void *ctx, const struct record_view *v, bool *keep);

/*
 * type NULL id: every type of the records, by id. by_labels: keep label sets apart (downloads), else per stack only;
 * drop_links: without trace and span ids, which would keep every sample apart.
 */
struct merge_spec {
    struct str type_id;
    bool by_labels, drop_links;
    merge_filter filter; /* NULL: all */
    void *filter_ctx;
    size_t memory_limit;
};
struct merge;
struct merge *merge_new(const struct merge_spec *spec) MUST_CHECK; /* NULL: no memory */
enum err merge_add(struct merge *m, const struct record_view *v, struct fault *f) MUST_CHECK;
size_t merge_bytes(const struct merge *m); /* that it holds */
void merge_free(struct merge *m);

struct merged_type {
    struct str type, unit, id;
    enum aggregation aggregation;
    int64_t total;
};
struct merged {
    struct merged_type *types;
    uint32_t n_types;
    uint64_t *stack;  /* row -> stack id; stack 0 is the empty stack */
    uint32_t *set;    /* row -> label set; NULL unless by_labels */
    int64_t **values; /* values[t][row] */
    uint32_t n_rows;
    uint32_t *set_at; /* as in struct profile */
    struct sample_label *labels;
    uint32_t n_sets;
    struct str period_type, period_unit;  /* of the first record */
    int64_t period, time_ns, duration_ns; /* first time, sum of durations */
    uint64_t samples;                     /* sample rows read */
    bool saturated;
};
/* Borrowed from m, valid until the next merge_add. Rows are in no particular order. */
const struct merged *merge_result(struct merge *m);

/*
 * The result as the body of a record again (codecs/record.h), of these series; `primary` of its types. Appends to out.
 * *n_samples: of that body. false: no memory.
 */
bool merge_body(struct merge *m, const struct series *series, uint32_t primary, struct buf *out,
                uint32_t *n_samples) MUST_CHECK;

/* gzip pprof of a result, every type, every symbol that the blocks knew: opens in `go tool pprof`. Appends to out. */
enum err pprof_write(const struct merged *m, const struct symtab *symbols, struct buf *out, struct fault *f) MUST_CHECK;

#endif
