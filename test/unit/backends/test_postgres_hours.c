/* Hour compaction over a real PostgreSQL, also through PgBouncer, and what only it can get wrong. */
#include "test/unit/backends/conformance.c"

#include "test/unit/backends/hours.c"

#include "backends/pg_sql.h"
#include "test/unit/backends/postgres_server.h"

const char *conformance_address;

static int setup_bouncer(void **state)
{
    if (!server.bouncer)
        bouncer_start();
    use_database(server.bouncer_port, "127.0.0.1");
    return world_setup(state);
}

static int run_suite(const char *title, CMFixtureFunction with)
{
    struct CMUnitTest tests[32];

    for (size_t i = 0; i < hours_n_tests; i++) {
        tests[i] = hours_tests[i];
        tests[i].setup_func = with;
        tests[i].teardown_func = teardown;
    }
    return _cmocka_run_group_tests(title, tests, hours_n_tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    int failed;

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    server_make();
    failed = run_suite("hours: postgres", setup);
    failed += run_suite("hours: postgres through pgbouncer", setup_bouncer);
    server_remove();
    return failed;
}
