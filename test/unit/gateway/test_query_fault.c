/* Every allocation of a read failing in turn, once and from then on: 503 or the whole answer, never a crash, a leak or
 * a part. */
#include "test/unit/gateway/query_fake.h"

#include "test/oracle/failing_malloc.h"

static const int64_t noon = 1796040000 * INT64_C(1000000000);

static int setup(void **state)
{
    static const struct fake_profile list[] = {
        {"shop",
         "env=lab",
         "cpu/nanoseconds",
         "process_cpu",
         "gospy",
         0,
         10,
         {{"main.main@m.go:1;fmt.Print@fmt/print.go:2", "tenant=a", {5}}, {"", "", {2}}}},
        {"shop",
         "env=prod",
         "cpu/nanoseconds",
         "process_cpu",
         "gospy",
         1000,
         10,
         {{"main.main@m.go:1;0x10@bin", "", {7}}}},
    };
    struct fake_store *s = fake_open();
    for (size_t i = 0; i < COUNTOF(list); i++) {
        struct fake_profile p = list[i];
        p.time_ns += noon;
        fake_add(s, &p);
    }
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    fake_close(*state);
    return 0;
}

/* Whether it was answered as without failures. */
static bool scenario(struct fake_store *s, const char *target, long at, bool from_then_on, const struct buf *whole)
{
    struct answer a;
    fail_from(at, from_then_on);
    fake_ask_at(s, target, noon + 1000, &a);
    fail_no_more();
    bool good = a.status == 200;
    if (good) {
        assert_int_equal(a.body.len, whole->len);
        assert_memory_equal(a.body.p, whole->p, whole->len);
    } else if (a.status != 503) {
        fail_msg("%s, allocation %ld: %d %.*s", target, at, a.status, STR_ARG(buf_view(&a.body)));
    }
    buf_free(&a.body);
    return good;
}

static void test_each_fails(void **state)
{
    static const char *const targets[] = {
        "functions?own=1&match={env=~\"l.*\"}",
        "functions?sort=own&match={tenant!=\"b\"}",
        "overview?service=shop",
        "flamegraph",
        "flamegraph?format=folded",
        "flamegraph?format=dot",
        "flamegraph?format=speedscope",
        "flamegraph?format=text",
        "function?function=fmt.Print",
        "timeline?by=tenant",
        "services",
        "types",
        "labels",
        "labels/tenant",
        "profiles?limit=1",
        "profiles/00000000000000010000000000010000",
        "profiles/00000000000000010000000000010000/original",
        "merge.pb.gz",
        "rules",
    };
    for (size_t i = 0; i < COUNTOF(targets); i++) {
        struct answer whole;
        fake_ask_at(*state, targets[i], noon + 1000, &whole);
        assert_int_equal(whole.status, 200);
        for (int from_then_on = 0; from_then_on < 2; from_then_on++) {
            long at = 0;
            while (!scenario(*state, targets[i], at, from_then_on != 0, &whole.body) || at < calls)
                at++;
            assert_true(at > 1);
        }
        buf_free(&whole.body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_fails)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
