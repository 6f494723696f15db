/* Counting connections by address, against a plain list. */
#include "gateway/crowd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct address of(const char *text)
{
    struct address a;

    assert_true(address_parse(&a, str_of(text)));
    return a;
}

static void test_most(void **state)
{
    struct crowd *c = crowd_new();
    struct address a = of("192.0.2.1"), b = of("192.0.2.2:80");

    (void)state;
    assert_non_null(c);
    assert_true(crowd_enter(c, &a, 2) && crowd_enter(c, &a, 2));
    assert_false(crowd_enter(c, &a, 2));
    assert_true(crowd_enter(c, &b, 2));
    assert_int_equal(crowd_addresses(c), 2);
    crowd_leave(c, &a);
    assert_true(crowd_enter(c, &a, 2));
    assert_false(crowd_enter(c, &a, 1)); /* the limit is lower now */
    crowd_leave(c, &a);
    crowd_leave(c, &a);
    crowd_leave(c, &b);
    assert_int_equal(crowd_addresses(c), 0);
    crowd_free(c);
}

static void test_networks(void **state)
{
    struct crowd *c = crowd_new();
    struct address a = of("2001:db8::1"), b = of("2001:db8::ffff:2"), other = of("2001:db8:0:1::1"),
                   four = of("::ffff:192.0.2.1"), five = of("192.0.2.5");

    (void)state;
    assert_true(crowd_enter(c, &a, 1));
    assert_false(crowd_enter(c, &b, 1));
    assert_true(crowd_enter(c, &other, 1) && crowd_enter(c, &four, 1) && crowd_enter(c, &five, 1));
    crowd_leave(c, &b); /* the same network */
    assert_true(crowd_enter(c, &b, 1));
    crowd_free(c);
}

static void test_many(void **state)
{
    enum { ADDRESSES = 20000, STEPS = 200000 };
    struct crowd *c = crowd_new();
    unsigned *open = calloc(ADDRESSES, sizeof *open), seed = 1;
    size_t there = 0;

    (void)state;
    for (int i = 0; i < STEPS; i++) {
        uint32_t n = (uint32_t)rand_r(&seed) % ADDRESSES;
        struct address a;
        address_of_v4(&a, (const uint8_t[4]){10, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n}, 0);
        if (rand_r(&seed) % 2 && open[n]) {
            crowd_leave(c, &a);
            there -= --open[n] == 0;
        } else {
            assert_int_equal(crowd_enter(c, &a, 3), open[n] < 3);
            there += open[n] == 0;
            open[n] += open[n] < 3;
        }
        assert_int_equal(crowd_addresses(c), there);
    }
    crowd_free(c);
    free(open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_most), cmocka_unit_test(test_networks),
                                       cmocka_unit_test(test_many)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
