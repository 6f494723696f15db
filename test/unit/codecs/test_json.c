/* The tokenizer: events of good text however it is cut, and refusal of bad text; base64 beside it. */
#include "codecs/base64.h"
#include "codecs/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Events as text: {}[] k(key) "string" #scalar, or "!" for refused. */
static void events(struct str in, size_t piece, struct buf *out)
{
    struct json j = {0};
    bool good = true;

    out->len = 0;
    for (size_t at = 0; at < in.len && good; at += piece) {
        struct str p = {in.p + at, piece < in.len - at ? piece : in.len - at}, text;
        for (;;) {
            enum json_event e = json_next(&j, &p, &text);
            good = e != JSON_BAD;
            if (e == JSON_NEED_MORE || !good)
                break;
            if (e == JSON_PIECE || e == JSON_STRING || e == JSON_STRING_END)
                buf_printf(out, "%.*s%s", STR_ARG(text), e == JSON_PIECE ? "" : "\"");
            else if (e == JSON_KEY)
                buf_printf(out, "k(%.*s)", STR_ARG(text));
            else if (e == JSON_SCALAR)
                buf_printf(out, "#%.*s", STR_ARG(text));
            else
                buf_char(out, "{}[]"[e - JSON_OBJECT]);
        }
    }
    if (!good || !json_done(&j)) {
        out->len = 0;
        buf_char(out, '!');
    }
}

static const struct {
    const char *text, *events;
} rows[] = {
    {"{}", "{}"},
    {" [ ] ", "[]"},
    {"{\"a\":1,\"b\":[true,null,-1.5e+3]}", "{k(a)#1k(b)[#true#null#-1.5e+3]}"},
    {"{\"a\\u00e9\\n\":\"x\\ud83d\\ude00\\\"/\\/\"}", "{k(a\xc3\xa9\n)\"x\xf0\x9f\x98\x80\"//\"}"},
    {"\"\"", "\"\""},
    {"12", NULL}, /* a top scalar ends with the text */
    {"{\"a\":}", "!"},
    {"{\"a\" 1}", "!"},
    {"{a:1}", "!"},
    {"[1,]", "!"},
    {"[1 2]", "!"},
    {"{\"a\":1,}", "!"},
    {"[", "!"},
    {"{}}", "!"},
    {"{}x", "!"},
    {"[01]", "!"},
    {"[1.]", "!"},
    {"[tru]", "!"},
    {"[-]", "!"},
    {"[\"\\x\"]", "!"},
    {"[\"\\ud800\"]", "!"},
    {"[\"\\ud800\\n\"]", "!"},
    {"[\"\\udc00\"]", "!"},
    {"[\"\n\"]", "!"},
    {"]", "!"},
    {"", "!"},
};

static void test_events(void **state)
{
    struct buf got = {0}, first = {0};

    (void)state;
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        for (size_t piece = 1; piece < 9; piece++) {
            events(str_of(rows[i].text), piece, &got);
            if (rows[i].events && !str_eq(buf_view(&got), str_of(rows[i].events)))
                fail_msg("%s in pieces of %zu: %.*s", rows[i].text, piece, STR_ARG(buf_view(&got)));
        }
    }
    for (int depth = 60; depth < 70; depth++) {
        first.len = 0;
        for (int k = 0; k < depth; k++)
            buf_char(&first, '[');
        for (int k = 0; k < depth; k++)
            buf_char(&first, ']');
        events(buf_view(&first), 7, &got);
        assert_int_equal(got.p[0] == '!', depth > JSON_DEPTH_MAX);
    }
    buf_free(&got);
    buf_free(&first);
}

static void test_base64(void **state)
{
    static const struct {
        const char *text, *bytes;
    } good[] = {{"", ""},
                {"Zg==", "f"},
                {"Zg", "f"},
                {"Zm8=", "fo"},
                {"Zm8", "fo"},
                {"Zm9v", "foo"},
                {"Zm9vYg==", "foob"},
                {"-_-_", "\xfb\xff\xbf"},
                {"+/+/", "\xfb\xff\xbf"}};
    static const char *const refused[] = {"Z", "Zg=", "Zg===", "=", "Zm9v=", "Zm9vY", "Z!==", "Zg==Zg==", "Zm 9"};
    char out[64];

    (void)state;
    for (size_t i = 0; i < COUNTOF(good); i++) {
        for (size_t cut = 0; cut <= strlen(good[i].text); cut++) {
            struct base64 b = {0};
            size_t n, m;
            assert_true(base64_feed(&b, (struct str){good[i].text, cut}, out, &n));
            assert_true(base64_feed(&b, str_of(good[i].text + cut), out + n, &m));
            assert_true(base64_end(&b));
            assert_true(str_eq((struct str){out, n + m}, str_of(good[i].bytes)));
        }
    }
    for (size_t i = 0; i < COUNTOF(refused); i++) {
        struct base64 b = {0};
        size_t n;
        if (base64_feed(&b, str_of(refused[i]), out, &n) && base64_end(&b))
            fail_msg("%s was taken", refused[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_events), cmocka_unit_test(test_base64)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
