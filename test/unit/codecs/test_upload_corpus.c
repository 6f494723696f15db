/* Every captured request of the five kinds: types, totals, and self and total of functions, as its independent reader
 * found them. */
#include "test/oracle/capture.h"
#include "test/oracle/feed.h"
#include "test/oracle/tally.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct hash_key key;

/* How this gateway turns a type of a pprof. */
struct turned {
    struct str type, unit;
    int64_t factor;
};

static struct str text(json_t *o, const char *name)
{
    return str_of(json_string_value(json_object_get(o, name)));
}

static int64_t number(json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

static struct turned turn(json_t *pprof, json_t *type)
{
    struct turned t = {text(type, "type"), text(type, "unit"), 1};
    json_t *types = json_object_get(pprof, "sample_types"), *period = json_object_get(pprof, "period_type");
    bool cpu = false;

    for (size_t i = 0; i < json_array_size(types); i++)
        cpu |= str_eq(text(json_array_get(types, i), "type"), STR("cpu"));
    if (str_eq(t.unit, STR("microseconds")))
        t = (struct turned){t.type, STR("nanoseconds"), 1000};
    if (str_eq(t.type, STR("samples")) && !cpu && str_eq(text(period, "type"), STR("cpu")) &&
        str_eq(text(period, "unit"), STR("nanoseconds")))
        t = (struct turned){STR("cpu"), STR("nanoseconds"), number(pprof, "period")};
    return t;
}

/* Self or total of a function by name, over all its files. total: only where the name has one file. */
static void check_rows(const struct tally *t, uint32_t k, json_t *rows, bool self, int64_t factor)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        struct str name = text(json_array_get(rows, i), "function");
        int64_t sum = 0;
        uint32_t files = 0;
        if (str_starts(name, STR("0x")))
            continue;
        for (uint32_t r = 0; r < t->n_rows; r++) {
            if (!str_eq(t->rows[r].name, name))
                continue;
            files++;
            sum += self ? t->rows[r].self[k] : t->rows[r].total[k];
        }
        if (self || files == 1)
            assert_int_equal(sum, number(json_array_get(rows, i), "value") * factor);
    }
}

static void check_type(const struct tally *t, json_t *found, struct turned as)
{
    uint32_t k = 0;

    while (k < t->n_types && !(str_eq(t->types[k].type, as.type) && str_eq(t->types[k].unit, as.unit)))
        k++;
    assert_true(k < t->n_types);
    assert_int_equal(t->types[k].total, number(found, "total") * as.factor);
    check_rows(t, k, json_object_get(found, "top_self"), true, as.factor);
    check_rows(t, k, json_object_get(found, "top_cumulative"), false, as.factor);
}

static bool all_zero(json_t *types)
{
    for (size_t i = 0; i < json_array_size(types); i++)
        if (number(json_array_get(types, i), "nonzero_samples"))
            return false;
    return true;
}

static void check_pprof(const struct outcome *o, json_t *pprof)
{
    json_t *types = json_object_get(pprof, "sample_types");

    assert_int_equal(o->fault.err, E_OK);
    assert_int_equal(o->record == NULL, all_zero(types));
    if (!o->record)
        return;
    struct arena *a = arena_new(256 << 20);
    const struct tally *t = tally_record(a, o->record);
    assert_int_equal(t->n_types, json_array_size(types));
    for (size_t i = 0; i < json_array_size(types); i++)
        check_type(t, json_array_get(types, i), turn(pprof, json_array_get(types, i)));
    assert_int_equal(o->record->duration_ns < 0, 0);
    arena_free(a);
}

static void check_push(const struct upload *u, json_t *push)
{
    json_t *series = json_object_get(push, "series");
    uint32_t at = 0;

    for (size_t s = 0; s < json_array_size(series); s++) {
        json_t *samples = json_object_get(json_array_get(series, s), "samples");
        json_t *labels = json_object_get(json_array_get(series, s), "labels");
        for (size_t i = 0; i < json_array_size(samples); i++, at++) {
            const struct outcome *o = upload_outcome(u, at);
            json_t *sample = json_array_get(samples, i);
            check_pprof(o, json_object_get(sample, "profile"));
            for (size_t l = 0; o->record && l < json_array_size(labels); l++) {
                struct str name = str_of(json_string_value(json_array_get(json_array_get(labels, l), 0)));
                struct str value = str_of(json_string_value(json_array_get(json_array_get(labels, l), 1)));
                bool kept = str_starts(name, STR("__"));
                for (uint32_t m = 0; m < o->record->series.n_labels; m++)
                    kept |= str_eq(o->record->series.labels[m].name, name) &&
                            str_eq(o->record->series.labels[m].value, value);
                assert_true(kept);
                if (str_eq(name, STR("__name__")))
                    assert_true(str_eq(o->record->series.name, value));
            }
            assert_true(!o->record || o->record->identity == (text(sample, "id").len != 0));
        }
    }
    assert_int_equal(upload_outcomes(u), at);
}

static void check_folded(const struct outcome *o, const struct capture *c)
{
    json_t *folded = json_object_get(c->expect, "folded"), *query = json_object_get(c->expect, "query");
    const char *rate = json_string_value(json_object_get(query, "sampleRate"));
    int64_t period = 1000000000 / (rate ? strtol(rate, NULL, 10) : 100);
    struct arena *a = arena_new(256 << 20);

    assert_non_null(o->record);
    check_type(tally_record(a, o->record), folded, (struct turned){STR("cpu"), STR("nanoseconds"), period});
    assert_true(str_eq(o->record->types[0].id, STR("process_cpu:cpu:nanoseconds:cpu:nanoseconds")));
    arena_free(a);
}

static void check_series(const struct outcome *o, const struct capture *c)
{
    json_t *name = json_object_get(c->expect, "name"), *value;
    json_t *labels = json_object_get(name, "labels");
    const char *label;

    if (!o->record)
        return;
    if (!json_object_get(labels, "service_name"))
        assert_true(str_starts(text(name, "app"), o->record->series.service));
    json_object_foreach(labels, label, value)
    {
        bool found = strncmp(label, "__", 2) == 0;
        for (uint32_t m = 0; m < o->record->series.n_labels; m++)
            found |= str_eq(o->record->series.labels[m].name, str_of(label)) &&
                     str_eq(o->record->series.labels[m].value, str_of(json_string_value(value)));
        assert_true(found);
    }
}

static json_t *profile_part(const struct capture *c)
{
    json_t *parts = json_object_get(json_object_get(c->expect, "multipart"), "parts"), *part;
    size_t i;

    json_array_foreach(parts, i, part)
    {
        if (str_eq(text(part, "name"), STR("profile")))
            return json_object_get(part, "pprof");
    }
    return NULL;
}

static void one(struct capture *c, void *ctx)
{
    size_t *taken = ctx;
    struct fault f = {0};

    if (!c->taken)
        return;
    ++*taken;
    struct upload *u = feed_upload(&c->spec, c->body, &(struct feed_plan){0}, &f);
    if (!u)
        fail_msg("%s: %s", c->name, f.text);
    print_message("%s\n", c->name);
    if (c->spec.kind == UPLOAD_PUSH_PROTO || c->spec.kind == UPLOAD_PUSH_JSON) {
        check_push(u, json_object_get(c->expect, "push"));
    } else {
        check_series(upload_outcome(u, 0), c);
        if (c->spec.kind == UPLOAD_FOLDED)
            check_folded(upload_outcome(u, 0), c);
        else
            check_pprof(upload_outcome(u, 0),
                        c->spec.kind == UPLOAD_PPROF ? json_object_get(c->expect, "pprof") : profile_part(c));
    }
    upload_free(u);
}

static void test_corpus(void **state)
{
    size_t taken = 0;

    (void)state;
    hash_key_derive(&key, STR("corpus"));
    assert_true(capture_each(&key, one, &taken) > 100);
    assert_true(taken >= 65);
    print_message("%zu requests\n", taken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_corpus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
