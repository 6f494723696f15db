/* The JSON writer: strings with everything escaped that a terminal, a browser or a log could trip over; exact integers.
 */
#include "gateway/json.h"

#include <inttypes.h>
#include <stdio.h>

size_t json_utf8(struct str s)
{
    size_t n = 1;
    if (s.len == 0)
        return 0;
    unsigned char c = (unsigned char)s.p[0];
    if (c >= 0xf0)
        n = 4;
    else if (c >= 0xe0)
        n = 3;
    else if (c >= 0x80)
        n = 2;
    return n <= s.len && utf8_valid((struct str){s.p, n}) ? n : 0;
}

static void put_comma(struct json *j)
{
    if (j->comma)
        buf_char(j->out, ',');
    j->comma = true;
}

void json_open(struct json *j, char bracket)
{
    put_comma(j);
    buf_char(j->out, bracket);
    j->comma = false;
}

void json_close(struct json *j, char bracket)
{
    buf_char(j->out, bracket);
    j->comma = true;
}

/* C1 controls are two bytes in UTF-8, c2 80 to c2 9f. */
static bool is_c1(const char *p, size_t n)
{
    return n == 2 && (unsigned char)p[0] == 0xc2 && (unsigned char)p[1] < 0xa0;
}

static void put_char(struct buf *out, const char *p, size_t n)
{
    unsigned char c = (unsigned char)p[0];
    if (n == 0)
        buf_str(out, STR("\xef\xbf\xbd"));
    else if (c == '"' || c == '\\')
        buf_printf(out, "\\%c", c);
    else if (c == '\n')
        buf_str(out, STR("\\n"));
    else if (c < 0x20 || c == 0x7f)
        buf_printf(out, "\\u%04x", c);
    else if (is_c1(p, n))
        buf_printf(out, "\\u%04x", (unsigned char)p[1]);
    else
        buf_add(out, p, n);
}

static bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void json_str(struct json *j, struct str s)
{
    put_comma(j);
    buf_char(j->out, '"');
    for (size_t i = 0; i < s.len;) {
        size_t run = i;
        while (run < s.len && is_plain(s.p[run]))
            run++;
        buf_add(j->out, s.p + i, run - i);
        i = run;
        if (i == s.len)
            break;
        size_t n = json_utf8((struct str){s.p + i, s.len - i});
        put_char(j->out, s.p + i, n);
        i += n ? n : 1;
    }
    buf_char(j->out, '"');
}

void json_key_str(struct json *j, struct str key)
{
    json_str(j, key);
    buf_char(j->out, ':');
    j->comma = false;
}

void json_key(struct json *j, const char *key)
{
    json_key_str(j, str_of(key));
}

void json_int(struct json *j, int64_t v)
{
    put_comma(j);
    buf_printf(j->out, "%" PRId64, v);
}

void json_uint(struct json *j, uint64_t v)
{
    put_comma(j);
    buf_printf(j->out, "%" PRIu64, v);
}

void json_bool(struct json *j, bool v)
{
    put_comma(j);
    buf_str(j->out, str_of(v ? "true" : "false"));
}

void json_null(struct json *j)
{
    put_comma(j);
    buf_str(j->out, STR("null"));
}

void json_share(struct json *j, int64_t part, int64_t whole)
{
    put_comma(j);
    if (whole == 0 || part == 0)
        buf_char(j->out, '0');
    else
        buf_printf(j->out, "%.12g", (double)part / (double)whole);
}

void json_ratio(struct json *j, int64_t value, uint64_t times, uint64_t by)
{
    __int128 n = (__int128)value * (__int128)times;
    __int128 whole = n / (__int128)by;
    put_comma(j);
    if (n % (__int128)by == 0 && whole <= INT64_MAX && whole >= INT64_MIN)
        buf_printf(j->out, "%" PRId64, (int64_t)whole);
    else
        buf_printf(j->out, "%.15g", (double)n / (double)by);
}
