/* The table of types, units and suffixes: the rows that design.md, product.md and protocol.md name. */
#include "codecs/profile.h"
#include "codecs/types.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_types(void **state)
{
    (void)state;
    assert_string_equal(type_group(STR("cpu")), "CPU time");
    assert_string_equal(type_group(STR("samples")), "CPU time");
    assert_string_equal(type_group(STR("wall")), "wall-clock time");
    assert_string_equal(type_group(STR("inuse_space")), "memory");
    assert_string_equal(type_group(STR("inuse-space")), "memory");
    assert_string_equal(type_group(STR("alloc_size")), "memory");
    assert_string_equal(type_group(STR("delay")), "lock contention");
    assert_string_equal(type_group(STR("lock_time")), "lock contention");
    assert_string_equal(type_group(STR("goroutine")), "goroutines");
    assert_string_equal(type_group(STR("exception")), "exceptions");
    assert_string_equal(type_group(STR("made_up")), "Other");
    assert_int_equal(type_aggregation(STR("inuse_objects")), AGG_AVERAGE);
    assert_int_equal(type_aggregation(STR("goroutines")), AGG_AVERAGE);
    assert_int_equal(type_aggregation(STR("live")), AGG_AVERAGE);
    assert_int_equal(type_aggregation(STR("alloc_space")), AGG_SUM);
    assert_int_equal(type_aggregation(STR("made_up")), AGG_SUM);
}

static void test_primary(void **state)
{
    (void)state;
    int cpu = type_primary_rank(STR("cpu"), STR("nanoseconds")),
        wall = type_primary_rank(STR("wall"), STR("nanoseconds"));
    int inuse = type_primary_rank(STR("inuse_space"), STR("bytes")),
        alloc = type_primary_rank(STR("alloc_space"), STR("bytes"));
    assert_true(cpu < wall && wall < inuse && inuse < alloc);
    assert_true(alloc < type_primary_rank(STR("samples"), STR("count")));
    assert_int_equal(type_primary_rank(STR("cpu"), STR("count")), type_primary_rank(STR("x"), STR("y")));
}

static void test_units(void **state)
{
    static const struct {
        const char *sent, *base;
        int64_t factor;
    } rows[] = {{"ns", "nanoseconds", 1},
                {"microseconds", "nanoseconds", 1000},
                {"ms", "nanoseconds", 1000000},
                {"s", "nanoseconds", 1000000000},
                {"Seconds", "nanoseconds", 1000000000},
                {"bytes", "bytes", 1},
                {"kB", "bytes", 1024},
                {"MiB", "bytes", 1048576},
                {"count", "count", 1},
                {"made up", "made up", 1},
                {"", "", 1}};
    bool over = false;

    (void)state;
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        struct unit u = unit_normal(str_of(rows[i].sent));
        assert_true(str_eq(u.name, str_of(rows[i].base)));
        assert_int_equal(u.factor, rows[i].factor);
    }
    assert_int_equal(unit_scale(3, 1000, &over), 3000);
    assert_false(over);
    assert_true(unit_scale(INT64_MAX / 2, 3, &over) == INT64_MAX && over);
    assert_true(unit_scale(INT64_MIN / 2, 3, &over) == INT64_MIN);
}

static void test_suffixes(void **state)
{
    (void)state;
    assert_string_equal(suffix_find(STR("itimer"))->name, "process_cpu");
    assert_string_equal(suffix_find(STR("wall"))->type, "wall");
    assert_true(suffix_find(STR("wall"))->timed);
    assert_string_equal(suffix_find(STR("inuse_space"))->unit, "bytes");
    assert_false(suffix_find(STR("inuse_space"))->timed);
    assert_string_equal(suffix_find(STR("lock_duration"))->type, "delay");
    assert_null(suffix_find(STR("service")));
    assert_null(suffix_find(STR("")));
}

static void test_links(void **state)
{
    (void)state;
    assert_int_equal(label_link(STR("trace_id")), LINK_TRACE);
    assert_int_equal(label_link(STR("trace.id")), LINK_TRACE);
    assert_int_equal(label_link(STR("spanId")), LINK_SPAN);
    assert_int_equal(label_link(STR("profile_id")), LINK_SPAN);
    assert_int_equal(label_link(STR("span_name")), LINK_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_types), cmocka_unit_test(test_primary),
                                       cmocka_unit_test(test_units), cmocka_unit_test(test_suffixes),
                                       cmocka_unit_test(test_links)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
