/* Environment variables in configuration values: looked up once, strictly, never inside each other. */
#include "conf/expand.h"

#include <stdlib.h>

static bool is_name(struct str s)
{
    if (s.len == 0 || s.len > 128 || (s.p[0] >= '0' && s.p[0] <= '9'))
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'))
            return false;
    }
    return true;
}

/* The text between the braces: NAME or NAME:-default. */
static enum err look_up(struct str inside, struct str *value, struct fault *f)
{
    char name[129];
    const char *sep = memmem(inside.p, inside.len, ":-", 2);
    struct str n = {inside.p, sep ? (size_t)(sep - inside.p) : inside.len};

    if (!is_name(n))
        return fault_set(f, E_BAD_INPUT, "\"${%.*s}\" is not the name of a variable", (int)(n.len > 60 ? 60 : n.len),
                         n.p);
    memcpy(name, n.p, n.len);
    name[n.len] = '\0';
    const char *env = getenv(name);
    if (sep && (!env || !*env))
        *value = (struct str){sep + 2, inside.len - n.len - 2};
    else if (!env)
        return fault_set(f, E_BAD_INPUT, "the variable %s is not set; ${%s:-TEXT} would give a default", name, name);
    else
        *value = str_of(env);
    if (value->len && (memchr(value->p, '\n', value->len) || !utf8_valid(*value)))
        return fault_set(f, E_BAD_INPUT, "the variable %s is not one line of UTF-8", name);
    return E_OK;
}

/* One '$' at in.p[i]; moves i behind what it stands for. */
static enum err step(struct str in, size_t *i, struct buf *b, struct fault *f)
{
    struct str value;

    if (*i + 1 < in.len && in.p[*i + 1] == '$') {
        buf_char(b, '$');
        *i += 2;
        return E_OK;
    }
    if (*i + 1 >= in.len || in.p[*i + 1] != '{')
        return fault_set(f, E_BAD_INPUT, "a single '$': write $$ for a dollar sign, ${NAME} for a variable");
    struct str rest = {in.p + *i + 2, in.len - *i - 2};
    const char *end = rest.len ? memchr(rest.p, '}', rest.len) : NULL;
    if (!end)
        return fault_set(f, E_BAD_INPUT, "\"${\" without its \"}\"");
    struct str inside = {rest.p, (size_t)(end - rest.p)};
    if (memmem(inside.p, inside.len, "${", 2))
        return fault_set(f, E_BAD_INPUT, "a variable inside of a variable's default");
    enum err e = look_up(inside, &value, f);
    if (e == E_OK)
        buf_str(b, value);
    *i += inside.len + 3;
    return e;
}

enum err expand(struct arena *a, struct str in, struct str *out, struct fault *f)
{
    struct buf b = {0};
    enum err e = E_OK;

    *out = in;
    if (in.len == 0 || !memchr(in.p, '$', in.len))
        return E_OK;
    for (size_t i = 0; i < in.len && e == E_OK;) {
        if (in.p[i] == '$') {
            e = step(in, &i, &b, f);
        } else {
            buf_char(&b, in.p[i]);
            i++;
        }
    }
    if (e == E_OK && (b.failed || !arena_str(a, buf_view(&b), out)))
        e = fault_set(f, E_NO_MEMORY, NULL);
    buf_free(&b);
    return e;
}
