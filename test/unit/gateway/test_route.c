/* What is decided from a head alone: route, target, media types, coding, parameters. */
#include "gateway/route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gateway/media.h"

static char *prefixes[] = {"/pyroscope", "/b/c"};
static const struct conf conf = {.prefixes = prefixes, .n_prefixes = 2};

static const struct {
    const char *method, *target;
    enum err err;
    enum route route;
} cases[] = {
    {"POST", "/ingest", E_OK, ROUTE_INGEST},
    {"POST", "//ingest?name=x", E_OK, ROUTE_INGEST},
    {"POST", "/pyroscope/ingest", E_OK, ROUTE_INGEST},
    {"POST", "/pyroscope//ingest", E_OK, ROUTE_INGEST},
    {"POST", "/b/c/push.v1.PusherService/Push", E_OK, ROUTE_PUSH},
    {"POST", "//push.v1.PusherService/Push", E_OK, ROUTE_PUSH},
    {"POST", "http://other/ingest", E_OK, ROUTE_INGEST},
    {"POST", "/pyroscope/../pyroscope/./%69ngest", E_OK, ROUTE_INGEST},
    {"POST", "/%70yroscope/x/%2e%2e/ingest", E_OK, ROUTE_INGEST},
    {"POST", "/pyroscope%2fingest", E_NO_ROUTE, ROUTE_NONE}, /* an escaped slash is data */
    {"GET", "/api/v1/labels/a%2fb", E_OK, ROUTE_QUERY},
    {"GET", "/api/v1/../../metrics", E_NO_ROUTE, ROUTE_NONE},
    {"GET", "/api%2fv1/services", E_NO_ROUTE, ROUTE_NONE},
    {"POST", "/v1development/profiles", E_OK, ROUTE_OTLP},
    {"GET", "/otlp/v1/validate", E_OK, ROUTE_VALIDATE},
    {"GET", "/pyroscope/api/v1/labels/pod", E_OK, ROUTE_QUERY},
    {"HEAD", "/readyz", E_OK, ROUTE_READYZ},
    {"GET", "/", E_OK, ROUTE_ROOT},
    {"GET", "/pyroscope", E_OK, ROUTE_ROOT},
    {"GET", "/ingest", E_BAD_METHOD, ROUTE_INGEST},
    {"POST", "/healthz", E_BAD_METHOD, ROUTE_HEALTHZ},
    {"POST", "/ingest/", E_NO_ROUTE, ROUTE_NONE},
    {"POST", "/pyroscopeingest", E_NO_ROUTE, ROUTE_NONE},
    {"POST", "/pyroscope/pyroscope/ingest", E_NO_ROUTE, ROUTE_NONE},
    {"POST", "/b/ingest", E_NO_ROUTE, ROUTE_NONE},
    {"GET", "/metrics", E_NO_ROUTE, ROUTE_NONE}, /* the admin listener's */
    {"POST", "/INGEST", E_NO_ROUTE, ROUTE_NONE},
};

static void test_routes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNTOF(cases); i++) {
        struct fault f = {.err = E_OK};
        struct target t;
        struct routed r;
        assert_int_equal(target_parse(&t, str_of(cases[i].target), &f), E_OK);
        enum err e = route_find(&conf, ROUTE_PUBLIC, str_of(cases[i].method), t.path, &r, &f);
        assert_int_equal(e, cases[i].err);
        assert_int_equal(r.route, cases[i].route);
        target_free(&t);
    }
}

/* The path that a target stands for; NULL: 400. */
static const struct {
    const char *target, *path;
} paths[] = {
    {"/a/b", "/a/b"},
    {"//a///b//", "/a/b/"},
    {"/a/./b/../c", "/a/c"},
    {"/a/..", "/"},
    {"/a/../..", "/"},
    {"/../../a", "/a"},
    {"/a/.", "/a/"},
    {"/a//../b", "/b"},
    {"/a/...", "/a/..."},
    {"/a/.b/..c", "/a/.b/..c"},
    {"/%61%2d%2D%5f%7e", "/a--_~"},
    {"/a/%2e%2E/b", "/b"},
    {"/a/.%2e/b", "/b"},
    {"/a%2fb%2F..%2f", "/a%2Fb%2F..%2F"},
    {"/%c3%bC", "/%C3%BC"},
    {"/%25%32%65", "/%252e"}, /* decoded once */
    {"/a;x=1,@:!$&'()*+", "/a;x=1,@:!$&'()*+"},
    {"http://h", "/"},
    {"http://h?x", "/"},
    {"HTTPS://h:1//a/../b", "/b"},
    {"/a://b", "/a:/b"},
    {"/x?y=/../z", "/x"},
    {"/a%2", NULL},
    {"/a%zz", NULL},
    {"/a%", NULL},
    {"/a%00", NULL},
    {"/a%0a", NULL},
    {"/a%7f", NULL},
    {"/a\b", NULL},
    {"/a{b}", NULL},
    {"/a\"b", NULL},
    {"/a#b", NULL},
    {"/a?b#c", NULL},
    {"/a\x80", NULL},
    {"http:///a", NULL},
    {"http://u@h/a", NULL},
    {"ftp://h/a", NULL},
    {"a/b", NULL},
    {"h:80", NULL},
    {"?x", NULL},
    {"", NULL},
};

static void test_paths(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNTOF(paths); i++) {
        struct fault f = {.err = E_OK};
        struct target t;
        enum err e = target_parse(&t, str_of(paths[i].target), &f);
        if (e != (paths[i].path ? E_OK : E_BAD_REQUEST) || (e == E_OK && !str_eq(t.path, str_of(paths[i].path))))
            fail_msg("%s: %d %.*s", paths[i].target, e, STR_ARG(t.path));
        target_free(&t);
    }
}

static void test_rest_allow_and_admin(void **state)
{
    struct fault f = {.err = E_OK};
    struct routed r;

    (void)state;
    assert_int_equal(route_find(&conf, ROUTE_PUBLIC, STR("GET"), STR("/api/v1/labels/pod"), &r, &f), E_OK);
    assert_true(str_eq(r.rest, STR("labels/pod")) && r.who == ROUTE_READ);
    assert_int_equal(route_find(&conf, ROUTE_PUBLIC, STR("GET"), STR("/ingest"), &r, &f), E_BAD_METHOD);
    assert_string_equal(r.allow, "POST");
    assert_int_equal(route_find(&conf, ROUTE_ADMIN, STR("GET"), STR("/metrics"), &r, &f), E_OK);
    f = (struct fault){.err = E_OK};
    assert_int_equal(route_find(&conf, ROUTE_ADMIN, STR("POST"), STR("/ingest"), &r, &f), E_NO_ROUTE);
    assert_non_null(strstr(f.text, "/ingest"));
}

static void param_is(const char *target, const char *name, const char *want)
{
    struct fault f = {.err = E_OK};
    struct target t;
    struct buf out = {0};
    struct str value;

    assert_int_equal(target_parse(&t, str_of(target), &f), E_OK);
    out.p = malloc(t.query.len + 1);
    out.cap = t.query.len + 1;
    enum err e = target_param(&t, name, &out, &value, &f);
    if (want)
        assert_true(e == E_OK && str_eq(value, str_of(want)));
    else
        assert_int_equal(e, E_BAD_REQUEST);
    buf_free(&out);
    target_free(&t);
}

static void test_params(void **state)
{
    (void)state;
    param_is("/x?name=a%7Bb%3dc%7D&name=second", "name", "a{b=c}");
    param_is("/x?a=1&name=my+app", "name", "my app");
    param_is("/x?rename=1&name={a=b,c;d}", "name", "{a=b,c;d}");
    param_is("/x?name", "name", "");
    param_is("/x?name=%4", "name", NULL);
    param_is("/x?name=%zz", "name", NULL);
    param_is("/x?name=%41", "name", "A");
    param_is("/x", "name", "");
    param_is("/x?", "name", "");
}

static void boundary_is(const char *type, const char *want)
{
    char out[16];
    struct str found;
    bool fits = media_param(str_of(type), STR("boundary"), out, sizeof out, &found);

    assert_int_equal(fits, want != NULL);
    if (want)
        assert_true(str_eq(found, str_of(want)));
}

static void test_media(void **state)
{
    (void)state;
    assert_true(media_is(STR("Application/JSON ; charset=utf-8"), STR("application/json")));
    assert_false(media_is(STR("application/jsonx"), STR("application/json")));
    assert_false(media_is(STR(""), STR("application/json")));
    boundary_is("multipart/form-data; Boundary=\"a b\"", "a b");
    boundary_is("multipart/form-data; x=\";boundary=no\"; boundary=--yes", "--yes");
    boundary_is("multipart/form-data; boundary=\"q\\\"r\"", "q\"r");
    boundary_is("multipart/form-data", "");
    boundary_is("multipart/form-data; boundary=", "");
    boundary_is("multipart/form-data; boundary=12345678901234567", NULL);
    boundary_is("multipart/form-data; boundary=\"open", "open");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_routes), cmocka_unit_test(test_paths),
                                       cmocka_unit_test(test_rest_allow_and_admin), cmocka_unit_test(test_params),
                                       cmocka_unit_test(test_media)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
