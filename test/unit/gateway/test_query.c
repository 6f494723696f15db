/* Reads against a store in memory: every endpoint, exact numbers, errors. Tables of (what is asked, where to look, what
 * is there). */
#include <inttypes.h>
#include <jansson.h>

#include "test/unit/gateway/query_fake.h"

static const int64_t second = 1000000000;
static const int64_t noon = 1796040000 * INT64_C(1000000000); /* a whole minute */

/* now is noon + 30 min: the last hour is 11:30 to 12:30. */
static const struct fake_profile profiles[] = {
    {"checkout",
     "env=lab,pod=web-1",
     "cpu/nanoseconds,samples/count",
     "process_cpu",
     "nodespy",
     0,
     10,
     {{"main@src/app.js:1;price@src/cart.js:41;JSON.parse@node:internal", "", {400, 4}},
      {"main@src/app.js:1;price@src/cart.js:41", "", {100, 1}},
      {"main@src/app.js:1;fact@src/f.js:7;fact@src/f.js:7;fact@src/f.js:7", "", {200, 2}},
      {"", "", {50, 1}}}},
    {"checkout",
     "env=prod,pod=web-2",
     "cpu/nanoseconds,samples/count",
     "process_cpu",
     "nodespy",
     60,
     10,
     {{"main@src/app.js:1;price@src/cart.js:41;JSON.parse@node:internal", "tenant=a", {20, 1}},
      {"main@src/app.js:1;price@src/cart.js:41;JSON.parse@node:internal", "tenant=b", {30, 1}},
      {"main@src/app.js:1;price@src/cart.js:41;JSON.parse@node:internal", "tenant=a", {0, 0}}}},
    {"memory",
     "env=lab",
     "alloc_objects/count,alloc_space/bytes,inuse_objects/count,inuse_space/bytes",
     "memory",
     "gospy",
     0,
     0,
     {{"runtime.main@runtime/proc.go:1;main.main@shop/main.go:5", "", {1, 10, 2, 1000}}}},
    {"memory",
     "env=lab",
     "alloc_objects/count,alloc_space/bytes,inuse_objects/count,inuse_space/bytes",
     "memory",
     "gospy",
     60,
     0,
     {{"runtime.main@runtime/proc.go:1;main.main@shop/main.go:5", "", {1, 10, 2, 3000}}}},
    {"native",
     "env=lab",
     "cpu/nanoseconds",
     "process_cpu",
     "ebpf",
     120,
     1,
     {{"0x10@bin;0x20@bin", "", {5}}, {"0x10@bin", "", {6}}, {"main@m.c:1;gone@m.c!", "", {7}}}},
    {"native", "env=lab", "cpu/nanoseconds", "other_cpu", "ebpf", 120, 1, {{"f", "", {1}}}},
    {"kthreadd", "env=lab", "cpu/nanoseconds", "process_cpu", "ebpf", 0, 1, {{"f", "", {1}}}},
    {"lambdas",
     "env=lab",
     "cpu/nanoseconds",
     "process_cpu",
     "pyspy",
     0,
     1,
     {{"<lambda>@a.py:3", "", {1}},
      {"<lambda>@a.py:9", "", {2}},
      {"named@a.py:3", "", {4}},
      {"named@a.py:9", "", {8}}}},
    {"names",
     "env=lab",
     "cpu/nanoseconds",
     "process_cpu",
     "x",
     0,
     1,
     {{"a", "", {1}}, {"a;b", "", {2}}, {"c;d", "", {4}}}},
    {"folded",
     "env=lab",
     "cpu/nanoseconds",
     "process_cpu",
     "unknown",
     0,
     1,
     {{"java/lang/Thread.run;Shop.work;jbyte_copy", "", {3}}, {"thread_native_entry;GC::run", "", {2}}}},
    {"evil", "env=lab", "cpu/nanoseconds", "process_cpu", "x", 0, 1, {{"\x1b[31mred\xc2\x9b;q\"uote\\@f", "", {1}}}},
    {"checkout", "env=old", "cpu/nanoseconds", "process_cpu", "nodespy", -86400, 10, {{"old", "", {1}}}},
};

static void fill(struct fake_store *s)
{
    for (size_t i = 0; i < COUNTOF(profiles); i++) {
        struct fake_profile p = profiles[i];
        p.time_ns = noon + p.time_ns * second;
        p.duration_ns *= second;
        if (i == 1) /* a (stack, labels) pair is unique in a profile */
            p.samples[2].stack = NULL;
        fake_add(s, &p);
    }
}

static int setup(void **state)
{
    struct fake_store *s = fake_open();
    fill(s);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    fake_close(*state);
    return 0;
}

static void ask(void **state, const char *target, struct answer *a)
{
    fake_ask_at(*state, target, noon + 1800 * second, a);
}

/* "functions.0.self" */
static json_t *look(json_t *at, const char *path)
{
    char copy[200], *rest = copy;
    const char *word;
    snprintf(copy, sizeof(copy), "%s", path);
    while (at && (word = fake_cut(&rest, ".")))
        at = json_is_array(at) ? json_array_get(at, strtoul(word, NULL, 10)) : json_object_get(at, word);
    return at;
}

/* As text, compact: numbers and strings bare. */
static void show(const json_t *v, char *out, size_t n)
{
    if (!v) {
        snprintf(out, n, "(absent)");
    } else if (json_is_string(v)) {
        snprintf(out, n, "%s", json_string_value(v));
    } else {
        char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        snprintf(out, n, "%s", text);
        free(text);
    }
}

struct expectation {
    const char *target, *path, *value;
};

static void check_all(void **state, const struct expectation *list, size_t n)
{
    const char *target = NULL;
    json_t *root = NULL;
    for (size_t i = 0; i < n; i++) {
        char seen[2000];
        if (list[i].target) {
            struct answer a;
            json_decref(root);
            target = list[i].target;
            ask(state, target, &a);
            if (a.status != 200)
                fail_msg("%s: %d %.*s", target, a.status, STR_ARG(buf_view(&a.body)));
            assert_string_equal(a.content_type, "application/json");
            root = json_loadb(a.body.p, a.body.len, JSON_REJECT_DUPLICATES, NULL);
            if (!root)
                fail_msg("%s: no JSON: %.*s", target, STR_ARG(buf_view(&a.body)));
            buf_free(&a.body);
        }
        show(look(root, list[i].path), seen, sizeof(seen));
        if (strcmp(seen, list[i].value) != 0)
            fail_msg("%s: %s is %s, not %s", target, list[i].path, seen, list[i].value);
    }
    json_decref(root);
}
#define CHECK(list) check_all(state, list, COUNTOF(list))

static void test_common_fields(void **state)
{
    static const struct expectation list[] = {
        {"functions?service=checkout", "from", "2026-11-30T11:30:00.000000000Z"},
        {NULL, "until", "2026-11-30T12:30:00.000000000Z"},
        {NULL, "service", "checkout"},
        {NULL, "type",
         "{\"id\":\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\",\"name\":\"cpu\",\"unit\":\"nanoseconds\","
         "\"aggregation\":\"sum\"}"},
        {NULL, "total", "800"},
        {NULL, "average", "null"},
        {NULL, "profiles", "2"},
        {NULL, "series", "2"},
        {NULL, "samples", "6"},
        {NULL, "covered", "0.00555556"},
        {"functions?service=nobody", "total", "0"},
        {NULL, "service", "nobody"},
        {NULL, "functions", "[]"},
        {NULL, "type", "null"},
        {NULL, "other", "{\"functions\":0,\"self\":0}"},
        {"functions?service=checkout&from=2026-11-30T12:01:00.5Z&until=2026-11-30T13:01:30%2B01:00", "from",
         "2026-11-30T12:01:00.000000000Z"},
        {NULL, "until", "2026-11-30T12:02:00.000000000Z"},
        {NULL, "total", "50"},
        {NULL, "covered", "0.166667"},
        {"functions?service=memory", "type.name", "inuse_space"},
        {NULL, "total", "4000"},
        {NULL, "average", "2000"},
        {NULL, "type.aggregation", "average"},
        {"functions?service=memory&type=alloc_space", "total", "20"},
        {NULL, "average", "null"},
        {"functions?service=memory&type=cpu", "total", "0"},
        {NULL, "type", "null"},
        {"functions?profile=00000000000000010000000000020000", "total", "50"},
        {NULL, "from", "2026-11-30T12:01:00.000000000Z"},
        {NULL, "until", "2026-11-30T12:01:10.000000000Z"},
        {NULL, "covered", "1"},
    };
    CHECK(list);
}

static void test_functions(void **state)
{
    static const struct expectation list[] = {
        {"functions?service=checkout&own=true", "functions.0",
         "{\"function\":\"JSON.parse\",\"file\":\"node:internal\",\"line\":0,\"own_code\":false,\"self\":450,\"total\":"
         "450,\"own\":0,"
         "\"self_share\":0.5625,\"total_share\":0.5625,\"own_share\":0}"},
        {NULL, "functions.1.function", "fact"},
        {NULL, "functions.1.self", "200"},
        {NULL, "functions.1.total", "200"}, /* once per sample, whatever the recursion */
        {NULL, "functions.1.own", "200"},
        {NULL, "functions.2.function", "price"},
        {NULL, "functions.2.line", "41"},
        {NULL, "functions.2.own", "550"},
        {NULL, "functions.3.function", "[no stack]"},
        {NULL, "functions.3.total", "50"},
        {NULL, "functions.3.own", "0"},
        {NULL, "functions.4.function", "main"},
        {NULL, "functions.4.total", "750"},
        {NULL, "no_own_code", "50"},
        {NULL, "other", "{\"functions\":0,\"self\":0,\"own\":0}"},
        {"functions?service=checkout&limit=1", "other", "{\"functions\":4,\"self\":350}"},
        {NULL, "functions.0.own", "(absent)"},
        {"functions?service=checkout&sort=total&limit=2", "functions.0.function", "main"},
        {NULL, "functions.1.function", "price"},
        {"functions?service=checkout&sort=own", "functions.0.function", "price"},
        {NULL, "functions.0.callees",
         "[{\"function\":\"JSON.parse\",\"file\":\"node:internal\",\"value\":450,\"share\":0.5625}]"},
        {NULL, "functions.1.function", "fact"},
        {NULL, "functions.2.function", "main"}, /* own code first, though it is charged with nothing */
        {NULL, "functions.3.function", "JSON.parse"},
        {"functions?service=checkout&sort=own&limit=3", "other", "{\"functions\":2,\"self\":500,\"own\":0}"},
        {"functions?service=native&type=process_cpu:cpu:nanoseconds:cpu:nanoseconds&own=1", "functions.0.function",
         "gone"},
        {NULL, "functions.0.own_code", "false"}, /* folded frames never own */
        {NULL, "functions.1.function", "0x10"},
        {NULL, "functions.1.file", "bin"},
        {NULL, "functions.1.total", "11"},
        {NULL, "functions.3.function", "main"},
        {NULL, "functions.3.own", "7"},
        {"functions?service=lambdas", "functions.0.self", "12"}, /* by name and file */
        {NULL, "functions.0.line", "3"},
        {NULL, "functions.1.self", "2"}, /* anonymous ones by line as well */
        {NULL, "functions.1.line", "9"},
        {NULL, "functions.2.line", "3"},
        /* nothing says Java but the other frames */
        {"functions?service=folded&sort=own&limit=1", "functions.0.function", "Shop.work"},
        {NULL, "functions.0.own", "3"},
        {NULL, "no_own_code", "2"},
    };
    CHECK(list);
}

static void test_selectors(void **state)
{
    static const struct expectation list[] = {
        {"functions?match={service_name=\"checkout\",env=\"lab\"}", "total", "750"},
        {NULL, "service", "checkout"},
        {"functions?service=checkout&match={env=~\"l.b|x\"}", "total", "750"},
        {"functions?service=checkout&match={env=~\"l\"}", "total", "0"}, /* anchored */
        {"functions?service=checkout&match={env!~\"lab\"}", "total", "50"},
        {"functions?service=checkout&match={tenant=\"a\"}", "total", "20"}, /* of samples */
        {NULL, "profiles", "1"},
        {"functions?service=checkout&match={tenant=\"\"}", "total", "750"},
        {"functions?service=checkout&match={tenant!=\"a\"}", "total", "780"},
        {NULL, "profiles", "2"},
        {"functions?service=checkout&match={tenant=\"a\",env=\"lab\"}", "total", "0"},
        {"functions?service=checkout&match=process_cpu{}", "total", "800"},
        {"functions?service=native&match={__name__=\"other_cpu\"}", "total", "1"},
        {"functions?service=native&match={__profile_type__=~\"other.*\"}", "total", "1"},
        {"types?service=checkout&match={tenant=\"b\"}", "types.0.total", "30"},
        {NULL, "types.0.profiles", "1"},
        {"services?match={tenant=\"b\"}", "services.0.samples", "1"},
        {NULL, "services.1", "(absent)"},
    };
    CHECK(list);
}

static void test_lists(void **state)
{
    static const struct expectation list[] = {
        {"services", "services.0.service", "checkout"},
        {NULL, "services.0.profiles", "2"},
        {NULL, "services.0.samples", "6"},
        {NULL, "services.0.first", "2026-11-30T12:00:00.000000000Z"},
        {NULL, "services.0.last", "2026-11-30T12:01:00.000000000Z"},
        {NULL, "services.0.types",
         "[\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\",\"process_cpu:samples:count:cpu:nanoseconds\"]"},
        {NULL, "services.0.kind", "application"},
        {NULL, "services.7", "(absent)"},
        {"services?kernel=true", "services.7.service", "kthreadd"},
        {NULL, "services.7.kind", "kernel"},
        {"types?service=memory", "types.3",
         "{\"id\":\"memory:inuse_space:bytes:cpu:nanoseconds\",\"name\":\"inuse_space\",\"unit\":\"bytes\",\"group\":"
         "\"memory\","
         "\"aggregation\":\"average\",\"primary\":true,\"profiles\":2,\"total\":4000}"},
        {NULL, "types.0.primary", "false"},
        {"labels?service=checkout", "names",
         "[\"__name__\",\"__profile_type__\",\"env\",\"pod\",\"service_name\",\"tenant\"]"},
        {"labels/pod?service=checkout", "values", "[\"web-1\",\"web-2\"]"},
        {"labels/tenant", "values", "[\"a\",\"b\"]"},
        {"labels/no%20such", "values", "[]"},
        {"rules", "otherwise", "own"},
        {NULL, "rules.0.pattern", "[unknown]"},
    };
    CHECK(list);
}

static void test_profiles(void **state)
{
    static const struct expectation list[] = {
        {"profiles?service=checkout", "count", "2"},
        {NULL, "covered", "0.00555556"},
        {NULL, "profiles.0.id", "00000000000000010000000000020000"},
        {NULL, "profiles.0.time", "2026-11-30T12:01:00.000000000Z"},
        {NULL, "profiles.0.duration", "10000000000"},
        {NULL, "profiles.0.labels",
         "{\"__name__\":\"process_cpu\",\"env\":\"prod\",\"pod\":\"web-2\",\"service_name\":\"checkout\"}"},
        {NULL, "profiles.0.types",
         "[\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\",\"process_cpu:samples:count:cpu:nanoseconds\"]"},
        {NULL, "profiles.0.totals", "[50,2]"},
        {NULL, "profiles.0.samples", "2"},
        {NULL, "profiles.0.format", "pprof"},
        {NULL, "profiles.1.id", "00000000000000010000000000010000"},
        {NULL, "next", "null"},
        {"profiles?service=checkout&limit=1", "profiles.1", "(absent)"},
        {NULL, "next", "1796040060000000000.00000000000000010000000000020000"},
        {"profiles?service=checkout&limit=1&cursor=1796040060000000000.00000000000000010000000000020000",
         "profiles.0.id", "00000000000000010000000000010000"},
        {NULL, "next", "null"},
        {"profiles/00000000000000010000000000010000", "id", "00000000000000010000000000010000"},
        {NULL, "original", "kept"},
        {NULL, "dropped.saturated", "false"},
    };
    CHECK(list);
}

/* Pages of every size see every profile once, also those of equal times. */
static void test_pages(void **state)
{
    for (int limit = 1; limit < 12; limit++) {
        char target[200], cursor[100] = "";
        int seen = 0;
        do {
            struct answer a;
            snprintf(target, sizeof(target), "profiles?limit=%d%s%s", limit, *cursor ? "&cursor=" : "", cursor);
            ask(state, target, &a);
            assert_int_equal(a.status, 200);
            json_t *root = json_loadb(a.body.p, a.body.len, 0, NULL);
            seen += (int)json_array_size(json_object_get(root, "profiles"));
            const char *next = json_string_value(json_object_get(root, "next"));
            snprintf(cursor, sizeof(cursor), "%s", next ? next : "");
            json_decref(root);
            buf_free(&a.body);
        } while (*cursor);
        assert_int_equal(seen, (int)COUNTOF(profiles) - 1);
    }
}

static void test_overview(void **state)
{
    static const struct expectation list[] = {
        {"overview?service=checkout", "sentence",
         "In checkout, 56 % of CPU time is spent in JSON.parse; of your own code, price takes most, 69 %, calling "
         "JSON.parse (56 %)."},
        {NULL, "top", "{\"function\":\"JSON.parse\",\"file\":\"node:internal\",\"self\":450,\"share\":0.5625}"},
        {NULL, "own", "{\"function\":\"price\",\"file\":\"src/cart.js\",\"own\":550,\"share\":0.6875}"},
        {NULL, "callees", "[{\"function\":\"JSON.parse\",\"file\":\"node:internal\",\"value\":450,\"share\":0.5625}]"},
        {"overview?service=memory", "sentence", "In memory, 100 % of memory is spent in main.main."},
        {"overview?service=nobody", "sentence", "There are no samples of nobody in the last hour."},
        {NULL, "top", "null"},
        {NULL, "own", "null"},
        {NULL, "callees", "[]"},
    };
    CHECK(list);
}

static void test_function(void **state)
{
    static const struct expectation list[] = {
        {"function?service=checkout&function=JSON.parse", "function.self", "450"},
        {NULL, "function.own", "0"},
        {NULL, "callers", "[{\"function\":\"price\",\"file\":\"src/cart.js\",\"value\":450,\"share\":0.5625}]"},
        {NULL, "callees", "[]"},
        {NULL, "own_caller", "{\"function\":\"price\",\"file\":\"src/cart.js\",\"value\":450,\"share\":0.5625}"},
        {NULL, "source_url", "null"},
        {NULL, "total", "800"},
        {"function?service=checkout&function=fact&file=src/f.js", "callers.0.function", "fact"},
        {NULL, "callers.0.value", "200"}, /* an edge once per sample */
        {NULL, "callers.1.function", "main"},
        {NULL, "callees.0.function", "fact"},
        {NULL, "own_caller", "null"},
        {"function?service=checkout&function=none&file=", "function.total", "0"},
        {NULL, "callers", "[]"},
    };
    CHECK(list);
}

static void test_timeline(void **state)
{
    static const struct expectation list[] = {
        {"timeline?service=checkout&step=1m", "series.0.points",
         "[[\"2026-11-30T12:00:00.000000000Z\",750],[\"2026-11-30T12:01:00.000000000Z\",50]]"},
        {NULL, "series.0.labels", "{}"},
        {NULL, "series.0.counts", "[1,1]"},
        {NULL, "step", "60"},
        {NULL, "total", "800"},
        {NULL, "series_count", "2"},
        {"timeline?service=checkout&step=15m", "series.0.points", "[[\"2026-11-30T12:00:00.000000000Z\",800]]"},
        {"timeline?service=checkout&by=pod", "series.0.labels", "{\"pod\":\"web-1\"}"},
        {NULL, "series.1.total", "50"},
        {"timeline?service=checkout&by=tenant", "series.0.labels", "{}"}, /* of samples */
        {NULL, "series.0.total", "750"},
        {NULL, "series.1",
         "{\"labels\":{\"tenant\":\"b\"},\"total\":30,\"points\":[[\"2026-11-30T12:01:00.000000000Z\",30]],\"counts\":["
         "1]}"},
        {NULL, "series.2.total", "20"},
        {"timeline?service=checkout&by=tenant&limit=1", "other", "{\"series\":2,\"total\":50}"},
        {"timeline?service=checkout&match={tenant=\"a\"}", "total", "20"},
        {"timeline?service=nobody", "series", "[]"},
        {"timeline?profile=00000000000000010000000000020000", "series.0.total", "50"},
    };
    CHECK(list);
}

static void test_flamegraph(void **state)
{
    static const struct expectation list[] = {
        /* the worked example of protocol.md 5.5 */
        {"flamegraph?service=names", "names", "[\"total\",\"a\",\"c\",\"b\",\"d\"]"},
        {NULL, "levels", "[[0,7,0,0],[0,3,1,1,0,4,0,2],[1,2,2,3,0,4,4,4]]"},
        {NULL, "max_self", "4"},
        {NULL, "cut", "{\"value\":0,\"nodes\":0}"},
        {NULL, "total", "7"},
        {"flamegraph?service=names&limit=2", "levels", "[[0,7,0,0],[0,4,0,1,0,3,3,2],[0,4,4,3]]"},
        {NULL, "names", "[\"total\",\"c\",\"other\",\"d\"]"},
        {NULL, "cut", "{\"value\":3,\"nodes\":2}"},
        {"flamegraph?service=nobody", "levels", "[[0,0,0,0]]"},
        {NULL, "names", "[\"total\"]"},
        {NULL, "max_self", "0"},
        {"flamegraph?service=lambdas", "names", "[\"total\",\"<lambda> (a.py:3)\",\"<lambda> (a.py:9)\",\"named\"]"},
    };
    CHECK(list);
}

static int64_t number(json_t *root, const char *path)
{
    return json_integer_value(look(root, path));
}

/* Boxes of an answer: how many nodes they stand for, what their selfs add up to. */
static void sum_boxes(json_t *root, int64_t *nodes, int64_t *self)
{
    size_t d, i;
    json_t *level, *names = json_object_get(root, "names");
    *nodes = *self = 0;
    json_array_foreach(json_object_get(root, "levels"), d, level)
    {
        for (i = 0; i < json_array_size(level); i += 4) {
            const char *name =
                json_string_value(json_array_get(names, (size_t)json_integer_value(json_array_get(level, i + 3))));
            *self += json_integer_value(json_array_get(level, i + 2));
            *nodes += strcmp(name, "other") != 0;
        }
    }
}

/* Whatever the limit: nothing is lost, neither of the values nor of the count of nodes. */
static void test_flamegraph_cuts(void **state)
{
    static const char *const services[] = {"names", "checkout", "lambdas", "folded"};
    for (size_t s = 0; s < COUNTOF(services); s++) {
        int64_t all = 0, nodes, self;
        for (int limit = 100; limit > 0; limit = limit == 100 ? 12 : limit - 1) {
            char target[100];
            struct answer a;
            snprintf(target, sizeof(target), "flamegraph?service=%s&limit=%d", services[s], limit);
            ask(state, target, &a);
            assert_int_equal(a.status, 200);
            json_t *root = json_loadb(a.body.p, a.body.len, 0, NULL);
            sum_boxes(root, &nodes, &self);
            all = limit == 100 ? nodes : all;
            assert_int_equal(self, number(root, "total"));
            assert_int_equal(nodes + number(root, "cut.nodes"), all);
            if (limit < all - 1) /* equal ones at the edge all stay */
                assert_true(nodes - 1 >= limit || number(root, "cut.value") > 0);
            json_decref(root);
            buf_free(&a.body);
        }
    }
}

struct text_case {
    const char *target, *part;
};

static void test_texts(void **state)
{
    static const struct text_case list[] = {
        {"functions?service=checkout&format=text", "checkout · cpu · last hour · 2 profiles · 800 ns\n   self   total  "
                                                   "   own  function\n 56.2 %  56.2 %     0 %  JSON.parse"},
        {"functions?service=checkout&format=text&limit=1", " 43.8 %          93.8 %  (4 more)\n"},
        {"overview?service=checkout&format=text",
         "In checkout, 56 % of CPU time is spent in JSON.parse; of your own code, price takes most, 69 %,\ncalling "
         "JSON.parse (56 %).\ncheckout"},
        {"flamegraph?service=names&format=folded", "a;b 2\n"},
        {"flamegraph?service=checkout&format=folded", "[no stack] 50\n"},
        {"flamegraph?service=names&format=text", "|a 42.9 %"},
        {"flamegraph?service=evil&format=text", "\\x1b[31mred\\x9b"},
        {"flamegraph?service=evil&format=dot", "label=\"\\x1b[31mred\\x9b"},
        {"flamegraph?service=evil&format=dot", "q\\\"uote\\\\\\nself"},
        {"flamegraph?service=names&format=speedscope", "\"weights\":["},
        {"services?format=text", "application  checkout"},
        {"types?service=memory&format=text", "(primary)"},
        {"labels?format=text", "env\n"},
        {"profiles?format=text", "00000000000000010000000000020000  checkout"},
        {"timeline?service=checkout&step=1m&format=text", "2026-11-30T12:00Z  750 ns\n"},
        {"rules?format=text", "everything else is own code"},
        {"function?service=checkout&function=price&format=text", "own 69 %\ncallers\n 68.8 %  main"},
    };
    for (size_t i = 0; i < COUNTOF(list); i++) {
        struct answer a;
        ask(state, list[i].target, &a);
        buf_char(&a.body, 0);
        assert_int_equal(a.status, 200);
        if (!strstr(a.body.p, list[i].part))
            fail_msg("%s: no \"%s\" in\n%s", list[i].target, list[i].part, a.body.p);
        size_t columns = 0;
        for (const char *p = a.body.p; *p && !strstr(list[i].target, "speedscope"); p++) {
            columns = *p == '\n' ? 0 : columns + ((unsigned char)(*p & 0xc0) != 0x80);
            if (columns > 100 || ((unsigned char)*p < 0x20 && *p != '\n'))
                fail_msg("%s: a line too long, or a control character:\n%s", list[i].target, a.body.p);
        }
        buf_free(&a.body);
    }
}

static void test_errors(void **state)
{
    static const struct {
        const char *target;
        int status;
        const char *code, *part;
    } list[] = {
        {"functions?foo=1", 400, "invalid_argument", "\"foo\""},
        {"functions?limit=0", 400, "invalid_argument", "\"limit\""},
        {"functions?limit=x", 400, "invalid_argument", "\"limit\""},
        {"functions?limit=1&limit=1", 400, "invalid_argument", "\"limit\" is given twice"},
        {"functions?sort=name", 400, "invalid_argument", "\"sort\""},
        {"functions?own=maybe", 400, "invalid_argument", "\"own\""},
        {"functions?format=xml", 400, "invalid_argument", "\"format\""},
        {"functions?service=%zz", 400, "invalid_argument", "\"service\""},
        {"functions?service=%ff", 400, "invalid_argument", "\"service\""},
        {"functions?service=a%", 400, "invalid_argument", "\"service\""},
        {"functions?from=yesterday", 400, "invalid_argument", "\"from\""},
        {"functions?from=now&until=now-1h", 400, "invalid_argument", "\"until\""},
        {"functions?match=", 400, "invalid_argument", "\"match\""},
        {"functions?match={a=}", 400, "invalid_argument", "byte 3"},
        {"functions?match={a=~\"(\"}", 400, "invalid_argument", "\"match\""},
        {"functions?type=cpu&service=native", 400, "invalid_argument",
         "other_cpu:cpu:nanoseconds:cpu:nanoseconds, process_cpu:cpu:nanoseconds:cpu:nanoseconds"},
        {"functions?profile=xyz", 400, "invalid_argument", "\"profile\""},
        {"functions?profile=00000000000000010000000000020000&from=now", 400, "invalid_argument", "\"profile\""},
        {"functions?profile=00000000000000010000000000990000", 404, "not_found", "profile"},
        {"function", 400, "invalid_argument", "\"function\""},
        {"flamegraph?limit=1&max_nodes=1", 400, "invalid_argument", "\"max_nodes\""},
        {"profiles?cursor=1", 400, "invalid_argument", "\"cursor\""},
        {"profiles/00000000000000010000000000990000", 404, "not_found", ""},
        {"profiles/zzz", 404, "not_found", ""},
        {"profiles/zzz/original", 404, "not_found", ""},
        {"profiles/00000000000000010000000000990000/original", 404, "not_found", ""},
        {"profiles/00000000000000010000000000990000/pprof", 404, "not_found", ""},
        {"compare", 404, "unimplemented", ""},
        {"timeline?step=1", 400, "invalid_argument", "\"step\""},
        {"timeline?step=90s", 400, "invalid_argument", "\"step\""},
        {"timeline?step=1m&from=0", 400, "invalid_argument", "\"step\""},
        {"functions?type=a:b", 400, "invalid_argument", "\"type\""},
        {"profiles//original", 404, "unimplemented", ""},
        {"labels/", 404, "unimplemented", ""},
    };
    for (size_t i = 0; i < COUNTOF(list); i++) {
        struct answer a;
        ask(state, list[i].target, &a);
        json_t *root = json_loadb(a.body.p, a.body.len, 0, NULL);
        const char *message = json_string_value(json_object_get(root, "message"));
        if (a.status != list[i].status || !message || !strstr(message, list[i].part))
            fail_msg("%s: %d %.*s", list[i].target, a.status, STR_ARG(buf_view(&a.body)));
        assert_string_equal(json_string_value(json_object_get(root, "code")), list[i].code);
        assert_string_equal(a.content_type, "application/json");
        json_decref(root);
        buf_free(&a.body);
    }
}

static void test_original(void **state)
{
    struct fake_store *s = *state;
    static const struct {
        enum original_state state;
        int status;
        const char *part;
    } list[] = {{ORIGINAL_KEPT, 200, "as sent"}, {ORIGINAL_EXPIRED, 404, "expired"}, {ORIGINAL_OFF, 404, "off"}};
    for (size_t i = 0; i < COUNTOF(list); i++) {
        struct answer a;
        s->original = list[i].state;
        ask(state, "profiles/00000000000000010000000000020000/original", &a);
        buf_char(&a.body, 0);
        assert_int_equal(a.status, list[i].status);
        assert_non_null(strstr(a.body.p, list[i].part));
        if (a.status == 200) {
            assert_string_equal(a.content_type, "application/octet-stream");
            assert_true(a.nosniff);
            assert_non_null(strstr(a.disposition, "attachment"));
        }
        buf_free(&a.body);
    }
    s->original = ORIGINAL_KEPT;
}

static void test_accept(void **state)
{
    static const struct {
        const char *accept, *type;
    } list[] = {
        {"text/plain", "text/plain; charset=utf-8"},
        {"text/plain;q=0.9, application/json", "application/json"},
        {"application/json, text/plain, */*", "application/json"},
        {"text/plain, */*;q=0.1", "text/plain; charset=utf-8"},
        {"*/*", "application/json"},
        {"", "application/json"},
    };
    for (size_t i = 0; i < COUNTOF(list); i++) {
        struct answer a;
        struct query q = {
            .path = STR("functions"),
            .accept = str_of(list[i].accept),
            .project = STR("p"),
            .now_ns = noon,
            .backend = &fake_backend,
            .store = *state,
            .memory_limit = 64 << 20,
        };
        query_run(&q, &a);
        assert_string_equal(a.content_type, list[i].type);
        buf_free(&a.body);
    }
}

static void test_isolation(void **state)
{
    struct answer a;
    struct query q = {.path = STR("services"),
                      .project = STR("other"),
                      .now_ns = noon + second,
                      .backend = &fake_backend,
                      .store = *state,
                      .memory_limit = 64 << 20};
    query_run(&q, &a);
    assert_non_null(memmem(a.body.p, a.body.len, "\"services\":[]", 13));
    buf_free(&a.body);
}

/* Cancelled, too late, too large: an error, never half an answer. */
static void test_bounds(void **state)
{
    atomic_bool cancel;
    struct query q = {.path = STR("functions"),
                      .project = STR("p"),
                      .now_ns = noon + 1800 * second,
                      .backend = &fake_backend,
                      .store = *state,
                      .memory_limit = 64 << 20};
    struct answer a;
    atomic_init(&cancel, true);
    q.cancel = &cancel;
    query_run(&q, &a);
    assert_int_equal(a.status, 499);
    buf_free(&a.body);
    q.deadline_ns = 1;
    query_run(&q, &a);
    assert_int_equal(a.status, 504);
    buf_free(&a.body);
    q.cancel = NULL;
    q.deadline_ns = 0;
    q.memory_limit = 4096;
    query_run(&q, &a);
    assert_int_equal(a.status, 413);
    assert_non_null(memmem(a.body.p, a.body.len, "narrow the window", 17));
    buf_free(&a.body);
}

static void test_downloads(void **state)
{
    static const char *const targets[] = {"merge.pb.gz", "merge.pb.gz?service=nobody",
                                          "flamegraph?format=pprof&service=checkout",
                                          "profiles/00000000000000010000000000020000/pprof"};
    for (size_t i = 0; i < COUNTOF(targets); i++) {
        struct answer a;
        ask(state, targets[i], &a);
        if (a.status != 200)
            fail_msg("%s: %.*s", targets[i], STR_ARG(buf_view(&a.body)));
        assert_string_equal(a.content_type, "application/octet-stream");
        assert_memory_equal(a.body.p, "\x1f\x8b", 2);
        buf_free(&a.body);
    }
}

static void test_known(void **state)
{
    (void)state;
    assert_true(query_known(STR("services")));
    assert_true(query_known(STR("labels/pod")));
    assert_true(query_known(STR("profiles/1/pprof")));
    assert_false(query_known(STR("profiles/1/2/pprof")));
    assert_false(query_known(STR("")));
    assert_false(query_known(STR("compare")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_common_fields), cmocka_unit_test(test_functions),       cmocka_unit_test(test_selectors),
        cmocka_unit_test(test_lists),         cmocka_unit_test(test_profiles),        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_overview),      cmocka_unit_test(test_function),        cmocka_unit_test(test_flamegraph),
        cmocka_unit_test(test_timeline),      cmocka_unit_test(test_flamegraph_cuts), cmocka_unit_test(test_texts),
        cmocka_unit_test(test_errors),        cmocka_unit_test(test_original),        cmocka_unit_test(test_accept),
        cmocka_unit_test(test_isolation),     cmocka_unit_test(test_bounds),          cmocka_unit_test(test_downloads),
        cmocka_unit_test(test_known),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
