/* Selectors: what parses, what does not and where, and what agrees with series and samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gateway/query/selector.h"

static struct label labels[] = {
    {{"env", 3}, {"lab", 3}}, {{"host.name", 9}, {"h\n1", 3}}, {{"service_name", 12}, {"shop", 4}}};
static const struct series series = {
    .service = {"shop", 4}, .name = {"process_cpu", 11}, .labels = labels, .n_labels = 3};

static void test_series(void **state)
{
    static const struct {
        const char *text;
        enum verdict verdict;
    } list[] = {
        {"{}", VERDICT_YES},
        {" { } ", VERDICT_YES},
        {"{env=\"lab\"}", VERDICT_YES},
        {"{env=\"lab\",}", VERDICT_YES},
        {"{ env = 'lab' , env != `prod` }", VERDICT_YES},
        {"{env=\"prod\"}", VERDICT_NO},
        {"{env=\"lab\",env=\"prod\"}", VERDICT_NO},
        {"{env!=\"lab\"}", VERDICT_NO},
        {"{env=~\"l.*\"}", VERDICT_YES},
        {"{env=~\"a\"}", VERDICT_NO},
        {"{env=~\"a|lab\"}", VERDICT_YES},
        {"{env=~\"la|b\"}", VERDICT_NO},
        {"{env=~\"^lab$\"}", VERDICT_YES},
        {"{env!~\"l.*\"}", VERDICT_NO},
        {"{env!~\"prod|test\"}", VERDICT_YES},
        {"{env=~\"\"}", VERDICT_NO},
        {"{env=~\"(?i)LAB\"}", VERDICT_YES},
        {"{\"host.name\"=\"h\\n1\"}", VERDICT_YES},
        {"{'host.name'=~\"h.1\"}", VERDICT_YES},
        {"{env=\"\\x6cab\"}", VERDICT_YES},
        {"{env=\"\\u006cab\"}", VERDICT_YES},
        {"{env=\"\\U0000006cab\"}", VERDICT_YES},
        {"{env=\"\\154ab\"}", VERDICT_YES},
        {"{env=`\\x6cab`}", VERDICT_NO},
        {"{env='l\"ab'}", VERDICT_NO},
        {"process_cpu{}", VERDICT_YES},
        {"a:b{}", VERDICT_NO},
        {"process_cpu{env=\"lab\"}", VERDICT_YES},
        {"memory{env=\"lab\"}", VERDICT_NO},
        {"{__name__=\"process_cpu\"}", VERDICT_YES},
        {"{service_name=~\"sh.+\"}", VERDICT_YES},
        {"{__profile_type__=\"any\"}", VERDICT_YES},
        {"{tenant=\"a\"}", VERDICT_OPEN},
        {"{tenant=\"\"}", VERDICT_OPEN},
        {"{tenant!=\"a\",env=\"lab\"}", VERDICT_OPEN},
        {"{tenant!=\"a\",env=\"prod\"}", VERDICT_NO},
    };
    (void)state;
    for (size_t i = 0; i < COUNTOF(list); i++) {
        struct fault f = {0};
        struct selector *s = selector_parse(str_of(list[i].text), &f);
        if (!s)
            fail_msg("%s: %s", list[i].text, f.text);
        for (int again = 0; again < 2; again++)
            if (selector_series(s, &series) != list[i].verdict)
                fail_msg("%s: %d", list[i].text, selector_series(s, &series));
        assert_int_equal(selector_error(s, &f), E_OK);
        selector_free(s);
    }
}

static void test_bad(void **state)
{
    static const struct {
        const char *text, *part;
    } list[] = {
        {"", "byte 0"},
        {"{", "byte 1"},
        {"}", "byte 0"},
        {"{env}", "byte 4"},
        {"{env=}", "byte 5"},
        {"{env=lab}", "byte 5"},
        {"{env==\"a\"}", "byte 5"},
        {"{env=\"a\"", "byte 8"},
        {"{env=\"a}", "byte 5"},
        {"{env=\"a\" b=\"c\"}", "byte 9"},
        {"{,}", "byte 1"},
        {"{env=\"a\",,}", "byte 9"},
        {"{env=\"a\"}x", "byte 9"},
        {"{env=\"a\"}{}", "byte 9"},
        {"{1env=\"a\"}", "byte 1"},
        {"{a:b=\"a\"}", "byte 2"},
        {"{\"\"=\"a\"}", "byte 1"},
        {"{env=\"\\q\"}", "byte 6"},
        {"{env=\"\\'\"}", "byte 6"},
        {"{env=\"\\xg0\"}", "byte 6"},
        {"{env=\"\\ud800\"}", "byte 6"},
        {"{env=\"\\777\"}", "byte 6"},
        {"{env=\"\\xff\"}", "byte 5"},
        {"{env=\"a\nb\"}", "byte 5"},
        {"{env=~\"(\"}", "regular expression, byte 1"},
        {"{env=~\"a**\\\\C\"}", "regular expression"},
        {"env lab", "byte 4"},
        {"env", "byte 3: { is wanted"},
    };
    (void)state;
    for (size_t i = 0; i < COUNTOF(list); i++) {
        struct fault f = {0};
        struct selector *s = selector_parse(str_of(list[i].text), &f);
        if (s || f.err != E_BAD_REQUEST || !strstr(f.text, list[i].part) || !strstr(f.text, "\"match\""))
            fail_msg("%s: \"%s\"", list[i].text, f.text);
    }
}

static void test_samples(void **state)
{
    static const struct sample_label set[] = {{.key = {"tenant", 6}, .value = {"a", 1}},
                                              {.key = {"tenant", 6}, .value = {"b", 1}},
                                              {.key = {"bytes", 5}, .num = 5, .numeric = true},
                                              {.key = {"env", 3}, .value = {"prod", 4}}};
    static const struct {
        const char *text;
        bool agrees;
    } list[] = {
        {"{tenant=\"a\"}", true},
        {"{tenant=\"b\"}", true},
        {"{tenant=\"c\"}", false},
        {"{tenant!=\"a\"}", false},
        {"{tenant!=\"c\"}", true},
        {"{tenant=~\"a|c\"}", true},
        {"{tenant!~\"c\"}", true},
        {"{tenant!~\"a\"}", false},
        {"{tenant=\"\"}", false},
        {"{other=\"\"}", true},
        {"{other!=\"\"}", false},
        {"{bytes=\"5\"}", false},
        {"{bytes=\"\"}", true},
        {"{env=\"lab\"}", true}, /* the series' wins */
        {"{tenant=\"a\",other=\"\"}", true},
    };
    (void)state;
    for (size_t i = 0; i < COUNTOF(list); i++) {
        struct fault f = {0};
        struct selector *s = selector_parse(str_of(list[i].text), &f);
        assert_non_null(s);
        if (selector_sample(s, &series, set, COUNTOF(set)) != list[i].agrees)
            fail_msg("%s: %d", list[i].text, !list[i].agrees);
        selector_free(s);
    }
}

static void test_types(void **state)
{
    struct fault f = {0};
    struct selector *s = selector_parse(STR("{__profile_type__=~\"memory:.*\"}"), &f);
    (void)state;
    assert_non_null(s);
    assert_true(selector_type(s, STR("memory:alloc_space:bytes::")));
    assert_false(selector_type(s, STR("process_cpu:cpu:nanoseconds:cpu:nanoseconds")));
    assert_false(selector_may_open(s));
    selector_free(s);
}

/* A pattern that would backtrack for ever is an error in good time. */
static void test_endless(void **state)
{
    struct fault f = {0};
    struct label one = {{"v", 1}, {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", 50}};
    struct series long_one = {.service = {"s", 1}, .labels = &one, .n_labels = 1};
    struct selector *s = selector_parse(STR("{v=~\"(a+)+(a+)+[cd]\"}"), &f);
    (void)state;
    assert_non_null(s);
    assert_int_equal(selector_series(s, &long_one), VERDICT_NO);
    assert_int_equal(selector_error(s, &f), E_BAD_REQUEST);
    assert_non_null(strstr(f.text, "\"match\""));
    selector_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_series), cmocka_unit_test(test_bad),
                                       cmocka_unit_test(test_samples), cmocka_unit_test(test_types),
                                       cmocka_unit_test(test_endless)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
