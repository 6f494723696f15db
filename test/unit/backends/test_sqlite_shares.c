/* Function shares in the embedded store: what a minute holds is the sum of the profiles that it names. */
#include "backends/shares.h"
#include "test/unit/backends/conformance.c"

#include <string.h>

const char *conformance_address = "sqlite:";

enum { MINUTES = 8 };
struct minutes {
    struct arena *arena;
    int64_t at[MINUTES];
    struct shares shares[MINUTES];
    int n;
};

static enum err keep(void *ctx, int64_t minute, struct str packed)
{
    struct minutes *m = ctx;
    struct fault f = {0};

    assert_true(m->n < MINUTES);
    m->at[m->n] = minute;
    assert_int_equal(shares_unpack(packed, m->arena, &m->shares[m->n++], &f), E_OK);
    return E_OK;
}

static void read_minutes(struct world *w, struct minutes *m, const char *type)
{
    const struct share_of of = {STR("p"), STR("s"), str_of(type)};
    struct fault f = {0};

    m->n = 0;
    assert_int_equal(w->backend->shares->minutes((struct share_store *)w->store, &of, share_minute(NOON),
                                                 share_minute(NOON) + 60, keep, m, &f),
                     E_OK);
}

static void minutes_add_up(void **state)
{
    struct world *w = *state;
    struct minutes m = {.arena = arena_new(SIZE_MAX)};
    struct wish wishes[] = {
        {.service = "s", .time_ns = NOON, .value = 5},
        {.service = "s", .time_ns = NOON + 59 * SECOND, .value = 7, .first_stack = 2},
        {.service = "s", .time_ns = NOON + 60 * SECOND, .value = 11},
        {.service = "other", .time_ns = NOON, .value = 100},
    };
    struct group first, second;
    int64_t totals[2] = {0};
    struct record *r[4];

    w->host.shares = true;
    for (int i = 0; i < 4; i++)
        r[i] = make_record(w, wishes[i]);
    put_wishes(w, &first, 15, wishes, 4);
    put_wishes(w, &second, 15, wishes, 1);
    totals[0] = 2 * r[0]->types[0].total + r[1]->types[0].total;
    totals[1] = r[2]->types[0].total;
    world_reopen(w);
    char type[128];
    snprintf(type, sizeof type, "%.*s", STR_ARG(r[0]->types[0].id));
    read_minutes(w, &m, type);
    assert_int_equal(m.n, 2);
    for (int i = 0; i < 2; i++) {
        int64_t self = 0;
        assert_int_equal(m.at[i], share_minute(NOON) + i);
        assert_int_equal(m.shares[i].total, totals[i]);
        for (uint32_t j = 0; j < m.shares[i].n; j++)
            self += m.shares[i].rows[j].self;
        assert_int_equal(self, totals[i]);
    }
    assert_true(m.shares[0].check == share_check(first.boot, first.id, 0) + share_check(first.boot, first.id, 1) +
                                         share_check(second.boot, second.id, 0));
    read_minutes(w, &m, "no:such:type::");
    assert_int_equal(m.n, 0);
    for (int i = 0; i < 4; i++)
        record_free(r[i]);
    arena_free(m.arena);
}

/* Small and large profiles of one minute: a few pieces, which add up to all of them. */
static void sizes_of_all_kinds(void **state)
{
    static const uint32_t stacks[] = {1, 300, 2, 40, 1, 300, 3, 90, 1, 2};
    struct world *w = *state;
    struct minutes m = {.arena = arena_new(SIZE_MAX)};
    struct shares want = {0}, got = {0};
    struct fault f = {0};
    char type[128];

    w->host.shares = true;
    for (uint32_t i = 0; i < COUNTOF(stacks); i++) {
        struct wish wish = {
            .service = "s", .time_ns = NOON + i, .value = i + 1, .stacks = stacks[i], .first_stack = 20 * i};
        struct group g = {.class_days = 15, .day = TODAY, .boot = 7, .id = i + 1, .n = 1};
        struct shares *own;

        g.records[0] = make_record(w, wish);
        snprintf(type, sizeof type, "%.*s", STR_ARG(g.records[0]->types[0].id));
        put_group(w, &g);
        assert_int_equal(shares_of(g.records[0], &w->key, m.arena, &own, &f), E_OK);
        own[0].check = share_check(7, i + 1, 0);
        assert_int_equal(shares_add(&want, &own[0], m.arena, &want, &f), E_OK);
        free_group(&g);
    }
    read_minutes(w, &m, type);
    assert_in_range(m.n, 1, 6);
    for (int i = 0; i < m.n; i++)
        assert_int_equal(shares_add(&got, &m.shares[i], m.arena, &got, &f), E_OK);
    assert_true(got.check == want.check && got.total == want.total && got.n == want.n);
    assert_memory_equal(got.rows, want.rows, want.n * sizeof *want.rows);
    arena_free(m.arena);
}

/* The same group once more, as after a lost answer, adds nothing. */
static void putting_again_adds_nothing(void **state)
{
    struct world *w = *state;
    struct minutes m = {.arena = arena_new(SIZE_MAX)};
    struct wish wish = {.service = "s", .time_ns = NOON, .value = 5};
    struct group g = {.class_days = 15, .day = TODAY, .boot = 9, .id = 4, .n = 1};
    char type[128];

    w->host.shares = true;
    g.records[0] = make_record(w, wish);
    snprintf(type, sizeof type, "%.*s", STR_ARG(g.records[0]->types[0].id));
    put_group(w, &g);
    put_group(w, &g);
    read_minutes(w, &m, type);
    assert_int_equal(m.n, 1);
    assert_int_equal(m.shares[0].total, g.records[0]->types[0].total);
    assert_true(m.shares[0].check == share_check(9, 4, 0));
    free_group(&g);
    arena_free(m.arena);
}

static void off_means_none(void **state)
{
    struct world *w = *state;
    struct minutes m = {.arena = arena_new(SIZE_MAX)};
    struct group g;

    w->host.shares = false;
    put_one(w, &g, 15, (struct wish){.service = "s", .time_ns = NOON});
    read_minutes(w, &m, "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
    assert_int_equal(m.n, 0);
    arena_free(m.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(minutes_add_up, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(sizes_of_all_kinds, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(putting_again_adds_nothing, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(off_means_none, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
