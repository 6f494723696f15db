/*
 * One request body on its way to sealed records: inflating, container, decoding, as push stages with bounds (design.md
 * 3).
 *
 *   upload_new -> upload_feed ... -> upload_end -> upload_finish -> take the records -> upload_free
 *
 * Only feed and end look at bytes; they never block and are bounded by `budget`. Finish is pure CPU over what was
 * decoded and may run on another thread. Nothing is handed out before every layer has ended cleanly.
 */
#ifndef CODECS_UPLOAD_H
#define CODECS_UPLOAD_H

#include "codecs/base.h"
#include "codecs/hash.h"
#include "codecs/limits.h"
#include "codecs/record.h"

enum step {
    STEP_MORE,  /* all of the input was taken; at upload_end: ended cleanly */
    STEP_AGAIN, /* the budget is spent: call again with what is left of the input (which may be nothing) */
    STEP_FAIL,  /* see upload_fault; the upload is dead */
};

enum upload_kind {
    UPLOAD_PPROF,     /* the body is a pprof, gzip or not; or, sniffed by "--", a multipart body without its type */
    UPLOAD_MULTIPART, /* parts profile, sample_type_config, prev_profile */
    UPLOAD_FOLDED,
    UPLOAD_PUSH_PROTO,
    UPLOAD_PUSH_JSON,
    UPLOAD_KINDS
};
extern const char *const upload_kind_names[UPLOAD_KINDS]; /* pprof, multipart, folded, push-proto, push-json */

enum coding { CODING_IDENTITY, CODING_GZIP, CODING_ZSTD };

/* The parameters of /ingest, still as text after URL decoding. Empty: absent. */
struct ingest_params {
    struct str name, from, until, sample_rate, spy;
};

/* Everything that is known before the body. The strings must outlive the upload; nothing is copied. */
struct upload_spec {
    enum upload_kind kind;
    enum coding coding;          /* Content-Encoding */
    struct str boundary;         /* multipart only */
    struct ingest_params params; /* not for Push */
    struct str project;
    int64_t now_ns;                           /* arrival */
    int64_t window_past_ns, window_future_ns; /* accept_window; negative: no check */
    bool keep_originals;
    const struct limits *limits;
    const struct hash_key *key;
};

struct upload;
/* Checks what can be checked early (name and labels of /ingest). NULL with f set: refused, or E_NO_MEMORY. */
struct upload *upload_new(const struct upload_spec *spec, struct fault *f) MUST_CHECK;
/* Takes bytes off the front of *in. *budget is lowered by about a unit per byte handled in any layer. */
enum step upload_feed(struct upload *u, struct str *in, uint32_t *budget) MUST_CHECK;
enum step upload_end(struct upload *u, uint32_t *budget) MUST_CHECK;
size_t upload_memory(const struct upload *u); /* bytes held now */
/* A guess of what upload_finish will take: nanoseconds of CPU, and bytes of memory on top of upload_memory. */
uint64_t upload_finish_ns(const struct upload *u);
size_t upload_finish_memory(const struct upload *u);
/* Builds and seals every profile. E_OK when at least the request as a whole holds; single profiles may still be
 * refused. */
enum err upload_finish(struct upload *u) MUST_CHECK;
const struct fault *upload_fault(const struct upload *u);

/* After finish: outcome i of n, in the order of the request. */
struct outcome {
    struct record *record; /* NULL: refused, or an empty profile */
    struct fault fault; /* err E_OK with record NULL: an honestly empty profile, 200 and counted; its text says more */
    struct str service; /* borrowed from the upload; empty: not known */
};
uint32_t upload_outcomes(const struct upload *u);
const struct outcome *upload_outcome(const struct upload *u, uint32_t i);
struct record *upload_take(struct upload *u, uint32_t i); /* the caller owns it now */
struct str upload_service(const struct upload *u);        /* of /ingest, where the name is good; borrowed */
uint64_t upload_inflated(const struct upload *u);         /* bytes that came out of the layers, for metrics */
void upload_free(struct upload *u);

#endif
