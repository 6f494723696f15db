/*
 * The sealed record: one profile as the self-contained unit of commit, spool, replay, merge, roll-up and export
 * (design.md 4, 6).
 *
 * Its body holds series, times, types, totals, label sets and the sample columns (stack ids, label sets, one column of
 * values per type), packed and zstd-1; its symbols are beside it, because stores write only what they have not written
 * that day.
 */
#ifndef CODECS_RECORD_H
#define CODECS_RECORD_H

#include "codecs/hash.h"
#include "codecs/profile.h"
#include "codecs/symbols.h"

/* In memory of its own. One owner: the upload, then the group that commits it. */
struct record {
    struct series series; /* copies */
    uint64_t series_id;   /* of project, __name__ and labels; 63 bits, never 0 */
    int64_t time_ns, duration_ns;
    struct sample_type *types; /* copies */
    uint32_t n_types, primary, n_samples;
    struct str format;         /* one of upload_kind_names */
    uint64_t original_bytes;   /* of the inner payload as sent, kept or not */
    struct hash128 content_id; /* design.md 6: of project, labels, time as sent, payload as sent, sample ID, ordinal */
    bool identity;             /* the payload has an identity of its own: equal content counts once, whoever was told */
    struct str trace_id;       /* of the first linked sample, hexadecimal; or empty */
    struct drops drops;
    struct str body; /* what a store keeps */
    struct symbols *symbols;
    struct str original; /* inner bytes as sent; empty where not kept */
    size_t bytes;        /* all memory of this record, symbols and original included */
};

/* What the upload knows besides the profile. */
struct record_origin {
    struct str format;
    struct hash128 content_id;
    bool identity;
    struct str original;
    uint64_t original_bytes;
    bool keep_original;
};
struct record *record_seal(const struct profile *p, const struct record_origin *o,
                           const struct hash_key *k) MUST_CHECK; /* NULL: no memory */
/* All of it but the symbols, which stay NULL: of a record, or of one put together from pieces that are borrowed. */
struct record *record_copy(const struct record *r) MUST_CHECK; /* NULL: no memory */
void record_free(struct record *r);                            /* NULL is fine */

/* All of it as bytes, symbols and original included; out->failed says whether memory ran out. */
void record_pack(const struct record *r, struct buf *out);
/* The next record off these bytes, in memory of its own. E_BAD_INPUT for anything else, E_NO_MEMORY. */
struct unpack; /* codecs/pack.h */
enum err record_unpack(struct unpack *u, struct record **out, struct fault *f) MUST_CHECK;

/*
 * A body read back, in the given arena: a profile whose stacks are ids. Borrows nothing from `body`.
 * E_BAD_INPUT for anything that is not a whole body of ours; never reads outside of it.
 */
struct record_view {
    struct series series;
    int64_t time_ns, duration_ns;
    struct str period_type, period_unit, format, comment;
    int64_t period;
    struct sample_type *types;
    uint32_t n_types, primary;
    uint64_t *stack_ids; /* distinct stacks of this profile */
    uint32_t n_stacks;
    uint32_t *set_at;
    struct sample_label *labels;
    uint32_t n_sets;
    uint32_t *sample_stack, *sample_set; /* indices into stack_ids and label sets */
    int64_t **values;                    /* values[t][i] */
    uint32_t n_samples;
    struct drops drops;
};
enum err record_open(struct record_view *v, struct str body, struct arena *a, struct fault *f) MUST_CHECK;

#endif
