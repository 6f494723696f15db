/* A small machine over app{k=v,k=v}: no quoting, no escaping, the last of equal keys wins. */
#include "codecs/name.h"

enum { MAX_PAIRS = 512 };

bool name_printable(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = (uint8_t)s.p[i];
        if (c < 0x20 || c == 0x7f || (c == 0xc2 && i + 1 < s.len && (uint8_t)s.p[i + 1] < 0xa0))
            return false;
    }
    return utf8_valid(s);
}

static bool key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

static enum err key_check(struct str key, struct fault *f)
{
    if (key.len == 0)
        return fault_set(f, E_BAD_NAME, "name: label name is required");
    for (size_t i = 0; i < key.len; i++)
        if (!key_char(key.p[i]))
            return fault_set(f, E_BAD_NAME,
                             "name: invalid label name at byte %zu: only letters, digits, '_' and '.' are allowed", i);
    return E_OK;
}

static enum err put(struct name *n, struct str key, struct str value, struct fault *f)
{
    key = str_trim(key);
    value = str_trim(value);
    if (key_check(key, f) != E_OK)
        return f->err;
    if (!utf8_valid(value))
        return fault_set(f, E_BAD_NAME, "name: the value of label %.*s is not valid UTF-8", STR_ARG(key));
    for (uint32_t i = 0; i < n->n_labels; i++) {
        if (str_eq(n->labels[i].name, key)) {
            n->labels[i].value = value;
            return E_OK;
        }
    }
    n->labels[n->n_labels++] = (struct label){key, value};
    return E_OK;
}

/* Up to one of the two stops; *stop is which, 0 at the end of the text. Takes it off the front. */
static struct str until(struct str *s, char a, char b, char *stop)
{
    size_t n = 0;

    while (n < s->len && s->p[n] != a && s->p[n] != b)
        n++;
    struct str piece = {s->p, n};
    *stop = n < s->len ? s->p[n] : 0;
    n += n < s->len;
    s->p += n;
    s->len -= n;
    return piece;
}

static enum err pairs(struct name *n, struct str rest, struct fault *f)
{
    while (rest.len) {
        char stop;
        struct str key = until(&rest, '=', '}', &stop);
        if (stop != '=')
            return E_OK; /* closed, or a last pair without its end: ignored */
        struct str value = until(&rest, ',', '}', &stop);
        if (stop == 0)
            return E_OK;
        if (put(n, key, value, f) != E_OK)
            return f->err;
    }
    return E_OK;
}

enum err name_parse(struct name *n, struct str text, struct arena *a, struct fault *f)
{
    char stop;
    struct str rest = text;
    size_t equals = 0;

    *n = (struct name){.app = str_trim(until(&rest, '{', '{', &stop))};
    if (n->app.len == 0)
        return fault_set(f, E_BAD_NAME, "name: service name is required");
    if (!name_printable(n->app))
        return fault_set(f, E_BAD_NAME, "name: the application name is not printable UTF-8");
    for (size_t i = 0; i < rest.len; i++)
        equals += rest.p[i] == '=';
    if (equals > MAX_PAIRS)
        return fault_set(f, E_TOO_MANY_LABELS, "name: more than %d labels", MAX_PAIRS);
    n->labels = NEW(a, struct label, equals + 1);
    if (!n->labels)
        return arena_error(a, f);
    return pairs(n, rest, f);
}
