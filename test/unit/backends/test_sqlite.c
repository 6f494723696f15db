/* The embedded store: the conformance suite, then what only it can get wrong: its files. */
#include "test/unit/backends/conformance.c"

#include <signal.h>
#include <sys/resource.h>

const char *conformance_address = "sqlite:";

static struct sample_store *open_at(struct world *w, struct fault *f)
{
    struct str rest;

    *f = (struct fault){0};
    return backend_find(str_of(conformance_address), &rest)->write->open(&w->host, rest, f);
}

static void another_key_is_refused(void **state)
{
    struct world *w = *state;
    struct hash_key other;
    struct fault f;
    struct group g;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    world_close(w);
    hash_key_derive(&other, STR("another"));
    w->host.key = &other;
    assert_null(open_at(w, &f));
    assert_non_null(strstr(f.text, "hash_key_file"));
    uv_run(&w->loop, UV_RUN_DEFAULT);
    w->host.key = &w->key;
    world_open(w);
    assert_int_equal(count(w, NOON, NOON + 1), 1);
}

static void one_process_per_folder(void **state)
{
    struct world *w = *state;
    struct fault f;

    assert_null(open_at(w, &f));
    assert_non_null(strstr(f.text, "another process"));
    uv_run(&w->loop, UV_RUN_NOWAIT);
}

static void a_folder_of_its_own(void **state)
{
    struct world *w = *state;
    char address[128], path[128];
    struct stat st;
    struct group g;

    world_close(w);
    snprintf(address, sizeof address, "sqlite:%s/deep/er", w->dir);
    conformance_address = address;
    world_open(w);
    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    snprintf(path, sizeof path, "%s/deep/er/samples/c15-2026-11-30.db", w->dir);
    assert_int_equal(stat(path, &st), 0);
    world_close(w);
    conformance_address = "sqlite:";
}

/* A crash may leave a file in which nothing is yet: it is nobody's, and made anew when it is needed. */
static void half_made_files_do_no_harm(void **state)
{
    struct world *w = *state;
    char path[128];
    struct group g;
    FILE *f;

    world_close(w);
    snprintf(path, sizeof path, "%s/samples/c15-2026-11-30.db", w->dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    world_open(w);
    assert_int_equal(count(w, NOON, NOON + 1), 0);
    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    assert_int_equal(count(w, NOON, NOON + 1), 1);
}

static void a_damaged_file_is_an_error_not_less(void **state)
{
    struct world *w = *state;
    static struct seeing s;
    char path[128];
    struct group g;
    FILE *f;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    put_one(w, &g, 15, (struct wish){.time_ns = NOON - DAY});
    world_close(w);
    snprintf(path, sizeof path, "%s/samples/c15-2026-11-29.db", w->dir);
    f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 1000; i++)
        fputs("not a database; ", f);
    fclose(f);
    world_open(w);
    assert_int_equal(see(w, &s, "", NOON, NOON + 1, SCAN_META), E_OK);
    assert_int_equal(see(w, &s, "", NOON - DAY, NOON + 1, SCAN_META), E_STORE_DOWN);
}

/* Every step of the file size at which the disk may turn out to be full. */
static void a_full_disk_asks_to_come_again(void **state)
{
    struct world *w = *state;
    struct rlimit old, tight;
    struct wish wishes[] = {{.time_ns = NOON, .stacks = 500, .original = "abc"}, {.time_ns = NOON + 1}};
    struct group g;
    int again = 0;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    make_group(w, &g, 15, wishes, 2);
    for (rlim_t limit = 0; limit < 200 * 1024; limit += 4096) {
        tight = (struct rlimit){.rlim_cur = limit, .rlim_max = old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
        put_group(w, &g);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(g.results[0], g.results[1]);
        assert_true(g.results[0] == PUT_STORED || g.results[0] == PUT_AGAIN);
        assert_int_equal(w->backend->write->healthy(w->store), g.results[0] == PUT_STORED);
        if (g.results[0] == PUT_STORED)
            break;
        again++;
        assert_int_equal(count(w, NOON, NOON + 2), 0);
    }
    assert_true(again > 2);
    put_group(w, &g);
    assert_int_equal(g.results[0], PUT_STORED);
    assert_int_equal(count(w, NOON, NOON + 2), 2);
    assert_true(blocks(w, "svc") >= 1);
    free_group(&g);
}

/* A mark that cannot be written waits for the next chance. */
static void marks_survive_a_full_disk(void **state)
{
    struct world *w = *state;
    struct wish wish = {.time_ns = NOON, .content = 8}, wishes[] = {wish, wish};
    struct rlimit old, tight = {0};
    struct group g, other;

    signal(SIGXFSZ, SIG_IGN);
    put_wishes(w, &g, 15, wishes, 2);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    tight.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    w->backend->write->mark(w->store, &g, 3);
    make_group(w, &other, 15, &(struct wish){.time_ns = NOON + 1}, 1);
    put_group(w, &other);
    assert_int_equal(other.results[0], PUT_AGAIN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    free_group(&other);
    world_reopen(w);
    assert_int_equal(count(w, NOON, NOON + 1), 2);
}

/* Larger than a row may ever be: it fails itself, its neighbours are stored. */
static void a_bad_row_fails_itself(void **state)
{
    enum { HUGE = 300 << 20 };
    struct world *w = *state;
    struct wish wishes[] = {{.time_ns = NOON}, {.time_ns = NOON + 1}, {.time_ns = NOON + 2}, {.time_ns = NOON + 3}};
    char *huge = calloc(1, HUGE);
    struct group g;
    struct str body;

    assert_non_null(huge);
    make_group(w, &g, 15, wishes, 4);
    body = g.records[1]->body;
    g.records[1]->body = (struct str){huge, HUGE};
    g.records[2]->time_ns += DAY;
    put_group(w, &g);
    assert_int_equal(g.results[0], PUT_STORED);
    assert_int_equal(g.results[1], PUT_BAD);
    assert_int_equal(g.results[2], PUT_BAD);
    assert_int_equal(g.results[3], PUT_STORED);
    assert_true(w->backend->write->healthy(w->store));
    assert_int_equal(count(w, 0, INT64_MAX), 2);
    g.records[1]->body = body;
    free_group(&g);
    free(huge);
}

/* More files than are held open, each written in turn. */
static void many_days_at_once(void **state)
{
    struct world *w = *state;
    struct group g;

    for (int round = 0; round < 3; round++)
        for (int day = 0; day < 20; day++)
            put_one(w, &g, 30, (struct wish){.time_ns = NOON - day * DAY + round});
    assert_int_equal(count(w, 0, INT64_MAX), 60);
    for (int day = 0; day < 20; day++)
        assert_int_equal(count(w, NOON - day * DAY, NOON - day * DAY + 3), 3);
}

static void attempts_and_classes(void **state)
{
    static const uint32_t days[] = {0, 1, 2, 3, 4, 7, 8, 15, 16, 30, 31, 90, 91, 4000000000};
    static const uint16_t classes[] = {1, 1, 3, 3, 7, 7, 15, 15, 30, 30, 90, 90, 90, 90};
    struct attempt a = {.boot = 0xfedcba9876543210, .group = 0xabcdef012345, .place = 63}, b;
    char text[ATTEMPT_TEXT];
    struct str rest;

    (void)state;
    for (size_t i = 0; i < COUNTOF(days); i++)
        assert_int_equal(retention_class(days[i]), classes[i]);
    attempt_format(a, text);
    assert_string_equal(text, "fedcba9876543210abcdef012345003f");
    assert_true(attempt_parse(str_of(text), &b));
    assert_int_equal(b.boot, a.boot);
    assert_int_equal(b.group, a.group);
    assert_int_equal(b.place, a.place);
    assert_false(attempt_parse(STR("fedcba9876543210abcdef012345003"), &b));
    assert_false(attempt_parse(STR("fedcba9876543210abcdef01234500zz"), &b));
    assert_null(backend_find(STR("sqlite"), &rest));
    assert_null(backend_find(STR("sqlitex:"), &rest));
    assert_string_equal(backend_find(STR("sqlite:/x"), &rest)->write->scheme, "sqlite");
    assert_true(str_eq(rest, STR("/x")));
    assert_string_equal(backend_find(STR("null:"), &rest)->write->scheme, "null");
}

static const struct CMUnitTest own_tests[] = {
    CASE(another_key_is_refused),
    CASE(one_process_per_folder),
    CASE(a_folder_of_its_own),
    CASE(half_made_files_do_no_harm),
    CASE(a_damaged_file_is_an_error_not_less),
    CASE(a_full_disk_asks_to_come_again),
    CASE(marks_survive_a_full_disk),
    CASE(a_bad_row_fails_itself),
    CASE(many_days_at_once),
    cmocka_unit_test(attempts_and_classes),
};

int main(void)
{
    int failed = _cmocka_run_group_tests("conformance: sqlite", conformance_tests, conformance_n_tests, NULL, NULL);

    return failed + cmocka_run_group_tests_name("sqlite", own_tests, NULL, NULL);
}
