/*
 * The normalised profile: one uploaded pprof (or folded text), units and labels already as they will be shown,
 * identical symbols, stacks and (stack, labels) samples merged. Pure data in one arena; frozen once built. design.md 4.
 *
 * All cross references are indices into the arrays here; PROFILE_NONE is "none".
 */
#ifndef CODECS_PROFILE_H
#define CODECS_PROFILE_H

#include "codecs/base.h"
#include "codecs/types.h"

#define PROFILE_NONE UINT32_MAX

struct label {
    struct str name, value;
};

/* Who sent it. labels: sorted by name, unique, no empty values; with service_name, without __name__ (that is `name`).
 */
struct series {
    struct str project, service, name, spy;
    struct label *labels;
    uint32_t n_labels;
};

struct mapping {
    struct str file, build_id;
    uint64_t start, limit, offset; /* as declared; not part of its identity, which is (file, build id) */
};

struct function {
    struct str name, system_name, file; /* an empty file has been given its mapping's name by the decoder */
    int64_t start_line;
};

enum frame_flags { FRAME_INLINED = 1, FRAME_FOLDED = 2 };

/*
 * One line of a stack. With a function: address is 0. Without one (function == PROFILE_NONE): a bare address, as an
 * offset in the mapping's file where there is a mapping, so that ASLR does not multiply it; its name is "0x%x" of it.
 */
struct frame {
    uint32_t function, mapping;
    int64_t line, column;
    uint64_t address;
    uint32_t flags;
};

/* A label of samples. `numeric`: num and unit instead of value. */
struct sample_label {
    struct str key, value, unit;
    int64_t num;
    bool numeric;
};

struct sample_type {
    struct str type, unit; /* unit normalised: nanoseconds, bytes, count, or as declared */
    struct str id;         /* __name__:type:unit:period type:period unit, protocol.md 2.8 */
    enum aggregation aggregation;
    int64_t total; /* exact sum, saturating */
};

/* What did not make it, and why; part of the record and of the ledger. */
struct drops {
    uint32_t broken_references; /* samples whose location or function does not exist */
    uint32_t negative_values;   /* single values that became 0 */
    uint32_t zero_samples;      /* samples whose values were all 0 */
    uint32_t truncated_stacks;
    bool saturated;
};

struct profile {
    struct series series;

    int64_t time_ns, duration_ns; /* time already resolved: time_nanos, from or arrival */
    struct str period_type, period_unit;
    int64_t period;

    struct sample_type *types;
    uint32_t n_types, primary;

    struct mapping *mappings;
    struct function *functions;
    struct frame *frames;
    uint32_t n_mappings, n_functions, n_frames;

    /* Stack s is stack_frames[stack_at[s]] up to stack_at[s + 1], root first. An empty stack is legal. */
    uint32_t *stack_at, *stack_frames;
    uint32_t n_stacks;

    /* Label set l is labels[set_at[l]] up to set_at[l + 1], sorted by key. Set 0 is the empty one. */
    uint32_t *set_at;
    struct sample_label *labels;
    uint32_t n_sets;

    /* Sample i: stack, label set, one value per type: values[t][i]. (stack, set) pairs are unique. */
    uint32_t *sample_stack, *sample_set;
    int64_t **values;
    uint32_t n_samples;

    struct drops drops;
    struct str comment; /* joined by '\n' */
};

/* The invariants above, for tests and fuzzing. NULL, or what is wrong. */
const char *profile_check(const struct profile *p);

/* Whether this label key links a sample to a trace or span: trace_id, span_id and the old names (product.md F10). */
enum link { LINK_NONE, LINK_TRACE, LINK_SPAN };
enum link label_link(struct str key);

#endif
