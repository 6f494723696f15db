/* Numbers with units, and addresses. A unit is always written: 10 alone could be anything. */
#include "conf/value.h"

#include <inttypes.h>

struct unit {
    struct str name;
    uint64_t scale;
};

static const struct unit sizes[] = {
    {{"TiB", 3}, 1ull << 40},
    {{"GiB", 3}, 1ull << 30},
    {{"MiB", 3}, 1ull << 20},
    {{"KiB", 3}, 1ull << 10},
    {{"B", 1}, 1},
};
static const struct unit times[] = {
    {{"d", 1}, 86400000}, {{"h", 1}, 3600000}, {{"m", 1}, 60000}, {{"s", 1}, 1000}, {{"ms", 2}, 1},
};

/* Digits off the front of s. */
static enum value_result digits(struct str *s, uint64_t *n)
{
    size_t i = 0;

    for (*n = 0; i < s->len && s->p[i] >= '0' && s->p[i] <= '9'; i++)
        if (__builtin_mul_overflow(*n, 10, n) || __builtin_add_overflow(*n, (uint64_t)(s->p[i] - '0'), n))
            return VALUE_TOO_LARGE;
    s->p += i;
    s->len -= i;
    return i ? VALUE_OK : VALUE_NO_NUMBER;
}

static enum value_result with_unit(struct str s, const struct unit *units, size_t n_units, uint64_t *out)
{
    enum value_result r = digits(&s, out);

    if (r != VALUE_OK)
        return r;
    if (s.len == 0)
        return VALUE_NO_UNIT;
    for (size_t i = 0; i < n_units; i++)
        if (str_eq(s, units[i].name))
            return __builtin_mul_overflow(*out, units[i].scale, out) ? VALUE_TOO_LARGE : VALUE_OK;
    return VALUE_BAD_UNIT;
}

enum value_result value_count(struct str s, uint64_t *n)
{
    enum value_result r = digits(&s, n);
    return r == VALUE_OK && s.len ? VALUE_BAD_UNIT : r;
}

enum value_result value_size(struct str s, uint64_t *bytes)
{
    return with_unit(s, sizes, COUNTOF(sizes), bytes);
}

enum value_result value_time(struct str s, uint64_t *ms)
{
    return with_unit(s, times, COUNTOF(times), ms);
}

static bool is_host(struct str h, bool brackets)
{
    if (h.len == 0 || h.len > 253)
        return false;
    for (size_t i = 0; i < h.len; i++) {
        char c = h.p[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
        if (!(word || c == '_' || (brackets && (c == ':' || c == '%'))))
            return false;
    }
    return true;
}

bool value_address(struct str s, struct str *host, uint16_t *port)
{
    uint64_t n;
    const char *colon = s.len ? memrchr(s.p, ':', s.len) : NULL;

    if (!colon)
        return false;
    *host = (struct str){s.p, (size_t)(colon - s.p)};
    struct str digits_of_port = {colon + 1, s.len - host->len - 1};
    bool brackets = host->len > 2 && host->p[0] == '[' && host->p[host->len - 1] == ']';
    if (brackets)
        *host = (struct str){host->p + 1, host->len - 2};
    if (!is_host(*host, brackets) || value_count(digits_of_port, &n) != VALUE_OK || n > 65535)
        return false;
    *port = (uint16_t)n;
    return true;
}

static void text(struct buf *b, uint64_t n, const struct unit *units, size_t n_units)
{
    size_t i = 0;

    while (i < n_units - 1 && (n == 0 || n % units[i].scale))
        i++;
    buf_printf(b, "%" PRIu64 "%s", n / units[i].scale, units[i].name.p);
}

void value_size_text(struct buf *b, uint64_t bytes)
{
    text(b, bytes, sizes, COUNTOF(sizes));
}

void value_time_text(struct buf *b, uint64_t ms)
{
    text(b, ms, times, COUNTOF(times));
}
