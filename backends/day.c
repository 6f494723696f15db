/* Days since 1970 and their text. */
#include "backends/day.h"

#include <stdio.h>
#include <time.h>

int64_t day_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int32_t day_of(int64_t ns)
{
    return (int32_t)(ns / DAY_NS - (ns % DAY_NS < 0));
}

int64_t day_start(int32_t day)
{
    int64_t ns;

    if (!__builtin_mul_overflow((int64_t)day, DAY_NS, &ns))
        return ns;
    return day < 0 ? INT64_MIN : INT64_MAX;
}

void day_format(int32_t day, char out[DAY_TEXT])
{
    time_t t = (time_t)day * 86400;
    struct tm tm;

    if (!gmtime_r(&t, &tm) || !strftime(out, DAY_TEXT, "%Y-%m-%d", &tm))
        snprintf(out, DAY_TEXT, "day%d", (int)day);
}

bool day_parse(const char **text, int32_t *day)
{
    int year, month, date, used = 0;
    struct tm tm = {0};

    if (sscanf(*text, "%4d-%2d-%2d%n", &year, &month, &date, &used) != 3 || !used)
        return false;
    tm.tm_year = year - 1900;
    tm.tm_mon = month - 1;
    tm.tm_mday = date;
    *day = (int32_t)(timegm(&tm) / 86400);
    *text += used;
    return true;
}
