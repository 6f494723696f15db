/* The target of a request: path and parameters. */
#include "gateway/target.h"

#include <stdlib.h>

/* "http://host:port/x" -> "/x"; anything else as it is. */
static struct str origin_form(struct str s)
{
    for (size_t i = 0; i + 2 < s.len && s.p[0] != '/'; i++) {
        if (s.p[i] == '?' || s.p[i] == '/')
            break;
        if (memcmp(s.p + i, "://", 3) != 0)
            continue;
        struct str rest = {s.p + i + 3, s.len - i - 3};
        const char *slash = rest.len ? memchr(rest.p, '/', rest.len) : NULL;
        return slash ? (struct str){slash, (size_t)(rest.p + rest.len - slash)} : STR("/");
    }
    return s;
}

enum err target_parse(struct target *t, struct str text, struct fault *f)
{
    struct str s = origin_form(text);

    *t = (struct target){0};
    if (s.len == 0 || s.p[0] != '/')
        return str_eq(s, STR("*")) ? fault_set(f, E_NO_ROUTE, NULL)
                                   : fault_set(f, E_BAD_REQUEST, "request target is no path");
    const char *question = memchr(s.p, '?', s.len);
    size_t n = question ? (size_t)(question - s.p) : s.len;
    if (question)
        t->query = (struct str){question + 1, s.len - n - 1};
    t->memory = malloc(n + 1);
    if (!t->memory)
        return fault_set(f, E_NO_MEMORY, NULL);
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        if (s.p[i] != '/' || len == 0 || t->memory[len - 1] != '/')
            t->memory[len++] = s.p[i];
    t->memory[len] = 0;
    t->path = (struct str){t->memory, len};
    return E_OK;
}

void target_free(struct target *t)
{
    free(t->memory);
    *t = (struct target){0};
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Percent-decodes s to the end of out. */
static bool decode(struct str s, struct buf *out, struct str *value)
{
    size_t at = out->len;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        if (c == '%') {
            int hi = i + 2 < s.len ? hex(s.p[i + 1]) : -1, lo = i + 2 < s.len ? hex(s.p[i + 2]) : -1;
            if (hi < 0 || lo < 0)
                return false;
            c = (char)(hi << 4 | lo);
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
