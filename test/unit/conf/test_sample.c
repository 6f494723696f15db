/*
 * conf/flamegate.yaml is what conf_sample writes, and says exactly the defaults; --help names every option.
 * After a change of the table: build/test/unit/conf/test_sample --write
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "conf/option.h"

#define SAMPLE "conf/flamegate.yaml"

static void test_file_is_the_sample(void **state)
{
    (void)state;
    struct buf want = {0};
    char *have = calloc(1, 65536);
    FILE *f = fopen(SAMPLE, "r");

    assert_non_null(f);
    size_t n = fread(have, 1, 65535, f);
    fclose(f);
    conf_sample(&want);
    buf_char(&want, '\0');
    assert_int_equal(n, want.len - 1);
    assert_string_equal(have, want.p);
    buf_free(&want);
    free(have);
}

static void test_sample_is_the_defaults(void **state)
{
    (void)state;
    struct conf_errors e = {0};
    struct conf *defaults = conf_parse(STR(""), "none", &e);
    struct conf *sample = conf_load(SAMPLE, &e);

    assert_non_null(defaults);
    assert_non_null(sample);
    for (size_t i = 0; i < option_count(); i++) {
        struct buf a = {0}, b = {0};
        option_text(defaults, option_at(i), &a);
        option_text(sample, option_at(i), &b);
        assert_true(str_eq(buf_view(&a), buf_view(&b)));
        buf_free(&a);
        buf_free(&b);
    }
    conf_free(defaults);
    conf_free(sample);
}

/* Every option stands in the sample under its own name: changing its line there changes that option and no other. */
static void test_sample_names_every_option(void **state)
{
    (void)state;
    for (size_t i = 0; i < option_count(); i++) {
        const struct option *o = option_at(i);
        struct buf yaml = {0};
        struct conf_errors e = {0};
        const char *dot = strchr(o->name.p, '.');
        if (dot)
            buf_printf(&yaml, "%.*s:\n  %s: %s\n", (int)(dot - o->name.p), o->name.p, dot + 1, o->text);
        else
            buf_printf(&yaml, "%s: %s\n", o->name.p, o->text);
        struct conf *c = conf_parse(buf_view(&yaml), "one", &e);
        assert_non_null(c);
        conf_free(c);
        buf_free(&yaml);
    }
}

static void test_help(void **state)
{
    (void)state;
    struct buf b = {0};

    conf_help(&b);
    buf_char(&b, '\0');
    for (size_t i = 0; i < option_count(); i++) {
        assert_non_null(strstr(b.p, option_at(i)->name.p));
        assert_non_null(strstr(b.p, option_at(i)->help));
        assert_non_null(strstr(b.p, option_at(i)->text));
    }
    buf_free(&b);
}

static int write_sample(void)
{
    struct buf b = {0};
    FILE *f = fopen(SAMPLE, "w");

    conf_sample(&b);
    bool good = f && !b.failed && fwrite(b.p, 1, b.len, f) == b.len;
    if (f && fclose(f) != 0)
        good = false;
    buf_free(&b);
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_is_the_sample),
        cmocka_unit_test(test_sample_is_the_defaults),
        cmocka_unit_test(test_sample_names_every_option),
        cmocka_unit_test(test_help),
    };
    if (argc == 2 && str_eq(str_of(argv[1]), STR("--write")))
        return write_sample();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
