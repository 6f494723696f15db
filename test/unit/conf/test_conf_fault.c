/* Every allocation of the loader failing in turn, once and from then on: an error that says so, nothing leaked, no
 * crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "conf/conf.h"

#include "test/oracle/failing_malloc.h"

static const char yaml[] = "listen: [a:1, b:2, {address: c:3}]\nprefixes: [/a, /b]\ntoken_headers: [x, y]\n"
                           "data_dir: ${FLAMEGATE_UNSET:-/d}\nsamples_file: test/unit/conf/address\n"
                           "retention: {projects: {p: 1d}, services: {s: 2d}}\nanonymous: {project: p}\n";

/* Whether everything worked, with allocation number `at` failing. (libyaml's own are behind the wrapping.) */
static bool load(long at, bool from_then_on)
{
    struct conf_errors e = {0};

    fail_from(at, from_then_on);
    struct conf *c = conf_parse(STR(yaml), "f", &e);
    struct buf out = {0};
    if (c) {
        conf_restart_only(c, c, &out);
        if (!conf_keep_restart(c, c))
            out.failed = true;
        conf_sample(&out);
    }
    fail_no_more();
    assert_true((c == NULL) == (e.count > 0));
    if (c)
        assert_int_equal(conf_retention_days(c, STR("p"), STR("x")), 1);
    bool good = c && !out.failed;
    conf_free(c);
    buf_free(&out);
    buf_free(&e.text);
    return good;
}

static void test_each_fails(void **state)
{
    (void)state;
    for (int from_then_on = 0; from_then_on < 2; from_then_on++) {
        long at = 0;
        while (!load(at, from_then_on != 0) || at < calls)
            at++;
        assert_true(at > 5); /* blocks of the arena, texts that are built: the wrapping works */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
