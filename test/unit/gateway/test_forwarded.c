/* Addresses as text, and which of those that a request names is its client. */
#include "gateway/forwarded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void test_addresses(void **state)
{
    static const struct {
        const char *text, *said; /* NULL: refused */
        unsigned port;
    } t[] = {
        {"192.0.2.1", "192.0.2.1", 0},
        {"192.0.2.1:80", "192.0.2.1", 80},
        {"2001:DB8::1", "2001:db8::1", 0},
        {"[2001:db8::1]", "2001:db8::1", 0},
        {"[2001:db8::1]:65535", "2001:db8::1", 65535},
        {"::ffff:192.0.2.1", "192.0.2.1", 0},
        {"[::ffff:c000:201]:5", "192.0.2.1", 5},
        {"", NULL, 0},
        {"unknown", NULL, 0},
        {"_hidden", NULL, 0},
        {"192.0.2", NULL, 0},
        {"192.0.2.01", NULL, 0},
        {"192.0.2.1:", NULL, 0},
        {"192.0.2.1:65536", NULL, 0},
        {"192.0.2.1:-1", NULL, 0},
        {"192.0.2.1 ", NULL, 0},
        {"[192.0.2.1]", NULL, 0},
        {"[::1", NULL, 0},
        {"[::1]x", NULL, 0},
        {"[::1]:", NULL, 0},
        {"::1%eth0", NULL, 0},
        {":", NULL, 0},
        {"[]", NULL, 0},
        {"0x7f.1", NULL, 0},
        {"2001:db8::1:2:3:4:5:6:7:8:9", NULL, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNTOF(t); i++) {
        struct address a;
        char text[ADDRESS_TEXT];
        bool good = address_parse(&a, str_of(t[i].text));
        if (good != (t[i].said != NULL))
            fail_msg("%s", t[i].text);
        if (good) {
            assert_string_equal(address_text(&a, text), t[i].said);
            assert_int_equal(a.port, t[i].port);
        }
    }
}

/* 10.0.0.0/8 and fd00::/8 are ours. */
static void client_is(const char *peer, const char *const *lines, const char *want)
{
    static struct conf_network ours[] = {
        {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10}, 104},
        {{0xfd}, 8},
    };
    const struct conf conf = {.trusted_proxies = ours, .n_trusted_proxies = COUNTOF(ours)};
    struct header headers[8] = {{{NULL, 0}, {NULL, 0}}};
    struct head h = {.headers = headers};
    struct address at, client;
    char text[ADDRESS_TEXT];

    for (; *lines; lines++)
        headers[h.n_headers++] = (struct header){STR("X-Forwarded-For"), str_trim(str_of(*lines))};
    headers[h.n_headers++] = (struct header){STR("Forwarded"), STR("for=203.0.113.9")};
    assert_true(address_parse(&at, str_of(peer)));
    forwarded_client(&conf, &h, &at, &client);
    assert_string_equal(address_text(&client, text), want);
}
#define CLIENT(peer, want, ...) client_is(peer, (const char *const[]){__VA_ARGS__, NULL}, want)

static void test_hops(void **state)
{
    (void)state;
    CLIENT("192.0.2.1", "192.0.2.1", "198.51.100.7"); /* anybody can say so */
    CLIENT("10.0.0.1", "198.51.100.7", "1.1.1.1, 198.51.100.7");
    CLIENT("10.0.0.1", "198.51.100.7", "1.1.1.1 ,198.51.100.7, 10.9.9.9,\t10.8.8.8");
    CLIENT("10.0.0.1", "198.51.100.7", "1.1.1.1", "198.51.100.7", "10.9.9.9"); /* lines are one list */
    CLIENT("10.0.0.1", "198.51.100.7", "1.1.1.1, 198.51.100.7", "10.9.9.9, 10.8.8.8");
    CLIENT("10.0.0.1", "10.2.2.2", "10.2.2.2, 10.9.9.9"); /* nothing but ours: the farthest */
    CLIENT("10.0.0.1", "10.9.9.9", "198.51.100.7, unknown, 10.9.9.9");
    CLIENT("10.0.0.1", "10.0.0.1", "198.51.100.7, nonsense");
    CLIENT("10.0.0.1", "10.0.0.1", "198.51.100.7,");
    CLIENT("10.0.0.1", "10.0.0.1", "");
    CLIENT("10.0.0.1", "10.0.0.1", "198.51.100.7", "");
    CLIENT("10.0.0.1", "198.51.100.7", "198.51.100.7:4711");
    CLIENT("10.0.0.1", "2001:db8::1", "[2001:db8::1]:4711, fd00::1");
    CLIENT("10.0.0.1", "2001:db8::1", "2001:db8::1, [fd00::1], ::ffff:10.4.4.4");
    CLIENT("fd12::1", "192.0.2.1", "192.0.2.1");
    CLIENT("fe80::1", "fe80::1", "192.0.2.1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_addresses), cmocka_unit_test(test_hops)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
