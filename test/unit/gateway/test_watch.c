/* Changes are told once, when they have come to rest, whatever way they came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gateway/watch.h"

static char folder[] = "/tmp/flamegate-watch-XXXXXX";

static int enter(void **state)
{
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    unlink("a");
    unlink("b");
    unlink("link");
    return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void test_rest(void **state)
{
    (void)state;
    struct watch w = {.n = 0};

    put("a", "1");
    watch_add(&w, WATCH_CONF, "a");
    assert_int_equal(watch_look(&w), 0);
    put("a", "22");
    assert_int_equal(watch_look(&w), 0); /* seen once */
    put("a", "333");
    assert_int_equal(watch_look(&w), 0); /* still moving */
    assert_int_equal(watch_look(&w), 1u << WATCH_CONF);
    assert_int_equal(watch_look(&w), 0);
}

static void test_rename_link_and_absence(void **state)
{
    (void)state;
    struct watch w = {.n = 0};

    put("a", "1");
    put("b", "1");
    unlink("link");
    assert_int_equal(symlink("a", "link"), 0);
    watch_add(&w, WATCH_CERTS, "link");
    watch_add(&w, WATCH_KEYS, "none");
    watch_add(&w, WATCH_KEYS, NULL);
    assert_int_equal(w.n, 2);
    assert_int_equal(unlink("link"), 0);
    assert_int_equal(symlink("b", "link"), 0); /* another file of the same size */
    assert_int_equal(watch_look(&w), 0);
    assert_int_equal(watch_look(&w), 1u << WATCH_CERTS);
    put("a", "1");
    assert_int_equal(rename("a", "b"), 0);
    put("none", "1");
    assert_int_equal(watch_look(&w), 0);
    assert_int_equal(watch_look(&w), 1u << WATCH_CERTS | 1u << WATCH_KEYS);
    assert_int_equal(unlink("none"), 0);
    assert_int_equal(watch_look(&w), 0);
    assert_int_equal(watch_look(&w), 1u << WATCH_KEYS);
}

static void test_mark_and_replace(void **state)
{
    (void)state;
    struct watch w = {.n = 0}, next = {.n = 0};

    put("a", "1");
    put("b", "1");
    watch_add(&w, WATCH_CONF, "a");
    put("a", "2222");
    watch_mark(&w, WATCH_CONF); /* read by somebody's wish: no second time */
    assert_int_equal(watch_look(&w), 0);
    assert_int_equal(watch_look(&w), 0);
    put("a", "55555"); /* changes while the list does: not forgotten */
    watch_add(&next, WATCH_CONF, "a");
    watch_add(&next, WATCH_CERTS, "b");
    watch_replace(&w, &next);
    assert_int_equal(w.n, 2);
    assert_int_equal(watch_look(&w), 0);
    assert_int_equal(watch_look(&w), 1u << WATCH_CONF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rest),
        cmocka_unit_test(test_rename_link_and_absence),
        cmocka_unit_test(test_mark_and_replace),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
