/* app{k=v}: protocol.md 1.2 row by row, and what F9 allows beyond it. */
#include "codecs/name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct {
    const char *text, *app, *labels; /* labels: k=v; ... or NULL for refused */
} rows[] = {
    {"foo", "foo", ""},
    {"foo{}", "foo", ""},
    {"foo{a=1,}", "foo", "a=1;"},
    {" foo { bar = 1 , baz = 2 } ", "foo", "bar=1;baz=2;"},
    {"foo{a=1}b=2}", "foo", "a=1;b=2;"},
    {"foo{a=\"x\"}", "foo", "a=\"x\";"},
    {"foo{a=1", "foo", ""},
    {"foo{a}", "foo", ""},
    {"foo{a=1}trailing", "foo", "a=1;"},
    {"foo{a=1,a=2}", "foo", "a=2;"},
    {"foo{a=b=c}", "foo", "a=b=c;"},
    {"foo{a=}", "foo", "a=;"},
    {"foo{a={b}", "foo", "a={b;"},
    {"foo{__session_id__=x,otel.scope.name=c/g}", "foo", "__session_id__=x;otel.scope.name=c/g;"},
    {"my lab app/1_2-3.x", "my lab app/1_2-3.x", ""},
    {"d\xc3\xa9j\xc3\xa0 vu", "d\xc3\xa9j\xc3\xa0 vu", ""},
    {"", NULL, NULL},
    {"  {a=b}", NULL, NULL},
    {"{a=b}", NULL, NULL},
    {"foo{a,b=c}", NULL, NULL},
    {"foo{a=1}{c=d}", NULL, NULL},
    {"foo{=1}", NULL, NULL},
    {"foo{a-b=1}", NULL, NULL},
    {"foo\n{a=b}bar", "foo", "a=b;"},
    {"fo\no", NULL, NULL},
    {"fo\xff", NULL, NULL},
    {"foo{a=\xff}", NULL, NULL},
    {"fo\xc2\x85o", NULL, NULL},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        struct arena *a = arena_new(1 << 20);
        struct fault f = {0};
        struct name n;
        struct buf got = {0};
        enum err e = name_parse(&n, str_of(rows[i].text), a, &f);
        assert_int_equal(e, rows[i].labels ? E_OK : E_BAD_NAME);
        assert_int_equal(f.err, e);
        if (e == E_OK) {
            assert_true(str_eq(n.app, str_of(rows[i].app)));
            for (uint32_t k = 0; k < n.n_labels; k++)
                buf_printf(&got, "%.*s=%.*s;", STR_ARG(n.labels[k].name), STR_ARG(n.labels[k].value));
            if (!str_eq(buf_view(&got), str_of(rows[i].labels)))
                fail_msg("%s: %.*s", rows[i].text, STR_ARG(buf_view(&got)));
        }
        buf_free(&got);
        arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
