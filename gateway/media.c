/* Media types: comparing, and taking parameters out. */
#include "gateway/media.h"

struct str media_type(struct str value)
{
    const char *semi = value.len ? memchr(value.p, ';', value.len) : NULL;

    return str_trim((struct str){value.p, semi ? (size_t)(semi - value.p) : value.len});
}

bool media_is(struct str value, struct str type)
{
    return str_eq_nocase(media_type(value), type);
}

/* Where the parameter that starts at `at` ends: at a ';' outside of quotes. */
static size_t param_end(struct str v, size_t at)
{
    bool quoted = false;

    for (; at < v.len; at++) {
        if (v.p[at] == '"')
            quoted = !quoted;
        else if (quoted && v.p[at] == '\\')
            at++;
        else if (!quoted && v.p[at] == ';')
            break;
    }
    return at < v.len ? at : v.len;
}

static bool unquote(struct str v, char *out, size_t cap, struct str *found)
{
    size_t n = 0;
    bool quoted = v.len > 1 && v.p[0] == '"';

    for (size_t i = quoted; i < v.len; i++) {
        if (quoted && v.p[i] == '"')
            break;
        if (quoted && v.p[i] == '\\' && i + 1 < v.len)
            i++;
        if (n == cap)
            return false;
        out[n++] = v.p[i];
    }
    *found = (struct str){out, n};
    return true;
}

bool media_param(struct str value, struct str name, char *out, size_t cap, struct str *found)
{
    size_t at = param_end(value, 0);

    *found = (struct str){NULL, 0};
    while (at < value.len) {
        size_t end = param_end(value, at + 1);
        struct str pair = str_trim((struct str){value.p + at + 1, end - at - 1});
        const char *eq = pair.len ? memchr(pair.p, '=', pair.len) : NULL;
        at = end;
        if (!eq || !str_eq_nocase(str_trim((struct str){pair.p, (size_t)(eq - pair.p)}), name))
            continue;
        return unquote(str_trim((struct str){eq + 1, (size_t)(pair.p + pair.len - eq - 1)}), out, cap, found);
    }
    return true;
}
