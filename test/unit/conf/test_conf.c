/* The loader: defaults, every kind of value, every refusal with its place, twins, retention, what needs a restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conf/option.h"

static struct conf *parse(const char *yaml, struct buf *errors)
{
    struct conf_errors e = {0};
    struct conf *c = conf_parse(str_of(yaml), "f.yaml", &e);

    assert_true((c == NULL) == (e.count > 0));
    buf_char(&e.text, '\0');
    if (errors)
        *errors = e.text;
    else
        buf_free(&e.text);
    return c;
}

static struct conf *good(const char *yaml)
{
    struct buf e;
    struct conf *c = parse(yaml, &e);

    if (!c)
        fail_msg("refused:\n%s\n%s", yaml, e.p);
    buf_free(&e);
    return c;
}

static char *text_of(const struct conf *c, const char *name)
{
    struct buf b = {0};
    const struct option *o = option_find(str_of(name));

    assert_non_null(o);
    option_text(c, o, &b);
    buf_char(&b, '\0');
    return b.p;
}

static void test_defaults(void **state)
{
    (void)state;
    struct conf *c = good("");

    assert_int_equal(c->n_listen, 1);
    assert_string_equal(c->listen[0].host, "127.0.0.1");
    assert_int_equal(c->listen[0].port, 4040);
    assert_true(c->admin_on);
    assert_int_equal(c->admin.port, 4041);
    assert_string_equal(c->data_dir, "./data");
    assert_string_equal(c->samples, "sqlite:");
    assert_string_equal(c->prefixes[0], "/pyroscope");
    assert_int_equal(c->n_token_headers, 3);
    assert_int_equal(c->window_past_ns, 24 * 3600 * 1000000000ll);
    assert_int_equal(c->window_future_ns, 600 * 1000000000ll);
    assert_int_equal(c->retention_days, 15);
    assert_int_equal(c->retention_raw_days, 0);
    assert_int_equal(c->memory, 256 << 20);
    assert_int_equal(c->limits.body, 16 << 20);
    assert_int_equal(c->limits.inflated, 128 << 20);
    assert_int_equal(c->limits.decoded, 128 << 20);
    assert_int_equal(c->limits.field, 4 << 20);
    assert_int_equal(c->limits.profiles, 1000);
    assert_int_equal(c->limits.samples, 200000);
    assert_int_equal(c->limits.depth, 1024);
    assert_int_equal(c->limits.labels, 30);
    assert_int_equal(c->limits.sample_labels, 100);
    assert_int_equal(c->limits.label_name, 1024);
    assert_int_equal(c->limits.label_value, 2048);
    assert_int_equal(c->limits.parts, 1000);
    assert_int_equal(c->max_head_bytes, 32768);
    assert_int_equal(c->max_headers, 100);
    assert_int_equal(c->max_connections, 10000);
    assert_int_equal(c->head_ms, 10000);
    assert_int_equal(c->query_ms, 30000);
    assert_int_equal(c->drain_ms, 10000);
    assert_int_equal(c->roles, ROLE_INGEST | ROLE_QUERY);
    assert_true(c->migrate_auto);
    assert_int_equal(c->log_format, LOG_LOGFMT);
    assert_int_equal(c->log_level, 2);
    assert_null(c->anonymous_project);
    assert_int_equal(c->anonymous_may, MAY_SEND | MAY_READ);
    conf_free(c);
}

static void test_values(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *option, *text;
    } t[] = {
        {"listen: 0.0.0.0:0", "listen", "[\"0.0.0.0:0\"]"},
        {"listen: [a.example:1, \"[::1]:2\"]", "listen", "[\"a.example:1\", \"[::1]:2\"]"},
        {"listen:\n- address: b:3\n- c:4", "listen", "[\"b:3\", \"c:4\"]"},
        {"listen: {address: b:3}", "listen", "[\"b:3\"]"},
        {"listen: {address: b:3, tls: {cert_file: c, key_file: /k}}", "listen",
         "[{address: \"b:3\", tls: {cert_file: \"c\", key_file: \"/k\"}}]"},
        {"listen: {address: b:3, tls: {cert_file: c, key_file: k, client_ca_file: a, client_certificate: optional}}",
         "listen",
         "[{address: \"b:3\", tls: {cert_file: \"c\", key_file: \"k\", client_ca_file: \"a\", client_certificate: "
         "optional}}]"},
        {"listen: [{address: b:3, proxy_protocol: true}, c:4]", "listen",
         "[{address: \"b:3\", proxy_protocol: true}, \"c:4\"]"},
        {"listen: {proxy_protocol: false, address: b:3}", "listen", "[\"b:3\"]"},
        {"trusted_proxies: [10.0.0.0/8, 192.0.2.1, 0.0.0.0/0, fc00::/7, \"::1\", \"::/0\"]", "trusted_proxies",
         "[\"10.0.0.0/8\", \"192.0.2.1/32\", \"0.0.0.0/0\", \"fc00::/7\", \"::1/128\", \"::/0\"]"},
        {"admin: off", "admin", "off"},
        {"admin: \"127.0.0.1:0\"", "admin", "\"127.0.0.1:0\""},
        {"data_dir: /var/lib/flamegate", "data_dir", "\"/var/lib/flamegate\""},
        {"samples: 'null:'", "samples", "\"null:\""},
        {"prefixes: []", "prefixes", "[]"},
        {"prefixes: [/a/b, /c]", "prefixes", "[\"/a/b\", \"/c\"]"},
        {"token_headers: [X-Token]", "token_headers", "[\"x-token\"]"},
        {"accept_window: off", "accept_window.past", "off"},
        {"accept_window: off", "accept_window.future", "off"},
        {"accept_window: {past: off}", "accept_window.past", "off"},
        {"accept_window: {past: off}", "accept_window.future", "10m"},
        {"accept_window: {past: 90m}", "accept_window.past", "90m"},
        {"retention: {default: 90d}", "retention.default", "90d"},
        {"retention: {default: 48h}", "retention.default", "2d"},
        {"retention: {raw: off}", "retention.raw", "off"},
        {"retention: {projects: {shop: 30d}}", "retention.projects", "{\"shop\": 30d}"},
        {"retention: {services: {a/b: 7d, \"c d\": 1d}}", "retention.services", "{\"a/b\": 7d, \"c d\": 1d}"},
        {"originals: {max_bytes: 0B}", "originals.max_bytes", "0B"},
        {"memory: 1GiB", "memory", "1GiB"},
        {"memory: 1GiB", "limits.decoded", "128MiB"},
        {"memory: 64MiB", "limits.decoded", "32MiB"},
        {"limits:\n  body: 1536KiB", "limits.body", "1536KiB"},
        {"limits: {samples: 10}", "limits.samples", "10"},
        {"timeouts: {head: 250ms}", "timeouts.head", "250ms"},
        {"drain_delay: 0s", "drain_delay", "0ms"},
        {"roles: [query]", "roles", "[query]"},
        {"migrate: auto", "migrate", "auto"},
        {"migrate: manual", "migrate", "manual"},
        {"log: {format: json, level: debug}", "log.format", "json"},
        {"log: {format: json, level: debug}", "log.level", "debug"},
        {"anonymous: {project: lab, may: [read]}", "anonymous.project", "\"lab\""},
        {"anonymous: {project: lab, may: [read]}", "anonymous.may", "[read]"},
        {"anonymous: off", "anonymous.project", "\"\""},
        {"{\"memory\": \"512MiB\", \"roles\": [\"ingest\"]}", "memory", "512MiB"},
        {"# only a comment\n", "memory", "256MiB"},
        {"---\nmemory: 512MiB\n...\n", "memory", "512MiB"},
    };
    for (size_t i = 0; i < COUNTOF(t); i++) {
        struct conf *c = good(t[i].yaml);
        char *text = text_of(c, t[i].option);
        assert_string_equal(text, t[i].text);
        free(text);
        conf_free(c);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *error; /* the error is part of what is listed */
    } t[] = {
        {"memroy: 1GiB", "f.yaml:1:1: unknown option \"memroy\"\n"},
        {"limits:\n  bdoy: 1MiB", "f.yaml:2:3: unknown option \"limits.bdoy\"\n"},
        {"memory: 1GiB\nmemory: 1GiB", "f.yaml:2:1: \"memory\" is given twice\n"},
        {"limits: {body: 1MiB, body: 1MiB}", "f.yaml:1:22: \"body\" is given twice\n"},
        {"memory: 268435456", "f.yaml:1:9: memory: \"268435456\" is not a size with one of the units"},
        {"memory: 256MB", "f.yaml:1:9: memory: \"256MB\" is not a size with one of the units B, KiB, MiB, GiB, TiB\n"},
        {"memory: -1MiB", "memory: \"-1MiB\" is not a size such as 16MiB"},
        {"memory: 1KiB", "memory: \"1KiB\" is out of bounds, 16MiB to 4TiB"},
        {"memory: 99999999999999999999999MiB", "is out of bounds, 16MiB to 4TiB"},
        {"memory: 18014398509481985KiB", "is out of bounds"},
        {"memory: [1]", "f.yaml:1:9: memory: needs a size"},
        {"memory:", "memory: needs a size"},
        {"memory: ~", "memory: needs a size"},
        {"limits: {samples: 10s}", "limits.samples: \"10s\" is not a number without a unit"},
        {"limits: {samples: 0}", "limits.samples: \"0\" is out of bounds, 1 to 10000000"},
        {"limits: 3", "f.yaml:1:9: limits: needs its options below it"},
        {"limits: off", "f.yaml:1:9: limits: needs its options below it"},
        {"timeouts: {head: 10}", "timeouts.head: \"10\" is not a duration with one of the units ms, s, m, h, d"},
        {"timeouts: {head: 10sec}", "timeouts.head: \"10sec\" is not a duration"},
        {"timeouts: {head: 0s}", "out of bounds, 1ms to 1h"},
        {"retention: {default: 36h}", "retention.default: \"36h\" is not a whole number of days"},
        {"retention: {default: 91d}", "out of bounds, 1d to 90d"},
        {"retention: {default: off}", "retention.default: \"off\" is not a duration"},
        {"retention: {projects: {\"a/b\": 1d}}", "retention.projects: \"a/b\" is not a name for this"},
        {"retention: {projects: [a]}", "retention.projects: needs a map"},
        {"listen: 4040", "listen: \"4040\" is not an address"},
        {"listen: \":4040\"", "listen: \":4040\" is not an address"},
        {"listen: a:65536", "is not an address"},
        {"listen: []", "listen: needs 1 to 64 addresses"},
        {"listen: {port: 1}", "listen: unknown key \"port\""},
        {"listen: [{address: a:1, tls: {}}]", "f.yaml:1:30: listen: tls needs both cert_file and key_file"},
        {"listen: [{address: a:1, tls: on}]", "listen: tls needs a map"},
        {"listen: [{address: a:1, tls: {cert_file: c}}]", "listen: tls needs both cert_file and key_file"},
        {"listen: [{address: a:1, tls: {cert_file: c, key_file: ~}}]", "listen: tls.key_file needs the path of a file"},
        {"listen: [{address: a:1, tls: {cert_file: c, key_file: k, client_certificate: optional}}]",
         "listen: tls.client_certificate needs client_ca_file"},
        {"listen: [{address: a:1, tls: {cert_file: c, key_file: k, client_ca_file: a, client_certificate: maybe}}]",
         "tls.client_certificate needs required or optional"},
        {"listen: [{address: a:1, tls: {cert: c}}]", "listen: unknown key \"tls.cert\""},
        {"listen: [{address: a:1, proxy_protocol: yes}]", "f.yaml:1:41: listen: proxy_protocol needs true or false"},
        {"trusted_proxies: 10.0.0.0/8", "trusted_proxies: needs a list"},
        {"trusted_proxies: [10.0.0.1/8]", "f.yaml:1:19: trusted_proxies: \"10.0.0.1/8\" is not a network"},
        {"trusted_proxies: [10.0.0.0/33]", "is not a network"},
        {"trusted_proxies: [10.0.0.0/]", "is not a network"},
        {"trusted_proxies: [10.0.0/8]", "is not a network"},
        {"trusted_proxies: [\"::1/129\"]", "is not a network"},
        {"trusted_proxies: [localhost]", "is not a network"},
        {"trusted_proxies: [\"\"]", "is not a network"},
        {"listen: [a:1, a:1]", "f.yaml:1:9: listen: the same address twice"},
        {"listen: a:1\nadmin: a:1", "f.yaml:2:8: admin: the address is also in listen"},
        {"admin: no", "admin: \"no\" is not an address"},
        {"samples: mysql://x:secret@y", "samples: is not the address of a store"},
        {"prefixes: /a", "prefixes: needs a list"},
        {"prefixes: [a]", "prefixes: \"a\" is not a path"},
        {"prefixes: [/a/]", "prefixes: \"/a/\" is not a path"},
        {"prefixes: [/a//b]", "is not a path"},
        {"token_headers: [\"a b\"]", "token_headers: \"a b\" is not a header's name"},
        {"roles: []", "roles: needs a list"},
        {"roles: [ingest, cook]", "f.yaml:1:17: roles: needs ingest or query"},
        {"migrate: yes", "migrate: needs auto or manual"},
        {"log: {level: loud}", "log.level: needs error, warn, info or debug"},
        {"anonymous: {project: a/b}", "anonymous.project: \"a/b\" is not a project's name"},
        {"anonymous: {may: [delete]}", "anonymous.may: needs send or read"},
        {"limits: {body: 256MiB}", "f.yaml:1:16: limits.body is over limits.inflated: a body that is not compressed "
                                   "must fit as well (256MiB and 128MiB)"},
        {"limits: {inflated: 1MiB}", "f.yaml:1:20: limits.body is over limits.inflated"},
        {"limits: {label_value: 2000, field: 1KiB}", "f.yaml:1:23: limits.label_value is over limits.field"},
        {"retention: {raw: 1d}\naccept_window: {past: 2d}",
         "f.yaml:1:18: retention.raw: must not be shorter than accept_window.past"},
        {"memory: 64MiB\nlimits: {decoded: 128MiB}",
         "memory is under twice limits.decoded: one largest request is set aside, the others need as "
         "much (64MiB and 128MiB)"},
        {"data_dir: \"\"", "data_dir: needs 1 to 4096"},
        {"a: &x 1\nb: *x", "f.yaml:1:4: anchors are not allowed\n"},
        {"data_dir: *x", "f.yaml:1:11: aliases are not allowed\n"},
        {"limits: &x {body: 1MiB}", "anchors are not allowed"},
        {"prefixes: &x [/a]", "anchors are not allowed"},
        {"data_dir: !!str x", "f.yaml:1:11: tags are not allowed\n"},
        {"data_dir: ! x", "tags are not allowed"},
        {"limits: !!map {}", "tags are not allowed"},
        {"*x : 1", "aliases are not allowed"},
        {"? [a, b]\n: 1", "a key must be plain text"},
        {"memory: 1GiB\n---\nmemory: 1GiB", "f.yaml:2:1: only one document is allowed"},
        {"%YAML 1.1\n---\nmemory: 1GiB", "directives are not allowed"},
        {"[1, 2]", "f.yaml:1:1: needs options"},
        {"text", "f.yaml:1:1: needs options"},
        {"a: [", "f.yaml:"},
        {"a: \"\\0b\"", "a NUL character is not allowed"},
        {"\xff: 1", "f.yaml: "},
        {"a: {a: {a: {a: {a: {a: {a: {a: {a: 1}}}}}}}}", "nested too deeply"},
        {"data_dir: a$b", "f.yaml:1:11: a single '$': write $$ for a dollar sign"},
        {"data_dir: ${FLAMEGATE_TEST_UNSET}", "f.yaml:1:11: the variable FLAMEGATE_TEST_UNSET is not set"},
        {"data_dir: \"${FLAMEGATE\"", "\"${\" without its \"}\""},
        {"data_dir: ${1A}", "\"${1A}\" is not the name of a variable"},
        {"data_dir: \"${A:-${B}}\"", "a variable inside of a variable's default"},
        {"data_dir: ${FLAMEGATE_TEST_LINES}", "is not one line of UTF-8"},
        {"samples: 'null:'\nsamples_file: /dev/null", "f.yaml:2:1: samples_file and samples are both given"},
        {"samples_file: /nonexistent", "samples_file: /nonexistent: No such file"},
        {"samples_file: /dev/null", "samples: is not the address of a store"},
        {"samples_file: /dev/zero", "samples_file: /dev/zero: too large"},
        {"samples_file: /tmp", "samples_file: /tmp: Is a directory"},
        {"memory: 64MiB\nsamples: postgres://h/d", "f.yaml:2:10: samples: PostgreSQL needs hash_key_file"},
        {"samples: postgresql://h/d", "f.yaml:1:10: samples: PostgreSQL needs hash_key_file"},
        {"memory_file: /dev/null", "unknown option \"memory_file\""},
    };
    setenv("FLAMEGATE_TEST_LINES", "a\nb", 1);
    unsetenv("FLAMEGATE_TEST_UNSET");
    for (size_t i = 0; i < COUNTOF(t); i++) {
        struct buf e;
        struct conf *c = parse(t[i].yaml, &e);
        if (c || !strstr(e.p, t[i].error))
            fail_msg("%s\nwanted: %s\ngot: %s", t[i].yaml, t[i].error, c ? "a configuration" : e.p);
        buf_free(&e);
    }
}

static void test_every_error_is_listed(void **state)
{
    (void)state;
    struct buf e;
    struct conf *c = parse("memory: 1\nlimits:\n  body: 2\n  x: 3\nroles: 4\nlog: {level: a, format: b}\n", &e);
    const char *const all[] = {
        "f.yaml:1:9: memory", "f.yaml:3:9: limits.body", "f.yaml:4:3: unknown option \"limits.x\"",
        "f.yaml:5:8: roles",  "f.yaml:6:14: log.level",  "f.yaml:6:25: log.format"};

    assert_null(c);
    for (size_t i = 0; i < COUNTOF(all); i++)
        assert_non_null(strstr(e.p, all[i]));
    buf_free(&e);
}

static void test_variables(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *text;
    } t[] = {
        {"data_dir: ${FG_A}", "\"/x: [y\""},      {"data_dir: /a/${FG_A}/b", "\"/a//x: [y/b\""},
        {"data_dir: ${FG_UNSET:-/d}", "\"/d\""},  {"data_dir: ${FG_EMPTY:-/d}", "\"/d\""},
        {"data_dir: ${FG_A:-/d}", "\"/x: [y\""},  {"data_dir: 'a$$b'", "\"a$$b\""},
        {"data_dir: a$${FG_A}", "\"a$${FG_A}\""},
    };
    setenv("FG_A", "/x: [y", 1);
    setenv("FG_EMPTY", "", 1);
    unsetenv("FG_UNSET");
    for (size_t i = 0; i < COUNTOF(t); i++) {
        struct conf *c = good(t[i].yaml);
        char *text = text_of(c, "data_dir");
        assert_string_equal(text, t[i].text);
        free(text);
        conf_free(c);
    }
    struct conf *c = good("prefixes: [\"${FG_UNSET:-/p}\"]\n");
    assert_string_equal(c->prefixes[0], "/p");
    conf_free(c);
    assert_null(parse("${FG_A}: 1", NULL)); /* keys are never expanded */
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void test_file_twin(void **state)
{
    (void)state;
    char path[] = "/tmp/flamegate-conf-XXXXXX", yaml[200];
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    write_file(path, "null:${not a variable}\r\n\n");
    snprintf(yaml, sizeof yaml, "samples_file: %s\n", path);
    struct conf *c = good(yaml);
    assert_string_equal(c->samples, "null:${not a variable}");
    conf_free(c);
    write_file(path, "null:\nsecond line\n");
    struct buf e;
    assert_null(parse(yaml, &e));
    assert_non_null(strstr(e.p, "is not one line"));
    buf_free(&e);
    unlink(path);
}

static void test_load(void **state)
{
    (void)state;
    char path[] = "/tmp/flamegate-conf-XXXXXX";
    struct conf_errors e = {0};
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    write_file(path, "memory: 1GiB\n");
    unsetenv("FLAMEGATE_CONFIG");
    struct conf *c = conf_load(NULL, &e);
    assert_int_equal(c->memory, 256 << 20);
    conf_free(c);
    setenv("FLAMEGATE_CONFIG", path, 1);
    c = conf_load(NULL, &e);
    assert_int_equal(c->memory, 1 << 30);
    conf_free(c);
    c = conf_load(path, &e);
    assert_int_equal(c->memory, 1 << 30);
    conf_free(c);
    unsetenv("FLAMEGATE_CONFIG");
    write_file(path, ""); /* an empty file has the defaults */
    c = conf_load(path, &e);
    assert_non_null(c);
    assert_int_equal(c->memory, 256 << 20);
    conf_free(c);
    assert_int_equal(e.count, 0);
    unlink(path);
    assert_null(conf_load(path, &e));
    assert_int_equal(e.count, 1);
    buf_char(&e.text, '\0');
    assert_non_null(strstr(e.text.p, "No such file"));
    buf_free(&e.text);
}

static void test_retention(void **state)
{
    (void)state;
    struct conf *c = good(
        "retention: {default: 15d, projects: {shop: 30d}, services: {checkout: 7d, shop/cart: 3d, shop/checkout: 1d}}");
    static const struct {
        const char *project, *service;
        uint32_t days;
    } t[] = {
        {"default", "web", 15},  {"shop", "web", 30},    {"shop", "cart", 3},         {"default", "cart", 15},
        {"shop", "checkout", 1}, {"lab", "checkout", 7}, {"default", "shop/cart", 3},
    };
    for (size_t i = 0; i < COUNTOF(t); i++)
        assert_int_equal(conf_retention_days(c, str_of(t[i].project), str_of(t[i].service)), t[i].days);
    conf_free(c);
}

static void test_restart_only(void **state)
{
    (void)state;
    struct buf names = {0};
    struct conf *a = good("");
    struct conf *b = good("limits: {body: 1MiB}\nlog: {level: debug}");
    struct conf *c = good("listen: 127.0.0.1:1\nroles: [query]\nlog: {level: debug}");

    conf_restart_only(a, b, &names);
    assert_int_equal(names.len, 0);
    conf_restart_only(a, c, &names);
    buf_char(&names, '\0');
    assert_string_equal(names.p, "listen, roles");
    buf_free(&names);
    conf_free(a);
    conf_free(b);
    conf_free(c);
}

static void test_keep_restart(void **state)
{
    (void)state;
    struct conf *now =
        good("listen: [a:1, b:2]\nmemory: 64MiB\nprefixes: [/x]\ndata_dir: /now\nadmin: off\nroles: [query]");
    struct conf *next = good("listen: c:3\ndata_dir: /next\nlimits: {body: 1MiB}\nretention: {projects: {p: 1d}}");
    struct buf names = {0};

    assert_true(conf_keep_restart(next, now));
    conf_restart_only(now, next, &names);
    assert_int_equal(names.len, 0);
    conf_free(now); /* nothing of it is left in next */
    assert_int_equal(next->n_listen, 2);
    assert_string_equal(next->listen[1].host, "b");
    assert_string_equal(next->prefixes[0], "/x");
    assert_string_equal(next->data_dir, "/now");
    assert_false(next->admin_on);
    assert_int_equal(next->roles, ROLE_QUERY);
    assert_int_equal(next->memory, 64 << 20);
    assert_int_equal(next->limits.decoded, 32 << 20);
    assert_int_equal(next->limits.body, 1 << 20);
    assert_int_equal(next->n_retention_projects, 1);
    conf_free(next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),     cmocka_unit_test(test_values),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_every_error_is_listed),
        cmocka_unit_test(test_variables),    cmocka_unit_test(test_file_twin),
        cmocka_unit_test(test_load),         cmocka_unit_test(test_retention),
        cmocka_unit_test(test_restart_only), cmocka_unit_test(test_keep_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
