/* Slices, UTF-8, saturation, the fault and the arena. */
#include "codecs/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_str(void **state)
{
    (void)state;
    assert_true(str_eq(str_trim(STR(" \t a b\r\n")), STR("a b")));
    assert_true(str_eq(str_trim(STR("  ")), STR("")));
    assert_true(str_eq_nocase(STR("Content-LENGTH"), STR("content-length")));
    assert_false(str_eq_nocase(STR("a"), STR("ab")));
    assert_true(str_cmp(STR("a"), STR("ab")) < 0);
    assert_true(str_cmp(STR("b"), STR("ab")) > 0);
    assert_int_equal(str_cmp(STR(""), STR("")), 0);
    assert_true(str_starts(STR("process_cpu"), STR("process")));
    assert_false(str_ends(STR("cpu"), STR("process_cpu")));
}

static void test_utf8(void **state)
{
    static const struct {
        struct str in;
        bool valid;
    } cases[] = {
        {STR(""), true},
        {STR("plain ascii, longer than a word"), true},
        {STR("gr\xc3\xbc\xc3\x9f Gott"), true},
        {STR("\xe2\x82\xac\xf0\x9f\x94\xa5"), true},
        {STR("a\0b"), true},
        {STR("\xc0\x80"), false},         /* overlong NUL */
        {STR("\xed\xa0\x80"), false},     /* surrogate */
        {STR("\xf4\x90\x80\x80"), false}, /* beyond U+10FFFF */
        {STR("\xe0\x9f\xbf"), false},     /* overlong */
        {STR("cut \xe2\x82"), false},
        {STR("\x80"), false},
        {STR("\xd6\x14\x50\x8c\x2e\xa7"), false},
    };
    (void)state;
    for (size_t i = 0; i < COUNTOF(cases); i++)
        assert_int_equal(utf8_valid(cases[i].in), cases[i].valid);
}

static void test_saturation(void **state)
{
    bool over = false;

    (void)state;
    assert_int_equal(add_sat(1, 2, &over), 3);
    assert_false(over);
    assert_true(add_sat(INT64_MAX, 1, &over) == INT64_MAX);
    assert_true(over);
    assert_true(add_sat(INT64_MIN, -1, &over) == INT64_MIN);
}

static void test_fault_keeps_the_first(void **state)
{
    struct fault f = {0};

    (void)state;
    assert_int_equal(fault_set(&f, E_BODY_TOO_LARGE, "limits.body is %d", 3), E_BODY_TOO_LARGE);
    assert_int_equal(fault_set(&f, E_INTERNAL, NULL), E_BODY_TOO_LARGE);
    assert_string_equal(f.text, "limits.body is 3");
    assert_int_equal(err_status(f.err), 413);
    assert_string_equal(err_code(f.err), "invalid_argument");
}

static void test_arena_limit(void **state)
{
    struct arena *a = arena_new(200 * 1024);
    struct fault f = {0};

    (void)state;
    assert_non_null(NEW(a, uint64_t, 3));
    assert_non_null(NEW(a, char, 1)); /* so that the next one needs padding */
    assert_int_equal((uintptr_t)NEW(a, uint64_t, 1) % 8, 0);
    assert_null(NEW(a, char, 300 * 1024));
    assert_true(arena_over_limit(a));
    assert_int_equal(arena_error(a, &f), E_PROFILE_TOO_LARGE);
    assert_null(NEW(a, uint64_t, SIZE_MAX / 4)); /* the product overflows */
    arena_free(a);
}

/* Growing keeps the content, zeroes what is new, and leaves no large piece behind. */
static void test_arena_grow(void **state)
{
    struct arena *a = arena_new(SIZE_MAX);
    uint32_t *v = NULL;
    size_t n = 0;

    (void)state;
    for (size_t cap = 4; cap <= 1u << 20; cap *= 2) {
        v = GROW(a, v, uint32_t, n, cap);
        assert_non_null(v);
        for (size_t i = n; i < cap; i++) {
            assert_int_equal(v[i], 0);
            v[i] = (uint32_t)i;
        }
        n = cap;
    }
    for (size_t i = 0; i < n; i++)
        assert_int_equal(v[i], i);
    assert_true(arena_used(a) < n * sizeof *v + 256 * 1024);
    arena_free(a);
}

static void test_buf(void **state)
{
    struct buf b = {0};

    (void)state;
    for (int i = 0; i < 1000; i++)
        buf_printf(&b, "%d,", i);
    buf_printf(&b, "%0300d", 7);
    assert_false(b.failed);
    assert_int_equal(b.len, 3890 + 300);
    assert_memory_equal(b.p, "0,1,2,", 6);
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_str),         cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_saturation),  cmocka_unit_test(test_fault_keeps_the_first),
        cmocka_unit_test(test_arena_limit), cmocka_unit_test(test_arena_grow),
        cmocka_unit_test(test_buf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
