/* The parameters of a read: decoded, known, given once. */
#ifndef GATEWAY_QUERY_PARAMS_H
#define GATEWAY_QUERY_PARAMS_H

#include "codecs/base.h"

/* Every name that any endpoint knows. COMMON ones are taken by all. */
#define PARAM_MAP(X)                                                                                                   \
    X(SERVICE, "service")                                                                                              \
    X(MATCH, "match")                                                                                                  \
    X(TYPE, "type")                                                                                                    \
    X(FROM, "from")                                                                                                    \
    X(UNTIL, "until")                                                                                                  \
    X(PROFILE, "profile")                                                                                              \
    X(LIMIT, "limit")                                                                                                  \
    X(FORMAT, "format")                                                                                                \
    X(SORT, "sort")                                                                                                    \
    X(OWN, "own")                                                                                                      \
    X(KERNEL, "kernel")                                                                                                \
    X(CURSOR, "cursor")                                                                                                \
    X(FUNCTION, "function")                                                                                            \
    X(FILE, "file")                                                                                                    \
    X(MAX_NODES, "max_nodes")                                                                                          \
    X(STEP, "step")                                                                                                    \
    X(BY, "by")                                                                                                        \
    X(KEY, "key")                                                                                                      \
    X(VERDICT, "verdict")                                                                                              \
    X(REASON, "reason")
enum param {
#define X(name, text) PARAM_##name,
    PARAM_MAP(X)
#undef X
        PARAM_COUNT
};
#define PARAM_BIT(p) (1u << (p))
enum { PARAMS_COMMON = (1u << (PARAM_FORMAT + 1)) - 1 };

/* value[p] lives in the arena; empty and not given where the parameter was absent. */
struct params {
    struct str value[PARAM_COUNT];
    bool given[PARAM_COUNT];
};
/* `allowed`: PARAM_BITs. E_BAD_REQUEST names the parameter that is unknown, twice there, badly encoded or empty. */
enum err params_parse(struct params *p, struct str query, uint32_t allowed, struct arena *a,
                      struct fault *f) MUST_CHECK;
/* Percent decoding; `plus`: '+' is a space. E_BAD_REQUEST: a bad escape, or no UTF-8 behind it. E_NO_MEMORY: see the
 * arena. */
enum err params_decode(struct str in, bool plus, struct arena *a, struct str *out) MUST_CHECK;
/* A decimal number within bounds; *out keeps its value where the parameter is absent. */
enum err params_number(const struct params *p, enum param which, uint32_t min, uint32_t max, uint32_t *out,
                       struct fault *f) MUST_CHECK;
/* true, 1, false, 0; absent: false. */
enum err params_flag(const struct params *p, enum param which, bool *out, struct fault *f) MUST_CHECK;
/* Whether an Accept header prefers text/plain to JSON. */
bool params_wants_text(struct str accept);

#endif
