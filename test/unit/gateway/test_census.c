/* Services and series of projects: who is known goes on, who is new and one too many does not, and a new day begins
 * anew. */
#include "gateway/ingest/census.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const int64_t DAY = INT64_C(86400000000000),
                     NOON = INT64_C(20000) * INT64_C(86400000000000) + INT64_C(43200000000000);

static struct record of(const char *project, const char *service, uint64_t series)
{
    return (struct record){.series = {.project = str_of(project), .service = str_of(service)}, .series_id = series};
}

static enum err take(struct census *c, struct record r, struct census_limits l, int64_t now, const char *names)
{
    struct fault f = {0};
    enum err e = census_take(c, &r, l, now, &f);

    if (e)
        assert_non_null(strstr(f.text, names));
    return e;
}

static void test_limits(void **state)
{
    const struct census_limits two = {.services = 2, .series = 3}, off = {0};
    struct census *c = census_new();

    (void)state;
    assert_int_equal(take(c, of("p", "x", 9), off, NOON, ""), E_OK);
    assert_int_equal(take(c, of("p", "a", 1), two, NOON, ""), E_OK); /* x was not counted */
    assert_int_equal(take(c, of("p", "b", 2), two, NOON, ""), E_OK);
    assert_int_equal(take(c, of("p", "c", 3), two, NOON, "limits.services 2"), E_TOO_MANY_SERVICES);
    assert_int_equal(take(c, of("p", "a", 4), two, NOON, ""), E_OK);
    assert_int_equal(take(c, of("p", "a", 5), two, NOON, "limits.series 3"), E_TOO_MANY_SERIES);
    assert_int_equal(take(c, of("p", "a", 1), two, NOON, ""), E_OK);
    assert_int_equal(take(c, of("other", "c", 3), two, NOON, ""), E_OK);
    assert_int_equal(take(c, of("p", "c", 3), (struct census_limits){3, 4}, NOON, ""), E_OK); /* raised */
    assert_int_equal(take(c, of("p", "d", 6), two, NOON + DAY, ""), E_OK);
    assert_true(census_bytes(c) > 0);
    census_free(c);
}

static void test_many(void **state)
{
    enum { MOST = 5000 };
    struct census *c = census_new();
    char name[16];

    (void)state;
    for (int round = 0; round < 2; round++)
        for (uint64_t i = 1; i <= 2 * MOST; i++) {
            snprintf(name, sizeof name, "s%llu", (unsigned long long)i);
            enum err want = i <= MOST ? E_OK : E_TOO_MANY_SERVICES;
            assert_int_equal(take(c, of("p", name, i), (struct census_limits){MOST, 0}, NOON, "limits.services"), want);
        }
    census_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits), cmocka_unit_test(test_many)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
