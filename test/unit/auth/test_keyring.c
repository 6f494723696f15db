/* The keys file, read strictly, and the question that every request asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>

#include "auth/keyring.h"
#include "auth/secret.h"

#define H1 "blake2b-256:1111111111111111111111111111111111111111111111111111111111111111"
#define H2 "blake2b-256:2222222222222222222222222222222222222222222222222222222222222222"
#define K "project: p, type: server, hash: \"" H1 "\""

static void test_reads(void **state)
{
    (void)state;
    struct fault f = {0};
    struct keyring *r =
        keyring_parse(STR("# c\n- { name: a, project: shop, type: reader, enabled: false, expires: "
                          "\"2027-01-31T00:00:00Z\", hash: \"" H1 "\" }\n- name: \"b \\u00e9\"\n  hash: " H2
                          "\n  type: admin\n  project: default\n  expires: never\n"),
                      "k.yaml", &f);

    assert_non_null(r);
    assert_int_equal(keyring_count(r), 2);
    const struct key *k = keyring_at(r, 0);
    assert_string_equal(k->name, "a");
    assert_string_equal(k->project, "shop");
    assert_int_equal(k->type, KEY_READER);
    assert_false(k->enabled);
    assert_int_equal(k->expires_s, 1801353600);
    assert_int_equal(k->hash[31], 0x11);
    k = keyring_at(r, 1);
    assert_string_equal(k->name, "b é");
    assert_int_equal(k->type, KEY_ADMIN);
    assert_true(k->enabled);
    assert_int_equal(k->expires_s, 0);
    keyring_free(r);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *error;
    } t[] = {
        {"", "k.yaml: holds no keys"},
        {"[]", "k.yaml: holds no keys"},
        {"# nothing\n", "holds no keys"},
        {"{}", "k.yaml:1:1: a map has no place here"},
        {"keys: []", "a map has no place here"},
        {"text", "needs a list of keys"},
        {"- text", "k.yaml:1:3: needs a list of keys"},
        {"- [a]", "a list has no place here"},
        {"- { name: {a: 1} }", "a map has no place here"},
        {"- { " K " }", "k.yaml:1:1: a key needs name, project, type and hash"},
        {"- { name: a, type: server, hash: \"" H1 "\" }", "needs name, project, type and hash"},
        {"- { name: a, project: p, hash: \"" H1 "\" }", "needs name, project, type and hash"},
        {"- { name: a, project: p, type: server }", "needs name, project, type and hash"},
        {"- { name: a, name: b, " K " }", "k.yaml:1:14: given twice in one key"},
        {"- { nmae: a, " K " }", "k.yaml:1:5: unknown; a key has"},
        {"- { name: \"\", " K " }", "k.yaml:1:11: name: 1 to 100"},
        {"- { name: \"a\\n\", " K " }", "name: 1 to 100"},
        {"- { name: \" a\", " K " }", "name: 1 to 100"},
        {"- { name: a, project: a/b, type: server, hash: \"" H1 "\" }", "project: 1 to 100"},
        {"- { name: a, project: p, type: writer, hash: \"" H1 "\" }", "type: server, browser, reader or admin"},
        {"- { name: a, enabled: yes, " K " }", "enabled: true or false"},
        {"- { name: a, enabled: , " K " }", "enabled: true or false"},
        {"- { name: a, expires: 2027-02-30T00:00:00Z, " K " }", "expires: never"},
        {"- { name: a, expires: soon, " K " }", "expires: never"},
        {"- { name: a, expires: \"1970-01-01T00:00:00Z\", " K " }", "expires: never"},
        {"- { name: a, project: p, type: server, hash: 11 }", "hash: blake2b-256:"},
        {"- { name: a, project: p, type: server, hash: \"blake2b-256:11\" }", "hash: blake2b-256:"},
        {"- { name: a, project: p, type: server, hash: \"" H1 "1\" }", "hash: blake2b-256:"},
        {"- { name: a, " K " }\n- { name: a, project: p, type: server, hash: \"" H2 "\" }",
         "k.yaml:2:1: there is a key named \"a\" already"},
        {"- { name: a, " K " }\n- { name: b, " K " }", "k.yaml:2:1: the keys \"a\" and \"b\" have the same secret"},
        {"- &x { name: a, " K " }", "a map has no place here"},
        {"- { name: &x a, " K " }", "anchors and tags"},
        {"- { name: !!str a, " K " }", "anchors and tags"},
        {"- *x", "aliases are not allowed"},
        {"- { name: \"a\\0b\", " K " }", "a NUL character"},
        {"- { name: a, " K " }\n---\n- { name: b }", "only one document"},
        {"- { name: a, " K " }\n- {", "k.yaml:3:1"},
        {"\xff", "k.yaml:1:1: "},
    };
    for (size_t i = 0; i < COUNTOF(t); i++) {
        struct fault f = {0};
        struct keyring *r = keyring_parse(str_of(t[i].yaml), "k.yaml", &f);
        if (r || !strstr(f.text, t[i].error))
            fail_msg("%s\nwanted: %s\ngot: %s", t[i].yaml, t[i].error, r ? "a keyring" : f.text);
        assert_int_equal(f.err, E_BAD_INPUT);
    }
}

static void test_missing(void **state)
{
    (void)state;
    struct fault f = {0};

    assert_null(keyring_load("/nonexistent/keys.yaml", &f));
    assert_int_equal(f.err, E_NOT_FOUND);
    f = (struct fault){0};
    assert_null(keyring_load("/dev/zero", &f));
    assert_int_equal(f.err, E_BAD_INPUT);
    assert_non_null(strstr(f.text, "larger than"));
}

static void test_find(void **state)
{
    (void)state;
    struct fault f = {0};
    struct keyring *r = keyring_new();
    struct key keys[] = {
        {.name = (char[]){"live"}, .project = (char[]){"p"}, .type = KEY_SERVER, .enabled = true},
        {.name = (char[]){"off"}, .project = (char[]){"p"}, .type = KEY_SERVER, .enabled = false},
        {.name = (char[]){"old"}, .project = (char[]){"q"}, .type = KEY_READER, .enabled = true, .expires_s = 1000},
    };

    for (size_t i = 0; i < COUNTOF(keys); i++) {
        key_hash(str_of(keys[i].name), keys[i].hash);
        assert_int_equal(keyring_add(r, &keys[i], &f), E_OK);
    }
    assert_string_equal(keyring_find(r, STR("live"), 0)->name, "live");
    assert_null(keyring_find(r, STR("liv"), 0));
    assert_null(keyring_find(r, STR("live "), 0));
    assert_null(keyring_find(r, STR(""), 0));
    assert_null(keyring_find(r, STR("off"), 0));
    assert_string_equal(keyring_find(r, STR("old"), 999)->project, "q");
    assert_null(keyring_find(r, STR("old"), 1000));
    keyring_free(r);
}

/* The hash is plain BLAKE2b with 256 bits: `printf %s abc | b2sum -l 256` gives the same. */
static void test_hash(void **state)
{
    (void)state;
    uint8_t h[32];
    char hex[65];

    key_hash(STR("abc"), h);
    secret_hex(h, 32, hex);
    assert_string_equal(hex, "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

static void test_lines_come_back(void **state)
{
    (void)state;
    struct key k = {.name = (char[]){"a \"q\" \\ é \xe2\x80\xa8 #"},
                    .project = (char[]){"shop-1"},
                    .type = KEY_BROWSER,
                    .enabled = true,
                    .expires_s = 1801353600};
    struct buf b = {0};
    struct fault f = {0};

    memset(k.hash, 0xa5, sizeof k.hash);
    key_line(&k, &b);
    struct keyring *r = keyring_parse(buf_view(&b), "line", &f);
    assert_non_null(r);
    const struct key *back = keyring_at(r, 0);
    assert_string_equal(back->name, k.name);
    assert_string_equal(back->project, k.project);
    assert_int_equal(back->type, k.type);
    assert_true(back->enabled);
    assert_int_equal(back->expires_s, k.expires_s);
    assert_memory_equal(back->hash, k.hash, 32);
    keyring_free(r);
    buf_free(&b);
}

static void test_times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t s;
    } t[] = {
        {"1970-01-01T00:00:01Z", 1},
        {"2000-02-29T12:34:56Z", 951827696},
        {"2026-11-30T23:59:59Z", 1796083199},
        {"2100-03-01T00:00:00Z", 4107542400},
        {"9999-12-31T23:59:59Z", 253402300799},
    };
    static const char *const bad[] = {
        "",
        "2027-01-31",
        "2027-01-31 00:00:00Z",
        "2027-01-31T00:00:00",
        "2027-01-31T00:00:00+00:00",
        "2027-13-01T00:00:00Z",
        "2027-00-01T00:00:00Z",
        "2027-01-00T00:00:00Z",
        "2027-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "2027-04-31T00:00:00Z",
        "2027-01-01T24:00:00Z",
        "2027-01-01T00:60:00Z",
        "1969-12-31T00:00:00Z",
        "2027-0a-01T00:00:00Z",
    };
    for (size_t i = 0; i < COUNTOF(t); i++) {
        int64_t s;
        char text[TIME_TEXT];
        assert_true(key_time_parse(str_of(t[i].text), &s));
        assert_int_equal(s, t[i].s);
        key_time_format(s, text);
        assert_string_equal(text, t[i].text);
    }
    for (size_t i = 0; i < COUNTOF(bad); i++) {
        int64_t s;
        assert_false(key_time_parse(str_of(bad[i]), &s));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads), cmocka_unit_test(test_refusals), cmocka_unit_test(test_missing),
        cmocka_unit_test(test_find),  cmocka_unit_test(test_hash),     cmocka_unit_test(test_lines_come_back),
        cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
