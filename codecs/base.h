/* What everybody may use: slices, errors, the arena. Knows nothing of the rest of the tree. */
#ifndef CODECS_BASE_H
#define CODECS_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define COUNTOF(a) (sizeof(a) / sizeof((a)[0]))
#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

/* A borrowed run of bytes; the comment where it is declared says from whom. Not NUL-terminated. */
struct str {
    const char *p;
    size_t len;
};
#define STR(lit) ((struct str){(lit), sizeof(lit) - 1})
#define STR_ARG(s) (int)(s).len, (s).p

static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}
struct str str_of(const char *z);               /* borrows z; NULL is empty */
int str_cmp(struct str a, struct str b);        /* bytewise order, for qsort */
bool str_eq_nocase(struct str a, struct str b); /* ASCII only */
struct str str_trim(struct str s);              /* white space off both ends */
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
bool utf8_valid(struct str s); /* strict: no surrogates, no overlongs */

/* Stays on in release builds. Never about a byte that came from outside. */
#define ASSERT(cond) ((cond) ? (void)0 : assert_failed(#cond, __FILE__, __LINE__))
__attribute__((noreturn, cold)) void assert_failed(const char *cond, const char *file, int line);

/*
 * Everything that a client or an operator may be told: name, HTTP status, the `code` of the JSON
 * answer, the `reason` of the metric (design.md 5, operations.md 3), a default text.
 */
#define ERR_MAP(X)                                                                                                     \
    X(OK, 200, "", "", "ok")                                                                                           \
    X(BAD_REQUEST, 400, "invalid_argument", "bad_request", "bad request")                                              \
    X(BAD_FRAMING, 400, "invalid_argument", "bad_framing", "malformed HTTP request")                                   \
    X(BAD_ENCODING, 400, "invalid_argument", "bad_encoding", "body does not decompress")                               \
    X(BAD_INPUT, 400, "invalid_argument", "malformed_profile", "malformed payload")                                    \
    X(BAD_NAME, 400, "invalid_argument", "invalid_labels", "invalid name or labels")                                   \
    X(MISSING_LABELS, 400, "invalid_argument", "missing_labels", "missing labels")                                     \
    X(TOO_MANY_LABELS, 400, "invalid_argument", "max_label_names_per_series", "too many labels")                       \
    X(LABEL_NAME_LONG, 400, "invalid_argument", "label_name_too_long", "label name too long")                          \
    X(LABEL_VALUE_LONG, 400, "invalid_argument", "label_value_too_long", "label value too long")                       \
    X(DUPLICATE_LABEL, 400, "invalid_argument", "duplicate_label_names", "duplicate label name")                       \
    X(OUT_OF_WINDOW, 400, "invalid_argument", "not_in_ingestion_window", "outside of the accepted time window")        \
    X(CUMULATIVE, 400, "invalid_argument", "cumulative_profile", "cumulative since start; send deltas")                \
    X(NO_PROFILES, 400, "invalid_argument", "no_profiles", "no profiles received")                                     \
    X(TOO_MANY_SAMPLES, 400, "invalid_argument", "samples_limit", "too many samples")                                  \
    X(TOO_MANY_SAMPLE_LABELS, 400, "invalid_argument", "sample_labels_limit", "too many labels on a sample")           \
    X(TOO_MANY_PROFILES, 400, "invalid_argument", "profiles_limit", "too many profiles in one request")                \
    X(LENGTH_REQUIRED, 411, "invalid_argument", "bad_framing", "Content-Length required")                              \
    X(BODY_TOO_LARGE, 413, "invalid_argument", "body_size_limit_exceeded", "request body too large")                   \
    X(INFLATED_TOO_LARGE, 413, "invalid_argument", "decompressed_size", "decompressed body too large")                 \
    X(PROFILE_TOO_LARGE, 413, "invalid_argument", "profile_size_limit", "profile too large in memory")                 \
    X(URI_TOO_LONG, 414, "invalid_argument", "bad_framing", "request target too long")                                 \
    X(EXPECTATION_FAILED, 417, "invalid_argument", "bad_framing", "unknown expectation")                               \
    X(HEAD_TOO_LARGE, 431, "invalid_argument", "head_too_large", "request headers too large")                          \
    X(UNAUTHENTICATED, 401, "unauthenticated", "unauthenticated", "missing or unknown token")                          \
    X(FORBIDDEN, 403, "permission_denied", "permission_denied", "this key may not do that")                            \
    X(NOT_FOUND, 404, "not_found", "not_found", "no such object")                                                      \
    X(NO_ROUTE, 404, "unimplemented", "no_route", "no such path")                                                      \
    X(BAD_METHOD, 405, "unimplemented", "bad_method", "method not allowed")                                            \
    X(UNSUPPORTED_TYPE, 415, "unimplemented", "unsupported_media_type", "unsupported media type")                      \
    X(UNSUPPORTED_ENCODING, 415, "unimplemented", "unsupported_encoding", "unsupported content encoding")              \
    X(UNSUPPORTED_FRAMING, 501, "unimplemented", "bad_framing", "unsupported transfer encoding")                       \
    X(HTTP_VERSION, 505, "unimplemented", "bad_framing", "only HTTP/1.0 and HTTP/1.1 are served here")                 \
    X(RATE_LIMITED, 429, "resource_exhausted", "rate_limited", "rate limit of the project exceeded")                   \
    X(OVERLOADED, 503, "unavailable", "shed", "no capacity, retry later")                                              \
    X(NO_MEMORY, 503, "unavailable", "shed", "out of memory, retry later")                                             \
    X(STORE_DOWN, 503, "unavailable", "store_unavailable", "the store is not available, retry later")                  \
    X(DRAINING, 503, "unavailable", "draining", "shutting down, retry elsewhere")                                      \
    X(DEADLINE, 504, "deadline_exceeded", "deadline", "query deadline exceeded")                                       \
    X(CANCELLED, 499, "canceled", "canceled", "the client went away")                                                  \
    X(INTERNAL, 500, "internal", "internal", "internal error")
enum err {
#define X(name, status, code, reason, text) E_##name,
    ERR_MAP(X)
#undef X
        E_COUNT
};
int err_status(enum err e);
const char *err_code(enum err e);
const char *err_reason(enum err e);
const char *err_text(enum err e);

/* The first thing that went wrong, in words for whoever sent it: names the limit or the field, its value and what was
 * seen. */
struct fault {
    enum err err;
    char text[248];
};
/* Keeps the first fault only. Returns f->err, so that `return fault_set(...)` reads well. fmt NULL: the error's own
 * text. */
enum err fault_set(struct fault *f, enum err e, const char *fmt, ...) PRINTF_LIKE(3, 4);

/*
 * Bump memory with a limit, freed whole. Small pieces share 64 KiB blocks; a large piece has a block of its own.
 * All memory is zeroed. arena_alloc returns NULL past the limit (arena_over_limit says so) or when malloc fails.
 */
struct arena;
struct arena *arena_new(size_t limit_bytes) MUST_CHECK; /* NULL: malloc failed */
void arena_free(struct arena *a);                       /* NULL is fine */
void *arena_alloc(struct arena *a, size_t size, size_t align, size_t n) MUST_CHECK;
/* Grows a piece of old_n to new_n elements; the old piece (NULL at first) is dead afterwards. Large pieces really
 * shrink away. */
void *arena_grow(struct arena *a, void *old, size_t size, size_t align, size_t old_n, size_t new_n) MUST_CHECK;
size_t arena_used(const struct arena *a); /* bytes of blocks held, what the memory ledger is charged */
bool arena_over_limit(const struct arena *a);
bool arena_str(struct arena *a, struct str in,
               struct str *out) MUST_CHECK;                   /* copies bytes in, plus a NUL behind them */
enum err arena_error(const struct arena *a, struct fault *f); /* after a NULL: which of the two it was */
#define NEW(a, type, n) ((type *)arena_alloc((a), sizeof(type), _Alignof(type), (n)))
#define GROW(a, old, type, old_n, new_n)                                                                               \
    ((type *)arena_grow((a), (old), sizeof(type), _Alignof(type), (old_n), (new_n)))

/* A growing byte string on malloc; `failed` is sticky, so that a writer checks once at its end. */
struct buf {
    char *p;
    size_t len, cap;
    bool failed;
};
void buf_add(struct buf *b, const void *p, size_t n);
void buf_str(struct buf *b, struct str s);
void buf_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_free(struct buf *b);
static inline struct str buf_view(const struct buf *b)
{
    return (struct str){b->p, b->len};
}

/* Saturating int64 sum; sets *over and never wraps. */
static inline int64_t add_sat(int64_t a, int64_t b, bool *over)
{
    int64_t r;
    if (!__builtin_add_overflow(a, b, &r))
        return r;
    *over = true;
    return a < 0 ? INT64_MIN : INT64_MAX;
}

#endif
