/* Numbers with units and addresses, both ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "conf/value.h"

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum value_result r;
        uint64_t n;
        const char *back;
    } t[] = {
        {"0B", VALUE_OK, 0, "0B"},
        {"1B", VALUE_OK, 1, "1B"},
        {"16MiB", VALUE_OK, 16 << 20, "16MiB"},
        {"1024KiB", VALUE_OK, 1 << 20, "1MiB"},
        {"1536KiB", VALUE_OK, 1536 << 10, "1536KiB"},
        {"2TiB", VALUE_OK, 2ull << 40, "2TiB"},
        {"16777215TiB", VALUE_OK, 16777215ull << 40, "16777215TiB"},
        {"16777216TiB", VALUE_TOO_LARGE, 0, NULL},
        {"18446744073709551615B", VALUE_OK, UINT64_MAX, "18446744073709551615B"},
        {"18446744073709551616B", VALUE_TOO_LARGE, 0, NULL},
        {"", VALUE_NO_NUMBER, 0, NULL},
        {"MiB", VALUE_NO_NUMBER, 0, NULL},
        {"-1B", VALUE_NO_NUMBER, 0, NULL},
        {"+1B", VALUE_NO_NUMBER, 0, NULL},
        {"1", VALUE_NO_UNIT, 0, NULL},
        {"1 MiB", VALUE_BAD_UNIT, 0, NULL},
        {"1mib", VALUE_BAD_UNIT, 0, NULL},
        {"1MB", VALUE_BAD_UNIT, 0, NULL},
        {"1.5GiB", VALUE_BAD_UNIT, 0, NULL},
        {"0x10B", VALUE_BAD_UNIT, 0, NULL},
    };
    for (size_t i = 0; i < COUNTOF(t); i++) {
        uint64_t n;
        struct buf b = {0};
        assert_int_equal(value_size(str_of(t[i].text), &n), t[i].r);
        if (t[i].r != VALUE_OK)
            continue;
        assert_int_equal(n, t[i].n);
        value_size_text(&b, n);
        assert_true(str_eq(buf_view(&b), str_of(t[i].back)));
        buf_free(&b);
    }
}

static void test_times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum value_result r;
        uint64_t ms;
    } t[] = {
        {"10s", VALUE_OK, 10000},  {"15d", VALUE_OK, 1296000000}, {"24h", VALUE_OK, 86400000},
        {"250ms", VALUE_OK, 250},  {"10m", VALUE_OK, 600000},     {"0s", VALUE_OK, 0},
        {"10", VALUE_NO_UNIT, 0},  {"10S", VALUE_BAD_UNIT, 0},    {"1h30m", VALUE_BAD_UNIT, 0},
        {"s", VALUE_NO_NUMBER, 0}, {"off", VALUE_NO_NUMBER, 0},   {"99999999999999d", VALUE_TOO_LARGE, 0},
    };
    for (size_t i = 0; i < COUNTOF(t); i++) {
        uint64_t ms;
        assert_int_equal(value_time(str_of(t[i].text), &ms), t[i].r);
        if (t[i].r == VALUE_OK)
            assert_int_equal(ms, t[i].ms);
    }
}

static void test_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host; /* host NULL: refused */
        unsigned port;
    } t[] = {
        {"127.0.0.1:4040", "127.0.0.1", 4040},
        {"localhost:0", "localhost", 0},
        {"[::1]:80", "::1", 80},
        {"[fe80::1%eth0]:65535", "fe80::1%eth0", 65535},
        {"a_b.example:1", "a_b.example", 1},
        {"::1:80", NULL, 0},
        {"[]:80", NULL, 0},
        {":80", NULL, 0},
        {"host", NULL, 0},
        {"host:", NULL, 0},
        {"host:65536", NULL, 0},
        {"host:80x", NULL, 0},
        {"host:-1", NULL, 0},
        {"ho st:1", NULL, 0},
        {"", NULL, 0},
    };
    for (size_t i = 0; i < COUNTOF(t); i++) {
        struct str host;
        uint16_t port;
        assert_int_equal(value_address(str_of(t[i].text), &host, &port), t[i].host != NULL);
        if (t[i].host) {
            assert_true(str_eq(host, str_of(t[i].host)));
            assert_int_equal(port, t[i].port);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
