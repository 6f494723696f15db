/*
 * A pprof as it arrives: tables with compact ids, nothing resolved, since the string table may come last. pprof_build
 * resolves. Ids are 64 bits on the wire; those under 2^31 stand for themselves here, others are numbered (PPROF_WIDE +
 * position).
 */
#ifndef CODECS_PPROF_H
#define CODECS_PPROF_H

#include "codecs/index.h"
#include "codecs/intake.h"
#include "codecs/pb.h"
#include "codecs/vec.h"

#define PPROF_WIDE 0x80000000u
#define PPROF_NO_STRING UINT32_MAX /* an index that no table has */

/* Fields that are u32 and end in _s are string indices; ids are as above. */
struct pprof_type {
    uint32_t type_s, unit_s;
};
struct pprof_mapping {
    uint64_t start, limit, offset;
    uint32_t id, file_s, build_id_s;
};
struct pprof_function {
    int64_t start_line;
    uint32_t id, name_s, system_name_s, file_s;
};
struct pprof_line {
    int64_t line, column;
    uint32_t function;
};
struct pprof_location {
    uint64_t address;
    uint32_t id, mapping, line_at, folded; /* lines up to the next location's */
};
struct pprof_label {
    int64_t num;
    uint32_t key_s, str_s, unit_s, unused; /* unused is 0: labels are compared as bytes */
};

struct pprof {
    struct intake *in;
    struct fault *fault; /* of this profile */
    struct pb_framer framer;
    bool any; /* a byte was seen */

    VEC(struct str) strings;
    char *chunk, *chunk_end; /* free part of the newest piece of string memory */
    size_t chunk_bytes;

    VEC(struct pprof_type) types;
    VEC(struct pprof_mapping) mappings;
    VEC(struct pprof_function) functions;
    VEC(struct pprof_location) locations;
    VEC(struct pprof_line) lines;

    /* Sample i: ids sample_ids[sample_at[i] .. sample_at[i + 1]), n_values values from values[i * n_values], label set.
     */
    VEC(uint32_t) sample_at, sample_ids, sample_set;
    VEC(int64_t) values;
    uint32_t n_samples, n_values;

    /* Set l: labels[set_at[l] .. set_at[l + 1]), as sent; set 0 is empty. */
    VEC(uint32_t) set_at;
    VEC(struct pprof_label) labels;
    uint32_t n_sets;
    struct index sets;

    VEC(uint64_t) wide;
    struct index wides;

    VEC(uint32_t) comments;
    struct pprof_type period_type;
    int64_t time_ns, duration_ns, period;
};

struct pprof *pprof_new(struct intake *in, struct fault *f) MUST_CHECK; /* NULL: in->fault is set */
enum step pprof_feed(struct pprof *d, struct str *in, uint32_t *budget) MUST_CHECK;
enum step pprof_end(struct pprof *d) MUST_CHECK;
/* A guess of the memory that pprof_build takes. */
size_t pprof_build_memory(const struct pprof *d);

/* What is known of a type by name from sample_type_config. */
struct type_config {
    struct str type, display;
    bool cumulative;
};

/* How to read it. */
struct pprof_reading {
    const struct type_config *config;
    uint32_t n_config;
    bool dotnet;     /* repair what old .NET clients sent */
    bool cumulative; /* __delta__="true": its summed types are since start */
};
/*
 * Resolves into p, in arena a: all but the series, the resolved time and the ids of types. p borrows strings of d.
 * `refused` receives the names of types that were left out as cumulative, comma separated (empty: none), in arena a.
 */
struct profile;
enum err pprof_build(const struct pprof *d, const struct pprof_reading *how, struct arena *a, struct profile *p,
                     struct str *refused, struct fault *f) MUST_CHECK;
/* Type i as sent, for naming the series; empty when there is none. Call after pprof_build said E_OK. */
struct str pprof_type_name(const struct pprof *d, uint32_t i);

#endif
