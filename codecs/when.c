/* protocol.md 1.3, to the letter. */
#include "codecs/when.h"

#define SECOND INT64_C(1000000000)
#define DAY (INT64_C(86400) * SECOND)

enum { TEXT_MAX = 64 };

static int64_t scale(int64_t v, int64_t factor)
{
    int64_t r;
    return __builtin_mul_overflow(v, factor, &r) ? INT64_MAX : r;
}

static int64_t number(struct str s)
{
    int64_t v = 0;

    for (size_t i = 0; i < s.len; i++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, s.p[i] - '0', &v))
            return INT64_MAX;
    return v;
}

/* Days since 1970 of a date of the Gregorian calendar; the algorithm counts years from March. */
static int64_t days(int64_t y, int64_t m, int64_t d)
{
    y -= m <= 2;
    int64_t era = y / 400, yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static bool date(int64_t v, int64_t *ns)
{
    static const int8_t length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t y = v / 10000, m = v / 100 % 100, d = v % 100;
    bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;

    if (y <= 1900 || m < 1 || m > 12 || d < 1 || d > length[m - 1] + (m == 2 && leap))
        return false;
    *ns = scale(days(y, m, d), DAY);
    return true;
}

static int64_t absolute(struct str s)
{
    int64_t v = number(s), ns;

    if (s.len == 8 && date(v, &ns))
        return ns;
    if (s.len == 19)
        return v;
    return scale(v, s.len == 16 ? 1000 : s.len == 13 ? 1000000 : SECOND);
}

static int64_t unit_of(struct str u)
{
    static const struct {
        struct str prefix;
        int64_t ns;
    } units[] = {
        {{"s", 1}, SECOND},        {{"mon", 3}, 30 * DAY},  {{"M", 1}, 30 * DAY},
        {{"min", 3}, 60 * SECOND}, {{"m", 1}, 60 * SECOND}, {{"h", 1}, 3600 * SECOND},
        {{"d", 1}, DAY},           {{"w", 1}, 7 * DAY},     {{"y", 1}, 365 * DAY},
    };

    for (size_t i = 0; i < COUNTOF(units); i++)
        if (str_starts(u, units[i].prefix))
            return units[i].ns;
    return 0;
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Sum of <digits><unit> groups. */
static int64_t span(struct str s)
{
    int64_t sum = 0;
    bool over = false;

    for (size_t i = 0; i < s.len;) {
        size_t n = i, u;
        while (n < s.len && digit(s.p[n]))
            n++;
        for (u = n; u < s.len && !digit(s.p[u]);)
            u++;
        if (n > i)
            sum =
                add_sat(sum, scale(number((struct str){s.p + i, n - i}), unit_of((struct str){s.p + n, u - n})), &over);
        i = u;
    }
    return sum;
}

int64_t when_parse(struct str text, int64_t now_ns)
{
    char clean[TEXT_MAX];
    struct str s = {clean, 0}, trimmed = str_trim(text);
    bool digits = true, over = false;
    char sign = 0;

    for (size_t i = 0; i < trimmed.len && s.len < sizeof clean; i++) {
        char c = trimmed.p[i];
        if (c == '_' || c == ',' || c == ' ')
            continue;
        digits &= digit(c);
        clean[s.len++] = c;
    }
    if (s.len == 0)
        return now_ns;
    if (digits)
        return absolute(s);
    const char *at = memchr(clean, '+', s.len);
    if (!at)
        at = memchr(clean, '-', s.len);
    if (!at)
        return now_ns;
    sign = *at++;
    int64_t d = span((struct str){at, (size_t)(clean + s.len - at)});
    return add_sat(now_ns, sign == '-' ? -d : d, &over);
}
