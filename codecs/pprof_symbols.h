/* The resolving half of reading a pprof: ids to table rows, rows to interned functions, frames and label sets, on first
 * use. */
#ifndef CODECS_PPROF_SYMBOLS_H
#define CODECS_PPROF_SYMBOLS_H

#include "codecs/pprof.h"
#include "codecs/profile.h"

/* id code -> row; a table where ids are dense, else an index. */
struct id_rows {
    uint32_t *dense, n_dense;
    struct index sparse;
};
/* What makes a function or a mapping: strings by canonical number, so that equal ones are equal bytes. */
struct symbol_key {
    int64_t start_line;
    uint32_t name, system_name, file, build_id;
};
/* Rows of the output, growing. */
struct symbol_build {
    const struct pprof *d;
    const struct hash_key *key;
    struct arena *a;
    bool function_ids_lost; /* old .NET: function i has location i's id */

    uint32_t *canon; /* string -> first equal string + 1; 0: not looked up yet */
    struct index strings;
    struct id_rows location_rows, function_rows, mapping_rows;
    uint32_t *location_at, *location_end; /* frames of location i, leaf first, in location_frames; end 0: not yet */
    VEC(uint32_t) location_frames;
    uint32_t *function_done, *mapping_done, *set_done; /* row -> output row + 1 */
    VEC(struct mapping) mappings;
    VEC(struct function) functions;
    VEC(struct frame) frames;
    VEC(struct sample_label) labels;
    VEC(uint32_t) set_at;
    VEC(struct symbol_key) function_keys, mapping_keys;
    struct index mapping_index, function_index, frame_index, set_index;
    uint32_t n_sets;
};

bool symbol_build_init(struct symbol_build *b)
    MUST_CHECK; /* with d, key, a, function_ids_lost set. false: the arena said no */
struct str symbol_text(const struct pprof *d, uint32_t string);

enum symbol_result { SYMBOL_OK, SYMBOL_BROKEN, SYMBOL_NO_ROOM };
/* The frames of a location id, leaf first: location_frames.p[*at .. *end). BROKEN: it, or a function of it, does not
 * exist. */
enum symbol_result symbol_location(struct symbol_build *b, uint32_t id, uint32_t *at, uint32_t *end);
/* The same for a location that was resolved before, where ids are dense; false says nothing. */
static inline bool symbol_location_again(const struct symbol_build *b, uint32_t id, uint32_t *at, uint32_t *end)
{
    uint32_t row = id < b->location_rows.n_dense ? b->location_rows.dense[id] : 0;

    if (row == 0 || b->location_end[row - 1] + 1 <= 1) /* neither 0 nor UINT32_MAX */
        return false;
    *at = b->location_at[row - 1];
    *end = b->location_end[row - 1];
    return true;
}
enum symbol_result symbol_truncated(struct symbol_build *b, uint32_t *frame); /* the frame "[truncated]" */
enum symbol_result symbol_set(struct symbol_build *b, uint32_t raw, uint32_t *set);

#endif
