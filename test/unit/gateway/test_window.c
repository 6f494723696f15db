/* Times and windows of queries, as tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gateway/query/window.h"

static const int64_t now_ns = 1796040090 * INT64_C(1000000000) + 5; /* 2026-11-30T12:01:30.000000005Z */

static void test_times(void **state)
{
    static const struct {
        const char *text;
        int64_t ns;
    } good[] = {
        {"1796040000", 1796040000000000000},
        {"0", 0},
        {"1796040000123", 1796040000123000000},
        {"1796040000123456", 1796040000123456000},
        {"1796040000123456789", 1796040000123456789},
        {"now", 1796040090000000005},
        {"now-1h", 1796036490000000005},
        {"now-1h30m", 1796034690000000005},
        {"now+5m", 1796040390000000005},
        {"now 5m", 1796040390000000005}, /* a '+' that a URL took for a space */
        {"now-2w1d3s", 1796040087000000005 - 15 * 86400 * INT64_C(1000000000)},
        {" now ", 1796040090000000005},
        {"2026-11-30T12:00:00Z", 1796040000000000000},
        {"2026-11-30t12:00:00z", 1796040000000000000},
        {"2026-11-30 12:00:00Z", 1796040000000000000},
        {"2026-11-30T13:00:00+01:00", 1796040000000000000},
        {"2026-11-30T13:00:00 01:00", 1796040000000000000},
        {"2026-11-30T06:30:00-05:30", 1796040000000000000},
        {"2026-11-30T12:00:00.25Z", 1796040000250000000},
        {"2026-11-30T12:00:00.123456789Z", 1796040000123456789},
        {"2026-11-30T12:00:00.1234567899Z", 1796040000123456789},
        {"1970-01-01T00:00:00Z", 0},
        {"1969-12-31T23:59:59Z", -1000000000},
        {"2000-02-29T00:00:00Z", 951782400000000000},
    };
    static const char *const bad[] = {
        "",
        "tomorrow",
        "now-",
        "now-1",
        "now-1y",
        "now-h",
        "now*1h",
        "now-9999999999h",
        "now-999999999w",
        "-5",
        "1.5",
        "12345678901234567890",
        "9999999999999999999",
        "99999999999",
        "2026-11-30",
        "2026-11-30T12:00Z",
        "2026-11-30T12:00:00",
        "2026-11-30T12:00:00.Z",
        "2026-11-30T12:00:00Zx",
        "2026-13-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2026-00-10T00:00:00Z",
        "2026-11-31T00:00:00Z",
        "2026-11-30T24:00:00Z",
        "2026-11-30T12:00:00+24:00",
        "0000-01-01T00:00:00Z",
        "9999-01-01T00:00:00Z",
    };
    (void)state;
    for (size_t i = 0; i < COUNTOF(good); i++) {
        int64_t ns = -1;
        if (!window_time(str_of(good[i].text), now_ns, &ns) || ns != good[i].ns)
            fail_msg("%s: %lld, not %lld", good[i].text, (long long)ns, (long long)good[i].ns);
    }
    for (size_t i = 0; i < COUNTOF(bad); i++) {
        int64_t ns;
        if (window_time(str_of(bad[i]), now_ns, &ns))
            fail_msg("\"%s\" is taken for a time", bad[i]);
    }
}

static void test_windows(void **state)
{
    static const struct {
        const char *from, *until, *used_from, *used_until, *fault; /* fault: a part of the message */
    } list[] = {
        {"", "", "2026-11-30T11:01:00.000000000Z", "2026-11-30T12:02:00.000000000Z", NULL},
        {"now-10m", "", "2026-11-30T11:51:00.000000000Z", "2026-11-30T12:02:00.000000000Z", NULL},
        {"", "2026-11-30T10:00:00Z", "2026-11-30T09:00:00.000000000Z", "2026-11-30T10:00:00.000000000Z", NULL},
        {"2026-11-30T10:00:59.999Z", "2026-11-30T10:01:00.001Z", "2026-11-30T10:00:00.000000000Z",
         "2026-11-30T10:02:00.000000000Z", NULL},
        {"2026-11-30T10:00:10Z", "2026-11-30T10:00:10Z", "2026-11-30T10:00:00.000000000Z",
         "2026-11-30T10:01:00.000000000Z", NULL},
        {"1969-12-31T23:59:30Z", "0", "1969-12-31T23:59:00.000000000Z", "1970-01-01T00:00:00.000000000Z", NULL},
        {"0", "9223372036854775807", "1970-01-01T00:00:00.000000000Z", "2262-04-11T23:47:16.854775807Z", NULL},
        {"now", "now-1s", NULL, NULL, "\"until\""},
        {"now+1h", "", NULL, NULL, "\"until\" (now)"},
        {"x", "", NULL, NULL, "\"from\""},
        {"", "x", NULL, NULL, "\"until\""},
    };
    (void)state;
    for (size_t i = 0; i < COUNTOF(list); i++) {
        struct window w;
        struct fault f = {0};
        char text[WINDOW_TEXT];
        enum err e = window_parse(&w, str_of(list[i].from), str_of(list[i].until), now_ns, &f);
        if (list[i].fault) {
            assert_int_equal(e, E_BAD_REQUEST);
            assert_non_null(strstr(f.text, list[i].fault));
            continue;
        }
        assert_int_equal(e, E_OK);
        window_format(w.from_ns, text);
        assert_string_equal(text, list[i].used_from);
        window_format(w.until_ns, text);
        assert_string_equal(text, list[i].used_until);
        assert_int_equal(w.by_default, i == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_times), cmocka_unit_test(test_windows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
