/* What everybody may use: slices, errors, the arena. Knows nothing of the rest of the tree. */
#ifndef CODECS_BASE_H
#define CODECS_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "codecs/err.h"

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

/* The first thing that went wrong, in words for whoever sent it: names the limit or the field, its value and what was
 * seen. */
struct fault {
    enum err err;
    char text[248];
    uint32_t retry_s; /* of E_RATE_LIMITED: when to come again */
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
