/* Times of a query: RFC 3339, Unix time by its number of digits, `now` with offsets; and how answers write them. */
#include "gateway/query/window.h"

#include <stdio.h>
#include <time.h>

static const int64_t second_ns = 1000000000, minute_ns = 60 * INT64_C(1000000000);

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Exactly n digits off the front. */
static bool take_digits(struct str *s, size_t n, int64_t *out)
{
    *out = 0;
    if (s->len < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!is_digit(s->p[i]))
            return false;
        *out = *out * 10 + (s->p[i] - '0');
    }
    *s = (struct str){s->p + n, s->len - n};
    return true;
}

static bool take_char(struct str *s, const char *any)
{
    if (s->len == 0 || s->p[0] == 0 || !strchr(any, s->p[0]))
        return false;
    *s = (struct str){s->p + 1, s->len - 1};
    return true;
}

/* A fraction of a second, any number of digits; those below a nanosecond are cut. */
static bool take_fraction(struct str *s, int64_t *ns)
{
    int64_t unit = second_ns / 10;
    *ns = 0;
    if (!take_char(s, ".,"))
        return true;
    if (s->len == 0 || !is_digit(s->p[0]))
        return false;
    while (s->len && is_digit(s->p[0])) {
        *ns += unit * (s->p[0] - '0');
        unit /= 10;
        *s = (struct str){s->p + 1, s->len - 1};
    }
    return true;
}

/* An unencoded '+' of a URL arrives as a space: it can mean nothing else here. */
static bool take_offset(struct str *s, int64_t *seconds)
{
    int64_t hours, minutes;
    bool west = s->len && s->p[0] == '-';
    *seconds = 0;
    if (take_char(s, "Zz"))
        return true;
    if (!take_char(s, "+- ") || !take_digits(s, 2, &hours) || !take_char(s, ":") || !take_digits(s, 2, &minutes))
        return false;
    *seconds = (hours * 3600 + minutes * 60) * (west ? -1 : 1);
    return hours < 24 && minutes < 60;
}

static int month_days(int64_t year, int64_t month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

/* Days since 1970 of a date of the civil calendar; year >= 1. */
static int64_t civil_days(int64_t year, int64_t month, int64_t day)
{
    int64_t y = year - (month <= 2), era = y / 400, of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool to_ns(int64_t seconds, int64_t ns, int64_t *out)
{
    int64_t whole;
    return !__builtin_mul_overflow(seconds, second_ns, &whole) && !__builtin_add_overflow(whole, ns, out);
}

static bool parse_rfc3339(struct str s, int64_t *out)
{
    int64_t year, month, day, hour, minute, second, ns, offset;
    if (!take_digits(&s, 4, &year) || !take_char(&s, "-") || !take_digits(&s, 2, &month) || !take_char(&s, "-"))
        return false;
    if (!take_digits(&s, 2, &day) || !take_char(&s, "Tt ") || !take_digits(&s, 2, &hour) || !take_char(&s, ":"))
        return false;
    if (!take_digits(&s, 2, &minute) || !take_char(&s, ":") || !take_digits(&s, 2, &second) || !take_fraction(&s, &ns))
        return false;
    if (!take_offset(&s, &offset) || s.len)
        return false;
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > month_days(year, month))
        return false;
    if (hour > 23 || minute > 59 || second > 60)
        return false;
    return to_ns(civil_days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset, ns, out);
}

/* The number of digits says the unit: up to 11 seconds, up to 14 ms, up to 17 us, up to 19 ns. */
static bool parse_unix(struct str s, int64_t *out)
{
    static const struct {
        size_t digits;
        int64_t factor;
    } units[] = {{11, 1000000000}, {14, 1000000}, {17, 1000}, {19, 1}};
    int64_t v = 0;
    if (s.len == 0 || s.len > 19)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!is_digit(s.p[i]) || __builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, s.p[i] - '0', &v))
            return false;
    for (size_t u = 0; u < COUNTOF(units); u++)
        if (s.len <= units[u].digits)
            return !__builtin_mul_overflow(v, units[u].factor, out);
    return false;
}

static int64_t unit_seconds(struct str *s)
{
    static const struct {
        struct str name;
        int64_t seconds;
    } units[] = {{{"s", 1}, 1}, {{"m", 1}, 60}, {{"h", 1}, 3600}, {{"d", 1}, 86400}, {{"w", 1}, 7 * 86400}};
    for (size_t i = 0; i < COUNTOF(units); i++) {
        if (!str_starts(*s, units[i].name))
            continue;
        *s = (struct str){s->p + 1, s->len - 1};
        return units[i].seconds;
    }
    return 0;
}

/* Amounts with units, one behind the other. */
static bool take_seconds(struct str s, int64_t *seconds)
{
    *seconds = 0;
    while (s.len) {
        int64_t v;
        size_t n = 0;
        while (n < s.len && is_digit(s.p[n]))
            n++;
        if (n == 0 || n > 9 || !take_digits(&s, n, &v))
            return false;
        int64_t unit = unit_seconds(&s);
        if (unit == 0 || __builtin_add_overflow(*seconds, v * unit, seconds))
            return false;
    }
    return true;
}

bool window_duration(struct str text, int64_t *out_ns)
{
    int64_t seconds;
    struct str digits = text;
    if (text.len == 0 || text.len > 32)
        return false;
    if (!take_seconds(text, &seconds) && (text.len > 9 || !take_digits(&digits, text.len, &seconds)))
        return false;
    return seconds > 0 && to_ns(seconds, 0, out_ns);
}

/* now, now-1h, now-1h30m, now+5m ('+' may have become a space). */
static bool parse_relative(struct str s, int64_t now_ns, int64_t *out)
{
    int64_t seconds;
    if (!str_starts(s, STR("now")))
        return false;
    s = (struct str){s.p + 3, s.len - 3};
    *out = now_ns;
    if (s.len == 0)
        return true;
    int64_t sign = s.p[0] == '-' ? -1 : 1;
    if (!take_char(&s, "+- ") || s.len == 0 || !take_seconds(s, &seconds))
        return false;
    return to_ns(sign * seconds, now_ns, out);
}

bool window_time(struct str text, int64_t now_ns, int64_t *out)
{
    text = str_trim(text);
    return parse_unix(text, out) || parse_rfc3339(text, out) || parse_relative(text, now_ns, out);
}

static int64_t floor_minute(int64_t ns)
{
    int64_t rest = ns % minute_ns;
    if (rest < 0)
        rest += minute_ns;
    return ns < INT64_MIN + minute_ns ? INT64_MIN : ns - rest;
}

static int64_t ceil_minute(int64_t ns)
{
    int64_t down = floor_minute(ns);
    return down == ns || ns > INT64_MAX - minute_ns ? ns : down + minute_ns;
}

static enum err refuse(struct fault *f, const char *name, struct str text)
{
    return fault_set(f, E_BAD_REQUEST,
                     "parameter \"%s\": \"%.*s\" is no time; wanted: RFC 3339, Unix time in s, ms, us or ns, now, "
                     "now-1h (s, m, h, d, w)",
                     name, (int)(text.len > 40 ? 40 : text.len), text.p);
}

enum err window_parse(struct window *w, struct str from, struct str until, int64_t now_ns, struct fault *f)
{
    const int64_t hour_ns = 60 * minute_ns;
    w->until_ns = now_ns;
    if (until.len && !window_time(until, now_ns, &w->until_ns))
        return refuse(f, "until", until);
    w->from_ns = w->until_ns < INT64_MIN + hour_ns ? INT64_MIN : w->until_ns - hour_ns;
    if (from.len && !window_time(from, now_ns, &w->from_ns))
        return refuse(f, "from", from);
    if (w->until_ns < w->from_ns)
        return fault_set(f, E_BAD_REQUEST, "parameter \"until\"%s is before \"from\"", until.len ? "" : " (now)");
    w->by_default = from.len == 0 && until.len == 0;
    w->from_ns = floor_minute(w->from_ns);
    w->until_ns = ceil_minute(w->until_ns);
    return E_OK;
}

void window_format(int64_t ns, char out[WINDOW_TEXT])
{
    int64_t rest = ns % second_ns;
    time_t t = (time_t)(ns / second_ns - (rest < 0));
    struct tm tm = {0};
    char day[32] = "";
    gmtime_r(&t, &tm);
    strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out, WINDOW_TEXT, "%s.%09dZ", day, (int)(rest < 0 ? rest + second_ns : rest));
}
