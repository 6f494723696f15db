/* The target of a request: path and parameters. */
#include "gateway/target.h"

#include <stdlib.h>

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte that the escape at s.p[i] stands for; -1: it is broken. */
static int escaped(struct str s, size_t i)
{
    int hi = i + 2 < s.len ? hex(s.p[i + 1]) : -1, lo = i + 2 < s.len ? hex(s.p[i + 2]) : -1;

    return hi < 0 || lo < 0 ? -1 : hi << 4 | lo;
}

static bool unreserved(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

/* What may stand in a path as it is. */
static bool path_char(char c)
{
    return unreserved((unsigned char)c) || (c != '\0' && strchr("!$&'()*+,;=:@/", c));
}

/* "http://host:port/x" -> "/x". false: an authority that is none. */
static bool origin_form(struct str *s)
{
    static const struct str schemes[] = {{"http://", 7}, {"https://", 8}};

    for (size_t i = 0; i < COUNTOF(schemes); i++) {
        struct str scheme = schemes[i], start = {s->p, s->len < scheme.len ? s->len : scheme.len};
        if (!str_eq_nocase(start, scheme))
            continue;
        struct str rest = {s->p + scheme.len, s->len - scheme.len};
        size_t n = 0;
        while (n < rest.len && rest.p[n] != '/' && rest.p[n] != '?' && rest.p[n] != '#')
            n++;
        if (n == 0 || memchr(rest.p, '@', n))
            return false;
        *s = (struct str){rest.p + n, rest.len - n};
        return true;
    }
    return true;
}

/* Closes the segment that starts at `at` and ends at t->path.len: "." goes, ".." takes the one before it along. */
static void close_segment(struct target *t, size_t at)
{
    struct str segment = {t->path.p + at, t->path.len - at};

    if (str_eq(segment, STR("."))) {
        t->path.len = at;
    } else if (str_eq(segment, STR(".."))) {
        t->path.len = at;
        if (at > 1)
            for (t->path.len--; t->path.p[t->path.len - 1] != '/';)
                t->path.len--;
    }
}

static void put(struct target *t, int c)
{
    t->memory[t->path.len++] = (char)c;
}

/* The path in its normal form, which is never longer. */
static enum err normalise(struct target *t, struct str raw, struct fault *f)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t segment = 1;

    put(t, '/');
    for (size_t i = 0; i < raw.len; i++) {
        int c = (unsigned char)raw.p[i];
        if (c == '/') {
            close_segment(t, segment);
            if (t->path.p[t->path.len - 1] != '/')
                put(t, '/');
            segment = t->path.len;
            continue;
        }
        if (c != '%' && !path_char(raw.p[i]))
            return fault_set(f, E_BAD_REQUEST, "request target: byte 0x%02X may not stand in a path", (unsigned)c);
        if (c != '%') {
            put(t, c);
            continue;
        }
        c = escaped(raw, i);
        if (c < ' ' || c == 0x7f)
            return fault_set(f, E_BAD_REQUEST, "request target: %s",
                             c < 0 ? "a broken percent escape" : "an escaped control character");
        i += 2;
        if (unreserved(c)) {
            put(t, c);
            continue;
        }
        put(t, '%');
        put(t, digits[c >> 4]);
        put(t, digits[c & 15]);
    }
    close_segment(t, segment);
    return E_OK;
}

enum err target_parse(struct target *t, struct str text, struct fault *f)
{
    struct str s = text;

    *t = (struct target){0};
    if (str_eq(s, STR("*")))
        return fault_set(f, E_NO_ROUTE, NULL);
    bool good = origin_form(&s);
    if (!good || (s.len == text.len && (s.len == 0 || s.p[0] != '/')))
        return fault_set(f, E_BAD_REQUEST, "request target is no path");
    if (s.len && memchr(s.p, '#', s.len))
        return fault_set(f, E_BAD_REQUEST, "request target with a fragment");
    const char *question = s.len ? memchr(s.p, '?', s.len) : NULL;
    size_t n = question ? (size_t)(question - s.p) : s.len;
    if (question)
        t->query = (struct str){question + 1, s.len - n - 1};
    t->path.p = t->memory = malloc(n + 2);
    if (!t->memory)
        return fault_set(f, E_NO_MEMORY, NULL);
    enum err e = normalise(t, (struct str){s.p, n}, f);
    t->memory[t->path.len] = 0;
    return e;
}

void target_free(struct target *t)
{
    free(t->memory);
    *t = (struct target){0};
}

/* Percent-decodes s to the end of out. */
static bool decode(struct str s, struct buf *out, struct str *value)
{
    size_t at = out->len;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        if (c == '%') {
            int byte = escaped(s, i);
            if (byte < 0)
                return false;
            c = (char)byte;
            i += 2;
        } else if (c == '+') {
            c = ' ';
        }
        buf_char(out, c);
    }
    *value = (struct str){out->p + at, out->len - at};
    return true;
}

enum err target_param(const struct target *t, const char *name, struct buf *out, struct str *value, struct fault *f)
{
    struct str rest = t->query;

    *value = (struct str){NULL, 0};
    while (rest.len) {
        const char *amp = memchr(rest.p, '&', rest.len);
        struct str pair = {rest.p, amp ? (size_t)(amp - rest.p) : rest.len};
        rest = amp ? (struct str){amp + 1, rest.len - pair.len - 1} : (struct str){NULL, 0};
        const char *eq = pair.len ? memchr(pair.p, '=', pair.len) : NULL;
        struct str key = {pair.p, eq ? (size_t)(eq - pair.p) : pair.len};
        if (!str_eq(key, str_of(name)))
            continue;
        struct str raw = {eq ? eq + 1 : NULL, eq ? pair.len - key.len - 1 : 0};
        if (!decode(raw, out, value))
            return fault_set(f, E_BAD_REQUEST, "%s: broken percent escape", name);
        return out->failed ? fault_set(f, E_NO_MEMORY, NULL) : E_OK;
    }
    return E_OK;
}
