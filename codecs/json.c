/* RFC 8259 as a machine over single bytes, with a fast way through the plain parts of strings. */
#include "codecs/json.h"

static enum json_event bad(struct json *j, const char *why)
{
    j->reason = why;
    return JSON_BAD;
}

static void after_value(struct json *j)
{
    j->state = j->depth ? JS_COMMA : JS_DONE;
}

static bool in_array(const struct json *j)
{
    return j->depth && (j->arrays >> (j->depth - 1) & 1);
}

static enum json_event open(struct json *j, bool array)
{
    if (j->depth == JSON_DEPTH_MAX)
        return bad(j, "nested too deep");
    j->arrays = (j->arrays & ~(UINT64_C(1) << j->depth)) | (uint64_t)array << j->depth;
    j->depth++;
    j->state = array ? JS_VALUE_OR_END : JS_KEY_OR_END;
    return array ? JSON_ARRAY : JSON_OBJECT;
}

static enum json_event close(struct json *j)
{
    bool array = in_array(j);

    j->depth--;
    after_value(j);
    return array ? JSON_ARRAY_END : JSON_OBJECT_END;
}

static bool scalar_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == 'E' || c == '-' || c == '+' || c == '.';
}

static enum json_event begin_value(struct json *j, char c)
{
    if (c == '{' || c == '[')
        return open(j, c == '[');
    if (c == '"') {
        j->state = JS_IN_STRING;
        return JSON_STRING;
    }
    if (!scalar_char(c))
        return bad(j, "unexpected character where a value should be");
    j->state = JS_IN_SCALAR;
    j->text[0] = c;
    j->n_text = 1;
    return JSON_NEED_MORE;
}

static bool digits(const char *p, size_t n, size_t *i)
{
    size_t from = *i;

    while (*i < n && p[*i] >= '0' && p[*i] <= '9')
        ++*i;
    return *i > from;
}

static bool scalar_valid(struct str s)
{
    size_t i = s.len && s.p[0] == '-';

    if (str_eq(s, STR("true")) || str_eq(s, STR("false")) || str_eq(s, STR("null")))
        return true;
    if (i + 1 < s.len && s.p[i] == '0' && s.p[i + 1] >= '0' && s.p[i + 1] <= '9')
        return false;
    if (!digits(s.p, s.len, &i))
        return false;
    if (i < s.len && s.p[i] == '.' && (i++, !digits(s.p, s.len, &i)))
        return false;
    if (i < s.len && (s.p[i] == 'e' || s.p[i] == 'E')) {
        i++;
        i += i < s.len && (s.p[i] == '+' || s.p[i] == '-');
        if (!digits(s.p, s.len, &i))
            return false;
    }
    return i == s.len;
}

static enum json_event end_scalar(struct json *j, struct str *text)
{
    *text = (struct str){j->text, j->n_text};
    after_value(j);
    return scalar_valid(*text) ? JSON_SCALAR : bad(j, "bad number or literal");
}

static enum json_event in_scalar(struct json *j, struct str *in, struct str *text)
{
    while (in->len && scalar_char(*in->p)) {
        if (j->n_text == JSON_KEY_MAX)
            return bad(j, "number too long");
        j->text[j->n_text++] = *in->p++;
        in->len--;
    }
    return in->len ? end_scalar(j, text) : JSON_NEED_MORE;
}

static size_t utf8_put(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    size_t n = c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((n == 3 ? 0xe0 : 0xf0) | c);
    return n;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One byte of an escape. *n: bytes of `out` that it made. false: not an escape. */
static bool in_escape(struct json *j, char c, char *out, size_t *n)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";

    *n = 0;
    if (j->escape == ESC_BACKSLASH) {
        const char *at = c ? strchr(from, c) : NULL;
        if (c == 'u') {
            j->escape = ESC_HEX;
            j->hex = j->n_hex = 0;
            return true;
        }
        if (!at || j->high)
            return false;
        out[(*n)++] = to[at - from];
        j->escape = ESC_NONE;
        return true;
    }
    int v = hex_value(c);
    if (v < 0)
        return false;
    j->hex = j->hex << 4 | (uint32_t)v;
    if (++j->n_hex < 4)
        return true;
    j->escape = ESC_NONE;
    bool low = j->hex >= 0xdc00 && j->hex < 0xe000;
    if (low != (j->high != 0))
        return false;
    if (j->hex >= 0xd800 && j->hex < 0xdc00) {
        j->high = j->hex;
        return true;
    }
    *n = utf8_put(out, low ? 0x10000 + ((j->high - 0xd800) << 10) + (j->hex - 0xdc00) : j->hex);
    j->high = 0;
    return true;
}

/* Length of the run without quote, backslash or control character. */
static size_t plain(struct str in)
{
    size_t n = 0;

    while (n < in.len && in.p[n] != '"' && in.p[n] != '\\' && (uint8_t)in.p[n] >= 0x20)
        n++;
    return n;
}

enum string_step { STR_MORE, STR_PIECE, STR_END, STR_BAD };

/* A run, or one whole escape (into j->text), or the end. */
static enum string_step in_string(struct json *j, struct str *in, struct str *piece, char *made)
{
    while (in->len) {
        char c = *in->p;
        size_t n = j->escape == ESC_NONE ? plain(*in) : 0;
        if (n) {
            if (j->high)
                return STR_BAD;
            *piece = (struct str){in->p, n};
            in->p += n;
            in->len -= n;
            return STR_PIECE;
        }
        in->p++;
        in->len--;
        if (j->escape != ESC_NONE) {
            if (!in_escape(j, c, made, &n))
                return STR_BAD;
            *piece = (struct str){made, n};
            if (n)
                return STR_PIECE;
        } else if (c == '\\') {
            j->escape = ESC_BACKSLASH;
        } else {
            return c == '"' && !j->high ? STR_END : STR_BAD;
        }
    }
    return STR_MORE;
}

static enum json_event in_value_string(struct json *j, struct str *in, struct str *text)
{
    enum string_step s = in_string(j, in, text, j->text);

    if (s == STR_BAD)
        return bad(j, "bad escape or control character in a string");
    if (s == STR_END)
        after_value(j);
    return s == STR_MORE ? JSON_NEED_MORE : s == STR_END ? JSON_STRING_END : JSON_PIECE;
}

static enum json_event in_key(struct json *j, struct str *in, struct str *text)
{
    char made[4];
    struct str piece;
    enum string_step s;

    while ((s = in_string(j, in, &piece, made)) == STR_PIECE) {
        size_t n = piece.len < JSON_KEY_MAX - j->n_text ? piece.len : JSON_KEY_MAX - j->n_text;
        memcpy(j->text + j->n_text, piece.p, n);
        j->n_text += n;
    }
    if (s == STR_BAD)
        return bad(j, "bad escape or control character in a key");
    if (s == STR_MORE)
        return JSON_NEED_MORE;
    *text = (struct str){j->text, j->n_text};
    j->state = JS_COLON;
    return JSON_KEY;
}

/* A byte between tokens. JSON_NEED_MORE: no event yet. */
static enum json_event between(struct json *j, char c)
{
    switch (j->state) {
    case JS_VALUE_OR_END:
        if (c == ']')
            return close(j);
        return begin_value(j, c);
    case JS_VALUE:
        return begin_value(j, c);
    case JS_KEY_OR_END:
    case JS_KEY_NEXT:
        if (c == '}' && j->state == JS_KEY_OR_END)
            return close(j);
        j->state = JS_IN_KEY;
        j->n_text = 0;
        return c == '"' ? JSON_NEED_MORE : bad(j, "a key should be here");
    case JS_COLON:
        j->state = JS_VALUE;
        return c == ':' ? JSON_NEED_MORE : bad(j, "':' should be here");
    case JS_COMMA:
        if (c == (in_array(j) ? ']' : '}'))
            return close(j);
        j->state = in_array(j) ? JS_VALUE : JS_KEY_NEXT;
        return c == ',' ? JSON_NEED_MORE : bad(j, "',' or the end should be here");
    default:
        return bad(j, "something after the end");
    }
}

enum json_event json_next(struct json *j, struct str *in, struct str *text)
{
    enum json_event e = JSON_NEED_MORE;

    *text = (struct str){"", 0};
    if (j->reason)
        return JSON_BAD;
    while (in->len && e == JSON_NEED_MORE) {
        if (j->state == JS_IN_SCALAR)
            return in_scalar(j, in, text);
        if (j->state == JS_IN_STRING)
            return in_value_string(j, in, text);
        if (j->state == JS_IN_KEY) {
            e = in_key(j, in, text);
            continue;
        }
        char c = *in->p++;
        in->len--;
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
            e = between(j, c);
    }
    return e;
}

bool json_done(struct json *j)
{
    struct str text;

    if (j->state == JS_IN_SCALAR && j->depth == 0)
        return end_scalar(j, &text) == JSON_SCALAR;
    return j->state == JS_DONE && !j->reason;
}
