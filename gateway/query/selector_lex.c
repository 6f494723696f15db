/* Lexing of selectors: strings as Go writes them ("..." and '...' with escapes, `...` without), names as Prometheus
 * does. */
#include "gateway/query/selector_lex.h"

struct lex lex_of(struct str text, struct fault *f)
{
    return (struct lex){text, 0, f};
}

size_t lex_at(const struct lex *l)
{
    return l->at;
}

bool lex_end(const struct lex *l)
{
    return l->at == l->text.len;
}

static struct str rest(const struct lex *l)
{
    return (struct str){l->text.p + l->at, l->text.len - l->at};
}

void lex_space(struct lex *l)
{
    while (!lex_end(l) && (l->text.p[l->at] == ' ' || (l->text.p[l->at] >= '\t' && l->text.p[l->at] <= '\r')))
        l->at++;
}

bool lex_peek(const struct lex *l, struct str token)
{
    return str_starts(rest(l), token);
}

bool lex_take(struct lex *l, struct str token)
{
    bool there = lex_peek(l, token);
    if (there)
        l->at += token.len;
    return there;
}

enum err lex_fail_at(struct lex *l, size_t at, const char *what)
{
    return fault_set(l->fault, E_BAD_REQUEST, "parameter \"match\": byte %zu: %s", at, what);
}

enum err lex_fail(struct lex *l, const char *what)
{
    return lex_fail_at(l, l->at, what);
}

enum err lex_no_memory(struct lex *l)
{
    return fault_set(l->fault, E_NO_MEMORY, NULL);
}

static bool is_name_char(char c, bool first, bool colon)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (colon && c == ':'))
        return true;
    return !first && c >= '0' && c <= '9';
}

static enum err bare_name(struct lex *l, bool colon, struct buf *out)
{
    size_t start = l->at;
    while (!lex_end(l) && is_name_char(l->text.p[l->at], l->at == start, colon))
        l->at++;
    if (l->at == start)
        return lex_fail(l, "a label name is wanted");
    buf_add(out, l->text.p + start, l->at - start);
    return E_OK;
}

enum err lex_metric(struct lex *l, struct buf *out)
{
    return bare_name(l, true, out);
}

enum err lex_name(struct lex *l, struct buf *out)
{
    size_t start = l->at;
    if (lex_end(l) || !strchr("\"'`", l->text.p[l->at]))
        return bare_name(l, false, out);
    enum err e = lex_string(l, out);
    if (e == E_OK && (out->len == 0 || !utf8_valid(buf_view(out))))
        e = lex_fail_at(l, start, "a quoted name is empty or not UTF-8");
    return e;
}

static int digit_value(char c, int base)
{
    int v = 99;
    if (c >= '0' && c <= '9')
        v = c - '0';
    else if (c >= 'a' && c <= 'f')
        v = c - 'a' + 10;
    else if (c >= 'A' && c <= 'F')
        v = c - 'A' + 10;
    return v < base ? v : -1;
}

static void add_rune(struct buf *out, uint32_t r)
{
    if (r < 0x80) {
        buf_char(out, (char)r);
    } else if (r < 0x800) {
        buf_char(out, (char)(0xc0 | r >> 6));
        buf_char(out, (char)(0x80 | (r & 63)));
    } else if (r < 0x10000) {
        buf_char(out, (char)(0xe0 | r >> 12));
        buf_char(out, (char)(0x80 | (r >> 6 & 63)));
        buf_char(out, (char)(0x80 | (r & 63)));
    } else {
        buf_char(out, (char)(0xf0 | r >> 18));
        buf_char(out, (char)(0x80 | (r >> 12 & 63)));
        buf_char(out, (char)(0x80 | (r >> 6 & 63)));
        buf_char(out, (char)(0x80 | (r & 63)));
    }
}

/* n digits of a base; byte: an octet, else a code point. */
static enum err add_coded(struct lex *l, size_t start, int n, int base, bool byte, struct buf *out)
{
    uint32_t v = 0;
    for (int i = 0; i < n; i++) {
        int d = lex_end(l) ? -1 : digit_value(l->text.p[l->at], base);
        if (d < 0)
            return lex_fail_at(l, start, "a bad escape");
        v = v * (uint32_t)base + (uint32_t)d;
        l->at++;
    }
    if (byte ? v > 255 : v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
        return lex_fail_at(l, start, "a bad escape");
    if (byte)
        buf_char(out, (char)v);
    else
        add_rune(out, v);
    return E_OK;
}

/* Behind the backslash. */
static enum err add_escape(struct lex *l, char quote, struct buf *out)
{
    static const char from[] = "abfnrtv\\", to[] = "\a\b\f\n\r\t\v\\";
    size_t start = l->at - 1;
    char c = lex_end(l) ? '\0' : l->text.p[l->at++];
    const char *simple = c ? strchr(from, c) : NULL;
    if (simple) {
        buf_char(out, to[simple - from]);
        return E_OK;
    }
    if (c == quote) {
        buf_char(out, c);
        return E_OK;
    }
    switch (c) {
    case 'x':
        return add_coded(l, start, 2, 16, true, out);
    case 'u':
        return add_coded(l, start, 4, 16, false, out);
    case 'U':
        return add_coded(l, start, 8, 16, false, out);
    case '0':
    case '1':
    case '2':
    case '3':
        l->at--;
        return add_coded(l, start, 3, 8, true, out);
    default:
        return lex_fail_at(l, start, "a bad escape");
    }
}

enum err lex_string(struct lex *l, struct buf *out)
{
    size_t start = l->at;
    char quote = lex_end(l) ? '\0' : l->text.p[l->at];
    if (quote != '"' && quote != '\'' && quote != '`')
        return lex_fail(l, "a string in quotes is wanted");
    for (l->at++; !lex_end(l);) {
        char c = l->text.p[l->at++];
        if (c == quote)
            return E_OK;
        if (c == '\n' && quote != '`')
            return lex_fail_at(l, start, "a string goes over the end of its line");
        enum err e = E_OK;
        if (c == '\\' && quote != '`')
            e = add_escape(l, quote, out);
        else
            buf_char(out, c);
        if (e)
            return e;
    }
    return lex_fail_at(l, start, "a string without its end");
}
