/*
 * What hour compaction has to do over every store that keeps hours (backends/hours.h): a suite beside conformance.c. A
 * store's test includes both and runs hours_tests.
 */
#include "backends/hours.h"
#include "backends/day.h"
#include "codecs/merge.h"
#include "codecs/shares.h"

#define HOUR (3600 * SECOND)
#define MINUTE (60 * SECOND)

/* Everything that a scan says, in sums: equal ones mean equal answers. */
struct tallied {
    uint64_t rows, hours, profiles, samples, check;
    int64_t total, duration_ns, columns;
    int64_t last_time;
    uint64_t series[64];
    uint32_t n_series;
    bool in_order;
};

static void add_series(struct tallied *t, uint64_t id)
{
    for (uint32_t i = 0; i < t->n_series; i++)
        if (t->series[i] == id)
            return;
    assert_true(t->n_series < COUNTOF(t->series));
    t->series[t->n_series++] = id;
}

static enum err on_tallied(void *ctx, const struct stored *s)
{
    struct tallied *t = ctx;

    t->rows++;
    t->hours += s->hour != NULL;
    t->profiles += s->n_profiles;
    t->samples += s->n_samples;
    t->check += s->hour ? s->hour->check : share_check(s->attempt.boot, s->attempt.group, s->attempt.place);
    t->total += s->types[0].total;
    t->duration_ns += s->duration_ns;
    t->in_order &= s->time_ns >= t->last_time;
    t->last_time = s->time_ns;
    if (!s->hour)
        add_series(t, s->series_id);
    for (uint32_t i = 0; s->hour && i < s->hour->n_series; i++)
        add_series(t, s->hour->series_ids[i]);
    if (s->body.len) {
        struct arena *a = arena_new(SIZE_MAX);
        struct record_view v;
        struct fault f;

        assert_int_equal(record_open(&v, s->body, a, &f), E_OK);
        for (uint32_t i = 0; i < v.n_samples; i++)
            t->columns += v.values[0][i];
        arena_free(a);
    }
    return E_OK;
}

static struct tallied tally(struct world *w, int64_t from, int64_t until, enum scan_what what)
{
    struct selection sel = {.project = STR("p"), .from_ns = from, .until_ns = until};
    struct tallied t = {.in_order = true, .last_time = INT64_MIN};
    struct fault f = {0};

    assert_int_equal(w->backend->read->scan(w->store, &sel, what, on_tallied, &t, &f), E_OK);
    assert_true(t.in_order);
    return t;
}

static void assert_same(const struct tallied *a, const struct tallied *b)
{
    assert_int_equal(a->profiles, b->profiles);
    assert_int_equal(a->samples, b->samples);
    assert_int_equal(a->check, b->check);
    assert_int_equal(a->total, b->total);
    assert_int_equal(a->columns, b->columns);
    assert_int_equal(a->duration_ns, b->duration_ns);
    assert_int_equal(a->n_series, b->n_series);
}

/* What is due, copied. */
struct due_list {
    struct hour_todo list[64];
    uint32_t n;
    struct arena *arena;
};

static enum err on_due(void *ctx, const struct hour_todo *t)
{
    struct due_list *d = ctx;
    struct hour_todo *to = &d->list[d->n];

    for (uint32_t i = 0; i < d->n; i++)
        if (d->list[i].hour == t->hour && str_eq(d->list[i].service, t->service))
            return E_OK;
    assert_true(d->n < COUNTOF(d->list));
    to->hour = t->hour;
    assert_true(arena_str(d->arena, t->project, &to->project) && arena_str(d->arena, t->service, &to->service) &&
                arena_str(d->arena, t->tokens, &to->tokens));
    d->n++;
    return E_OK;
}

static struct due_list list_due(struct world *w, int64_t last)
{
    struct due_list d = {.arena = arena_new(SIZE_MAX)};
    struct fault f = {0};

    assert_int_equal(w->backend->hours->due(w->store, last, on_due, &d, &f), E_OK);
    return d;
}

static uint32_t compact_listed(struct world *w, struct due_list *d, size_t memory)
{
    uint32_t rows = 0;

    for (uint32_t i = 0; i < d->n; i++) {
        struct hour_result r;
        struct fault f = {0};

        assert_int_equal(hour_compact(w->backend, w->store, &w->key, &d->list[i], memory, NULL, &r, &f), E_OK);
        assert_true(r.written);
        rows += r.rows;
    }
    arena_free(d->arena);
    return rows;
}

static uint32_t compact_all(struct world *w, size_t memory)
{
    struct due_list d = list_due(w, INT64_MAX / HOUR - 1);

    return compact_listed(w, &d, memory);
}

enum { PLENTY = 64 << 20 };

/* Pods, services and classes over two hours and a bit. */
static void fill(struct world *w, struct group *groups, int n)
{
    for (int i = 0; i < n; i++) {
        struct wish wishes[] = {
            {.time_ns = NOON + i * 7 * MINUTE, .pod = "a", .value = i + 1, .first_stack = (uint32_t)i},
            {.time_ns = NOON + i * 7 * MINUTE + SECOND, .pod = "b", .value = 2 * i + 1},
            {.time_ns = NOON + i * 7 * MINUTE, .service = "other", .pod = "c", .value = 5, .stacks = 7},
        };

        put_wishes(w, &groups[i], i % 5 == 4 ? 7 : 15, wishes, COUNTOF(wishes));
        w->backend->write->mark(w->store, &groups[i], 7);
    }
    world_reopen(w);
}

static void hours_say_what_profiles_say(void **state)
{
    struct world *w = *state;
    struct group groups[20];
    struct tallied raw, hours, part;

    fill(w, groups, 20);
    raw = tally(w, NOON, NOON + 3 * HOUR, SCAN_BODY);
    assert_int_equal(raw.profiles, 60);
    assert_int_equal(tally(w, NOON, NOON + 3 * HOUR, SCAN_BODY | SCAN_HOURS).hours, 0);
    compact_all(w, PLENTY);
    hours = tally(w, NOON, NOON + 3 * HOUR, SCAN_BODY | SCAN_HOURS);
    assert_same(&raw, &hours);
    assert_int_equal(hours.rows, hours.hours);
    assert_int_equal(hours.rows, 2 * 2 * 3); /* services, classes, hours */
    hours = tally(w, NOON, NOON + 3 * HOUR, SCAN_BODY);
    assert_int_equal(hours.hours, 0);
    assert_same(&raw, &hours);
    /* an hour that is cut comes as profiles */
    raw = tally(w, NOON + 30 * MINUTE, NOON + 2 * HOUR + 1, SCAN_BODY);
    part = tally(w, NOON + 30 * MINUTE, NOON + 2 * HOUR + 1, SCAN_BODY | SCAN_HOURS);
    assert_same(&raw, &part);
    assert_int_equal(part.hours, 4);
    assert_true(part.rows > part.hours);
    for (int i = 0; i < 20; i++)
        free_group(&groups[i]);
}

static void what_comes_late_makes_an_hour_dirty(void **state)
{
    struct world *w = *state;
    struct group groups[8], late;
    struct tallied t;

    fill(w, groups, 8);
    compact_all(w, PLENTY);
    put_one(w, &late, 15, (struct wish){.time_ns = NOON + 30 * MINUTE, .pod = "late", .value = 1000});
    t = tally(w, NOON, NOON + HOUR, SCAN_BODY | SCAN_HOURS);
    assert_int_equal(t.profiles, 25);
    assert_true(t.rows > t.hours && t.hours > 0); /* the other service stays */
    assert_int_equal(compact_all(w, PLENTY), 2);
    t = tally(w, NOON, NOON + HOUR, SCAN_BODY | SCAN_HOURS);
    assert_int_equal(t.profiles, 25);
    assert_int_equal(t.rows, t.hours);
    for (int i = 0; i < 8; i++)
        free_group(&groups[i]);
    free_group(&late);
}

static void a_late_mark_makes_an_hour_dirty(void **state)
{
    struct world *w = *state;
    struct group a, b;

    put_one(w, &a, 15, (struct wish){.time_ns = NOON + 30 * MINUTE, .content = 9, .pod = "a"});
    put_one(w, &b, 15, (struct wish){.time_ns = NOON + 30 * MINUTE, .content = 9, .pod = "a"});
    compact_all(w, PLENTY);
    assert_int_equal(tally(w, NOON, NOON + HOUR, SCAN_HOURS).profiles, 1);
    w->backend->write->mark(w->store, &a, 1);
    w->backend->write->mark(w->store, &b, 1);
    world_reopen(w);
    assert_int_equal(tally(w, NOON, NOON + HOUR, SCAN_HOURS).profiles, 2);
    assert_int_equal(tally(w, NOON, NOON + HOUR, SCAN_HOURS).hours, 0);
    compact_all(w, PLENTY);
    assert_int_equal(tally(w, NOON, NOON + HOUR, SCAN_HOURS).profiles, 2);
    assert_int_equal(tally(w, NOON, NOON + HOUR, SCAN_HOURS).hours, 1);
    free_group(&a);
    free_group(&b);
}

/* The first copy counts until the second is told: that one is in the next hour, and in the next day. */
static void copies_on_both_sides_of_midnight(void **state)
{
    struct world *w = *state;
    int64_t midnight = (TODAY + 1) * DAY;
    struct group a, b;

    put_one(w, &a, 15, (struct wish){.time_ns = midnight - MINUTE, .content = 9, .pod = "a"});
    compact_all(w, PLENTY);
    assert_int_equal(tally(w, midnight - HOUR, midnight, SCAN_HOURS).hours, 1);
    put_one(w, &b, 15, (struct wish){.time_ns = midnight + MINUTE, .content = 9, .pod = "a"});
    w->backend->write->mark(w->store, &b, 1);
    world_reopen(w);
    assert_int_equal(tally(w, midnight - HOUR, midnight, SCAN_HOURS).profiles, 0);
    compact_all(w, PLENTY);
    assert_int_equal(tally(w, midnight - HOUR, midnight, SCAN_HOURS).profiles, 0);
    assert_int_equal(tally(w, midnight, midnight + HOUR, SCAN_HOURS).profiles, 1);
    assert_int_equal(tally(w, midnight, midnight + HOUR, SCAN_HOURS).hours, 1);
    free_group(&a);
    free_group(&b);
}

static void what_comes_while_an_hour_is_compacted_is_not_lost(void **state)
{
    struct world *w = *state;
    struct group a, b;
    struct due_list due;

    put_one(w, &a, 15, (struct wish){.time_ns = NOON + 30 * MINUTE, .pod = "a"});
    due = list_due(w, hour_of(NOON));
    assert_int_equal(due.n, 1);
    put_one(w, &b, 15, (struct wish){.time_ns = NOON + 31 * MINUTE, .pod = "a"});
    compact_listed(w, &due, PLENTY);
    assert_int_equal(tally(w, NOON, NOON + HOUR, SCAN_HOURS).hours, 0); /* still dirty */
    assert_int_equal(tally(w, NOON, NOON + HOUR, SCAN_HOURS).profiles, 2);
    compact_all(w, PLENTY);
    assert_int_equal(tally(w, NOON, NOON + HOUR, SCAN_HOURS).hours, 1);
    assert_int_equal(tally(w, NOON, NOON + HOUR, SCAN_HOURS).profiles, 2);
    free_group(&a);
    free_group(&b);
}

static void little_memory_makes_more_rows(void **state)
{
    struct world *w = *state;
    struct group groups[8];
    struct tallied raw, hours;

    fill(w, groups, 8);
    raw = tally(w, NOON, NOON + HOUR, SCAN_BODY);
    compact_all(w, 1);
    hours = tally(w, NOON, NOON + HOUR, SCAN_BODY | SCAN_HOURS);
    assert_int_equal(hours.rows, hours.hours);
    assert_int_equal(hours.rows, raw.rows);
    assert_same(&raw, &hours);
    for (int i = 0; i < 8; i++)
        free_group(&groups[i]);
}

static void a_cancelled_hour_stays_dirty(void **state)
{
    struct world *w = *state;
    atomic_bool cancel = true;
    struct hour_result r;
    struct fault f = {0};
    struct group a;
    struct due_list due;

    put_one(w, &a, 15, (struct wish){.time_ns = NOON + 30 * MINUTE});
    due = list_due(w, hour_of(NOON));
    assert_int_equal(hour_compact(w->backend, w->store, &w->key, &due.list[0], PLENTY, &cancel, &r, &f), E_CANCELLED);
    assert_false(r.written);
    assert_int_equal(tally(w, NOON, NOON + HOUR, SCAN_HOURS).hours, 0);
    arena_free(due.arena);
    due = list_due(w, hour_of(NOON));
    assert_int_equal(due.n, 1);
    compact_listed(w, &due, PLENTY);
    free_group(&a);
}

#define HOURS_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
extern const struct CMUnitTest hours_tests[];
extern const size_t hours_n_tests;
const struct CMUnitTest hours_tests[] = {
    HOURS_TEST(hours_say_what_profiles_say),
    HOURS_TEST(what_comes_late_makes_an_hour_dirty),
    HOURS_TEST(a_late_mark_makes_an_hour_dirty),
    HOURS_TEST(copies_on_both_sides_of_midnight),
    HOURS_TEST(what_comes_while_an_hour_is_compacted_is_not_lost),
    HOURS_TEST(little_memory_makes_more_rows),
    HOURS_TEST(a_cancelled_hour_stays_dirty),
};
const size_t hours_n_tests = COUNTOF(hours_tests);
