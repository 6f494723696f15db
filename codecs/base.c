/* Slices, errors, saturating helpers and the growing byte string. */
#include "codecs/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct str str_of(const char *z)
{
    return (struct str){z, z ? strlen(z) : 0};
}

int str_cmp(struct str a, struct str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.len > b.len) - (a.len < b.len);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool str_eq_nocase(struct str a, struct str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
    while (s.len && is_space(s.p[0]))
        s.p++, s.len--;
    while (s.len && is_space(s.p[s.len - 1]))
        s.len--;
    return s;
}

bool str_starts(struct str s, struct str prefix)
{
    return s.len >= prefix.len && memcmp(s.p, prefix.p, prefix.len) == 0;
}

bool str_ends(struct str s, struct str suffix)
{
    return s.len >= suffix.len && memcmp(s.p + s.len - suffix.len, suffix.p, suffix.len) == 0;
}

/* Length of the well-formed sequence at p (RFC 3629, table of section 4), 0 if there is none. */
static size_t utf8_sequence(const uint8_t *p, size_t left)
{
    uint8_t c = p[0];
    size_t n = c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

    if (n == 0 || n > left)
        return 0;
    uint8_t lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    uint8_t hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < lo || p[1] > hi)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

bool utf8_valid(struct str s)
{
    const uint8_t *p = (const uint8_t *)s.p;
    size_t left = s.len;

    while (left) {
        uint64_t word;
        size_t n = 1;
        if (left >= sizeof word && (memcpy(&word, p, sizeof word), !(word & 0x8080808080808080ull)))
            n = sizeof word;
        else if (*p >= 0x80 && (n = utf8_sequence(p, left)) == 0)
            return false;
        p += n;
        left -= n;
    }
    return true;
}

void assert_failed(const char *cond, const char *file, int line)
{
    fprintf(stderr, "flamegate: assertion failed: %s at %s:%d\n", cond, file, line);
    abort();
}

static const struct {
    int status;
    const char *code, *reason, *text;
} errors[] = {
#define X(name, status, code, reason, text) {status, code, reason, text},
    ERR_MAP(X)
#undef X
};

int err_status(enum err e)
{
    return errors[e].status;
}

const char *err_code(enum err e)
{
    return errors[e].code;
}

const char *err_reason(enum err e)
{
    return errors[e].reason;
}

const char *err_text(enum err e)
{
    return errors[e].text;
}

enum err fault_set(struct fault *f, enum err e, const char *fmt, ...)
{
    if (f->err != E_OK)
        return f->err;
    f->err = e;
    if (!fmt) {
        snprintf(f->text, sizeof f->text, "%s", err_text(e));
        return e;
    }
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof f->text, fmt, ap);
    va_end(ap);
    return e;
}

static bool reserve(struct buf *b, size_t more)
{
    if (b->failed)
        return false;
    if (more <= b->cap - b->len)
        return true;
    size_t cap = b->cap ? b->cap : 256;
    while (cap - b->len < more && cap < SIZE_MAX / 2)
        cap *= 2;
    char *p = cap - b->len < more ? NULL : realloc(b->p, cap);
    if (!p) {
        b->failed = true;
        return false;
    }
    b->p = p;
    b->cap = cap;
    return true;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
    if (n == 0 || !reserve(b, n))
        return;
    memcpy(b->p + b->len, p, n);
    b->len += n;
}

void buf_str(struct buf *b, struct str s)
{
    buf_add(b, s.p, s.len);
}

void buf_char(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    char small[256];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n < sizeof small) {
        buf_add(b, small, n < 0 ? 0 : (size_t)n);
        return;
    }
    if (!reserve(b, (size_t)n + 1))
        return;
    va_start(ap, fmt);
    vsnprintf(b->p + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
}

void buf_free(struct buf *b)
{
    free(b->p);
    *b = (struct buf){0};
}
