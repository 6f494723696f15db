/* Times of expiry as RFC 3339 text in UTC, without the C library's time zones. */
#include <inttypes.h>
#include <stdio.h>

#include "auth/keyring.h"

/* Days since 1970-01-01 of a date of the Gregorian calendar; years from 0 on (era arithmetic over 400 years). */
static int64_t days_of(int64_t y, unsigned m, unsigned d)
{
    y -= m <= 2;
    int64_t era = y / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (int64_t)(m > 2 ? m - 3 : m + 9) + 2) / 5 + d - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static void date_of(int64_t days, int64_t *y, unsigned *m, unsigned *d)
{
    days += 719468;
    int64_t era = days / 146097, doe = days - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    *d = (unsigned)(doy - (153 * mp + 2) / 5 + 1);
    *m = (unsigned)(mp < 10 ? mp + 3 : mp - 9);
    *y = yoe + era * 400 + (*m <= 2);
}

void key_time_format(int64_t unix_s, char out[TIME_TEXT])
{
    int64_t y, days = unix_s / 86400, s = unix_s % 86400;
    unsigned m, d;

    ASSERT(unix_s >= 0 && unix_s < 253402300800); /* year 10000 */
    date_of(days, &y, &m, &d);
    snprintf(out, TIME_TEXT, "%04" PRId64 "-%02u-%02uT%02" PRId64 ":%02" PRId64 ":%02" PRId64 "Z", y, m, d, s / 3600,
             s / 60 % 60, s % 60);
}

static bool two(const char *p, unsigned most, unsigned *out)
{
    *out = (unsigned)(p[0] - '0') * 10 + (unsigned)(p[1] - '0');
    return *out <= most;
}

bool key_time_parse(struct str s, int64_t *unix_s)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:ddZ";
    unsigned hi, lo, month, day, h, m, sec;

    if (s.len != sizeof shape - 1)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (shape[i] == 'd' ? s.p[i] < '0' || s.p[i] > '9' : s.p[i] != shape[i])
            return false;
    if (!two(s.p, 99, &hi) || !two(s.p + 2, 99, &lo) || !two(s.p + 5, 12, &month) || !two(s.p + 8, 31, &day) ||
        !two(s.p + 11, 23, &h) || !two(s.p + 14, 59, &m) || !two(s.p + 17, 59, &sec) || month == 0 || day == 0)
        return false;
    int64_t y = hi * 100 + lo, back_y;
    unsigned back_m, back_d;
    if (y < 1970)
        return false;
    int64_t days = days_of(y, month, day);
    date_of(days, &back_y, &back_m, &back_d);
    *unix_s = days * 86400 + h * 3600 + m * 60 + sec;
    return back_d == day && back_m == month; /* no 31st of April */
}
