/* Long names in text: what is cut, and that what matters stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gateway/query/text.h"

typedef size_t text_fn(struct buf *out, struct str s, size_t columns);

static void check(text_fn *put, const char *in, size_t columns, const char *wanted)
{
    struct buf b = {0};
    size_t n = put(&b, str_of(in), columns), have = 0;
    for (size_t i = 0; i < b.len; i++)
        have += ((unsigned char)b.p[i] & 0xc0) != 0x80;
    buf_char(&b, 0);
    assert_string_equal(b.p, wanted);
    assert_int_equal(n, have);
    assert_true(n <= columns);
    buf_free(&b);
}

static void test_name(void **state)
{
    (void)state;
    check(text_name, "main.main", 40, "main.main");
    check(text_name, "github.com/grafana/pyroscope/v2/pkg/pprof.(*SampleExporter).ExportSamples", 40,
          "…pprof.(*SampleExporter).ExportSamples");
    check(text_name, "java/util/concurrent/ThreadPoolExecutor$Worker.run", 32, "…ThreadPoolExecutor$Worker.run");
    check(text_name, "veryLongNamesWithoutAnyPathInFrontOfThem", 20, "…nyPathInFrontOfThem");
}

static void test_name_and_path(void **state)
{
    (void)state;
    check(text_name, "get_response (site-packages/django/core/handlers/base.py:140)", 40,
          "get_response (…handlers/base.py:140)");
    check(text_name, "render - /srv/app/views/orders/show.html.rb:12", 30, "render - …show.html.rb:12");
    check(text_name, "a_name_that_fills_the_room_alone (site-packages/x.py:1)", 20, "…ills_the_room_alone");
}

static void test_arguments(void **state)
{
    (void)state;
    check(text_name, "std::panicking::catch_unwind::<isize, core::panic::AssertUnwindSafe<F>>", 40,
          "std::panicking::catch_unwind::<…>");
    check(text_name, "<alloc::boxed::Box<dyn Fn() -> i32> as core::ops::FnOnce<()>>::call_once", 20,
          "…nce<()>>::call_once");
    check(text_name, "shop::parse::<alloc::vec::Vec<fn(u8) -> u8>>", 20, "shop::parse::<…>");
    check(text_name, "operator>", 6, "…ator>");
    check(text_name, "an_operator_with_a_long_name>>>>>>", 20, "…h_a_long_name>>>>>>");
}

static void test_end(void **state)
{
    (void)state;
    check(text_end, "/srv/shop/src/cart.js:41", 14, "…cart.js:41");
    check(text_end, "abcdef", 0, "");
    check(text_end, "abcdef", 1, "…");
    check(text_end, "abcdef", 6, "abcdef");
    check(text_end,
          "ab\x1b"
          "cd",
          5, "…cd");
    check(text_end, "äöüßéè", 4, "…ßéè");
    check(text_end, "ab\xff\xfe", 9, "…\\xff\\xfe");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_name), cmocka_unit_test(test_name_and_path),
                                       cmocka_unit_test(test_arguments), cmocka_unit_test(test_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
