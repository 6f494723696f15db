/* Hour compaction over the embedded store, and the bytes of its rows. */
#include "test/unit/backends/conformance.c"

#include "test/unit/backends/hours.c"

#include "backends/hour_row.h"
#include "backends/spans.h"
#include "codecs/instance.h"

const char *conformance_address = "sqlite:";

static void a_row_comes_back(void **state)
{
    (void)state;
    struct label labels[] = {{STR("env"), STR("lab")}};
    struct series series = {STR("p"), STR("shop"), STR("process_cpu"), STR("gospy"), labels, 1};
    struct sample_type types[] = {{STR("cpu"), STR("nanoseconds"), STR("process_cpu:cpu"), AGG_AVERAGE, -7}};
    struct span covered[] = {{NOON, NOON + 5}, {NOON + 9, NOON + 12}};
    uint64_t ids[] = {3, UINT64_MAX};
    struct str left_out[] = {STR("pod")}, names[] = {STR("endpoint"), STR("x")};
    struct stored_hour hour = {hour_of(NOON), NOON + 99, 77, covered, 2, ids, 2, left_out, 1, names, 2}, h;
    struct stored in = {.attempt = {1, 2, 3},
                        .series = &series,
                        .time_ns = NOON,
                        .duration_ns = 8,
                        .types = types,
                        .n_types = 1,
                        .n_samples = 1234567890123,
                        .n_profiles = 5,
                        .hour = &hour,
                        .class_days = 30},
                  out;
    struct buf about = {0};
    struct arena *a = arena_new(SIZE_MAX);
    struct fault f = {0};

    hour_about(&in, &about);
    assert_int_equal(hour_open(buf_view(&about), STR("body"), STR("p"), a, &out, &h, &f), E_OK);
    assert_true(str_eq(out.series->service, series.service) && str_eq(out.series->labels[0].value, STR("lab")));
    assert_int_equal(out.types[0].total, -7);
    assert_int_equal(out.types[0].aggregation, AGG_AVERAGE);
    assert_int_equal(out.n_samples, 1234567890123);
    assert_int_equal(out.attempt.place, 3);
    assert_int_equal(out.class_days, 30);
    assert_int_equal(h.last_ns, NOON + 99);
    assert_int_equal(h.check, 77);
    assert_int_equal(h.covered[1].from_ns, NOON + 9);
    assert_int_equal(h.covered[1].until_ns, NOON + 12);
    assert_int_equal(h.series_ids[1], UINT64_MAX);
    assert_true(str_eq(h.left_out[0], STR("pod")) && str_eq(h.sample_names[1], STR("x")));
    for (size_t n = 0; n < about.len; n++) { /* cut anywhere, or one byte different: told, or some other row */
        struct str cut = {about.p, n};

        f = (struct fault){0};
        assert_int_equal(hour_open(cut, STR(""), STR("p"), a, &out, &h, &f), E_INTERNAL);
        about.p[n] ^= 0x55;
        f = (struct fault){0};
        (void)!hour_open(buf_view(&about), STR(""), STR("p"), a, &out, &h, &f);
        about.p[n] ^= 0x55;
    }
    arena_free(a);
    buf_free(&about);
}

static void spans_are_united(void **state)
{
    (void)state;
    struct spans s = {0};

    for (int64_t i = 0; i < 20000; i++)
        assert_true(spans_add(&s, (struct span){i * 7919 % 20000 * 10, i * 7919 % 20000 * 10 + (i % 2 ? 10 : 9)}));
    assert_true(spans_add(&s, (struct span){5, 5}));
    spans_unite(&s);
    int64_t sum = 0;
    for (uint32_t i = 0; i < s.n; i++) {
        sum += s.list[i].until_ns - s.list[i].from_ns;
        assert_true(i == 0 || s.list[i].from_ns > s.list[i - 1].until_ns);
    }
    assert_int_equal(sum, 20000 * 10 - 10000);
    assert_true(spans_add(&s, (struct span){-1, 1000000}));
    spans_unite(&s);
    assert_int_equal(s.n, 1);
    spans_free(&s);
}

static void instance_labels(void **state)
{
    (void)state;

    assert_true(label_is_instance(STR("pod")) && label_is_instance(STR("k8s.pod.name")));
    assert_true(label_is_instance(STR("k8s_pod_name")) && label_is_instance(STR("Host-Name")));
    assert_true(label_is_instance(STR("__session_id__")) && label_is_instance(STR("service.instance.id")));
    assert_false(label_is_instance(STR("env")) || label_is_instance(STR("namespace")) ||
                 label_is_instance(STR("container")) || label_is_instance(STR("po")) || label_is_instance(STR("pods")));
    assert_true(label_left_out(STR("trace_id")) && !label_left_out(STR("endpoint")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_comes_back),
        cmocka_unit_test(spans_are_united),
        cmocka_unit_test(instance_labels),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    return failed + _cmocka_run_group_tests("hours_tests", hours_tests, hours_n_tests, NULL, NULL);
}
