/* Which secrets a request carries, and in which order they count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>

#include "auth/auth.h"

static void test_authorization(void **state)
{
    (void)state;
    static const struct {
        const char *value, *secret; /* NULL: nothing */
    } t[] = {
        {"Bearer abc", "abc"},
        {"bearer abc", "abc"},
        {"BEARER   abc  ", "abc"},
        {"Bearer a b", "a b"},
        {"Basic bGFiLXVzZXI6bGFiLXBhc3N3b3Jk", "lab-password"},
        {"basic OmtleQ==", "key"},
        {"Basic OmtleQ", "key"},
        {"Basic dTphOmI=", "a:b"},
        {"Bearer", NULL},
        {"Bearer ", NULL},
        {"abc", NULL},
        {"", NULL},
        {"Digest abc", NULL},
        {"Basic ", NULL},
        {"Basic !!!!", NULL},
        {"Basic OmtleQ=", NULL},
        {"Basic a2V5", NULL},     /* no colon */
        {"Basic dXNlcjo=", NULL}, /* an empty password */
    };
    for (size_t i = 0; i < COUNTOF(t); i++) {
        struct credentials c = {0};
        credentials_authorization(&c, str_of(t[i].value));
        assert_int_equal(c.n, t[i].secret ? 1 : 0);
        if (t[i].secret)
            assert_true(str_eq(c.secret[0], str_of(t[i].secret)));
    }
}

/* Whatever the order of the headers: token header, bearer, basic; equals in the order of the request. */
static void test_order(void **state)
{
    (void)state;
    struct credentials c = {0};
    static const char *const want[] = {"t1", "t2", "b1", "b2", "key", "k"};

    credentials_authorization(&c, STR("Basic OmtleQ=="));
    credentials_authorization(&c, STR("Bearer b1"));
    credentials_token(&c, STR(" t1 "));
    credentials_authorization(&c, STR("Basic Oms="));
    credentials_authorization(&c, STR("Bearer b2"));
    credentials_token(&c, STR("t2"));
    credentials_token(&c, STR("  "));
    assert_int_equal(c.n, COUNTOF(want));
    for (size_t i = 0; i < c.n; i++)
        assert_true(str_eq(c.secret[i], str_of(want[i])));
}

static void test_bounds(void **state)
{
    (void)state;
    struct credentials c = {0};
    char value[3000];

    for (int i = 0; i < 100; i++)
        credentials_token(&c, STR("x"));
    assert_int_equal(c.n, CREDENTIALS_MAX);

    c = (struct credentials){0};
    memset(value, 'A', sizeof value);
    credentials_token(&c, (struct str){value, sizeof value});
    assert_int_equal(c.n, 0);
    memcpy(value, "Basic OjAw", 10); /* ":00…", too long to decode */
    credentials_authorization(&c, (struct str){value, 6 + 2992});
    assert_int_equal(c.n, 0);
    for (int i = 0; i < 100; i++) /* fills decoded[] */
        credentials_authorization(&c, STR("Basic dXNlcnVzZXJ1c2VydXNlcnVzZXJ1c2VydXNlcnVzZXJ1c2VydXNlcnVzZXI6OTk="));
    assert_true(c.decoded_len <= sizeof c.decoded);
    for (size_t i = 0; i < c.n; i++)
        assert_true(str_eq(c.secret[i], STR("99")));
    assert_true(c.n > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_authorization),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
