/* Every allocation of the keyring failing in turn, once and from then on: out of memory is said, nothing leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

#include "auth/keyring.h"

#include "test/oracle/failing_malloc.h"

static char path[] = "/tmp/flamegate-fault-XXXXXX";

/* A key is made, read back and revoked. */
static bool scenario(long at, bool from_then_on)
{
    char secret[SECRET_TEXT + 1];
    struct key k = {.name = (char[]){"a"}, .project = (char[]){"p"}, .enabled = true};
    struct buf line = {0};
    struct fault f = {0};

    unlink(path);
    fail_from(at, from_then_on);
    enum err e = key_create(path, &k, STR(""), false, secret, &line, &f);
    if (e == E_OK) {
        struct keyring *r = keyring_load(path, &f);
        e = r ? key_revoke(path, STR("a"), &f) : f.err;
        keyring_free(r);
    }
    fail_no_more();
    buf_free(&line);
    if (e != E_OK)
        assert_int_equal(e, E_NO_MEMORY);
    return e == E_OK;
}

static void test_each_fails(void **state)
{
    (void)state;
    for (int from_then_on = 0; from_then_on < 2; from_then_on++) {
        long at = 0;
        while (!scenario(at, from_then_on != 0) || at < calls)
            at++;
        assert_true(at > 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_fails)};
    if (close(mkstemp(path)) != 0)
        return 1;
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return r;
}
