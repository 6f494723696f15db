/* The null store: of the conformance suite what holds for a store that keeps nothing. */
#include "test/unit/backends/conformance.c"

const char *conformance_address = "null:";

static void counts_and_drops(void **state)
{
    struct world *w = *state;
    struct group g;

    for (int i = 0; i < 10; i++)
        put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    w->backend->write->mark(w->store, &g, 1);
    w->backend->write->expire(w->store, NOON);
    assert_int_equal(w->dones, 10);
    assert_true(w->backend->write->healthy(w->store));
}

static void gives_nothing_back(void **state)
{
    struct world *w = *state;
    enum original_state kept = ORIGINAL_KEPT;
    struct fault f = {0};
    struct buf out = {0};
    struct group g;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON, .original = "x"});
    assert_int_equal(count(w, 0, INT64_MAX), 0);
    assert_int_equal(blocks(w, "svc"), 0);
    assert_int_equal(w->backend->read->original(w->store, STR("p"), (struct attempt){.boot = g.boot, .group = g.id},
                                                &kept, &out, &f),
                     E_NOT_FOUND);
}

static void closing_waits_for_the_put(void **state)
{
    struct world *w = *state;
    struct group g;

    make_group(w, &g, 15, &(struct wish){.time_ns = NOON}, 1);
    start_put(w, &g);
    world_close(w);
    assert_int_equal(w->dones, 1);
    free_group(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(counts_and_drops), CASE(gives_nothing_back),
                                       CASE(closing_waits_for_the_put)};

    assert_true(conformance_n_tests > 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
