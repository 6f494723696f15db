/* Which log lines are written and which are counted, and what is told of the latter. */
#include "gateway/fold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SECOND = 1000000000 };

static struct {
    size_t lines;
    int64_t suppressed;
    char last[4096];
} told;

static void tell(const struct fold_line *l)
{
    const struct log_field *f = &l->fields[l->n - 1];
    size_t n = log_render(told.last, sizeof told.last - 1, true, 0, l->level, l->event, l->fields, l->n);

    assert_string_equal(f->key, "suppressed");
    told.last[n] = 0;
    told.lines++;
    told.suppressed += f->number;
}

static bool say(int64_t now, int level, const char *event, struct str text, int64_t number)
{
    const struct log_field f[] = {LOG_STR("why", text), LOG_NUM("n", number)};
    return fold_first(now, level, event, f, 2, tell);
}

static int fresh(void **state)
{
    (void)state;
    fold_interval(10 * (int64_t)SECOND);
    fold_flush(INT64_MAX, tell);
    memset(&told, 0, sizeof told);
    return 0;
}

static void test_first_at_once_then_a_count(void **state)
{
    (void)state;
    assert_true(say(1, LOG_WARN, "away", STR("gone"), 1));
    for (int i = 0; i < 7; i++)
        assert_false(say(2 + i, LOG_WARN, "away", STR("gone"), i));
    assert_true(say(9, LOG_WARN, "away", STR("refused"), 1)); /* another kind */
    assert_true(say(9, LOG_ERROR, "away", STR("gone"), 1));   /* as loud as it is */
    fold_flush(10 * (int64_t)SECOND, tell);
    assert_int_equal(told.lines, 0);
    fold_flush(10 * (int64_t)SECOND + 9, tell);
    assert_int_equal(told.lines, 1);
    assert_string_equal(told.last, "{\"time\":\"1970-01-01T00:00:00.000Z\",\"level\":\"warn\",\"event\":\"away\","
                                   "\"why\":\"gone\",\"suppressed\":7}\n");
    assert_true(say(11 * (int64_t)SECOND, LOG_WARN, "away", STR("gone"), 1)); /* a new interval */
}

static void test_a_late_line_ends_the_interval_before(void **state)
{
    (void)state;
    assert_true(say(1, LOG_WARN, "away", STR("gone"), 1));
    assert_false(say(2, LOG_WARN, "away", STR("gone"), 1));
    assert_true(say(20 * (int64_t)SECOND, LOG_WARN, "away", STR("gone"), 1));
    assert_int_equal(told.suppressed, 1);
}

static void test_what_is_never_folded(void **state)
{
    (void)state;
    assert_true(say(1, LOG_INFO, "reloaded", STR("x"), 1) && say(1, LOG_INFO, "reloaded", STR("x"), 1));
    fold_interval(0);
    assert_true(say(1, LOG_WARN, "away", STR("x"), 1) && say(1, LOG_WARN, "away", STR("x"), 1));
}

/* Texts of a client's choice neither flood the log nor hide another event, and every line is written or counted. */
static void test_storm_of_different_lines(void **state)
{
    int64_t written = 0;
    char text[32];

    (void)state;
    for (int i = 0; i < 100000; i++) {
        snprintf(text, sizeof text, "client %d", i);
        written += say(1, LOG_DEBUG, "refused", str_of(text), i);
    }
    assert_int_equal(written, FOLD_VARIANTS + 1);
    assert_true(say(2, LOG_ERROR, "the disk is full", STR("x"), 1));
    fold_flush(INT64_MAX, tell);
    assert_int_equal(told.lines, 1);
    assert_int_equal(written + told.suppressed, 100000);
}

/* More kinds than there are places: the oldest ends early, nothing is lost. */
static void test_full_table(void **state)
{
    static char events[2 * FOLD_KINDS][16];

    (void)state;
    for (size_t i = 0; i < COUNTOF(events); i++) {
        snprintf(events[i], sizeof events[i], "event %zu", i);
        assert_true(say((int64_t)i + 1, LOG_WARN, events[i], STR("x"), 1));
        assert_false(say((int64_t)i + 1, LOG_WARN, events[i], STR("x"), 1));
    }
    fold_flush(INT64_MAX, tell);
    assert_int_equal(told.suppressed, COUNTOF(events));
}

static void test_long_and_hostile_text(void **state)
{
    char big[2000];

    (void)state;
    for (size_t i = 0; i < sizeof big; i += 2)
        memcpy(big + i, "\xc3\xa4", 2);
    for (int i = 0; i < 2; i++)
        say(1, LOG_WARN, "e", (struct str){big + 1, sizeof big - 1}, 1);
    for (int i = 0; i < 2; i++)
        say(1, LOG_WARN, "e", (struct str){big, sizeof big - 1}, 1);
    for (int i = 0; i < 2; i++)
        say(1, LOG_WARN, "f", (struct str){NULL, 0}, 1);
    fold_flush(INT64_MAX, tell);
    assert_int_equal(told.lines, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_first_at_once_then_a_count, fresh),
        cmocka_unit_test_setup(test_a_late_line_ends_the_interval_before, fresh),
        cmocka_unit_test_setup(test_what_is_never_folded, fresh),
        cmocka_unit_test_setup(test_storm_of_different_lines, fresh),
        cmocka_unit_test_setup(test_full_table, fresh),
        cmocka_unit_test_setup(test_long_and_hostile_text, fresh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
