/* The HTTP parser: every case whole, byte by byte, and cut at every position, must say the same. */
#include "gateway/http.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define H "Host: a\r\n"
#define CHUNKED "POST /x HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"

/* What a stream was taken for: "METHOD target n-headers[body]." per message, then "!status" if it was refused. */
static const struct {
    const char *stream, *said;
} cases[] = {
    {"GET /x HTTP/1.1\r\n" H "\r\n", "GET /x 1+[]."},
    {"POST /x HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\nGET /y HTTP/1.1\r\n" H "Connection: close\r\n\r\n",
     "POST /x 2+[].GET /y 2-[]."},
    {"POST /x?a={b} HTTP/1.1\r\n" H "X:\r\nContent-Length: 5\r\n\r\nhelloGET /y HTTP/1.0\r\n\r\n",
     "POST /x?a={b} 3+[hello].GET /y 0-[]."},
    {"GET /y HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET /y 1+[]."},
    {CHUNKED "5;a=b\r\nhello\r\n3\r\nabc\r\n0\r\nT: x\r\n\r\nGET /y HTTP/1.1\r\n" H "\r\n",
     "POST /x 2+[helloabc].GET /y 1+[]."},
    {"CONNECT a:80 HTTP/1.1\r\n" H "\r\n", "CONNECT a:80 1+[]."},
    {"POST /x HTTP/1.1\r\n" H "Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 5\r\n\r\nhello",
     "POST /x 4+[hello]."},
    {"GET http://h:1/a?b HTTP/1.1\r\n" H "\r\n", "GET http://h:1/a?b 1+[]."},
    /* two framings, the wrong ones, and lengths that are none */
    {"POST /i HTTP/1.1\r\n" H "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG", "!400"},
    {"POST /i HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nG", "!400"},
    {"POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n", "!400"},
    {"POST /x HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\n\r\nxx", "!501"},
    {"POST /x HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "!501"},
    {"POST /x HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "!400"},
    {"POST /x HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\nhello", "!400"},
    {"POST /x HTTP/1.1\r\n" H "Content-Length: 99999999999999999999999\r\n\r\n", "!400"},
    /* line ends */
    {CHUNKED "5\nhello\n0\n\n", "POST /x 2+[!400"},
    {CHUNKED "5;a\nb\r\nhello\r\n0\r\n\r\n", "POST /x 2+[!400"},
    {CHUNKED "5;a=\"x\rb\"\r\nhello\r\n0\r\n\r\n", "POST /x 2+[!400"},
    {CHUNKED "5\r\nhello\r\n0\r\n\n", "POST /x 2+[hello!400"},
    {CHUNKED "5\r\nhello\r\n0\r\nT: a\n\r\n", "POST /x 2+[hello!400"},
    {"GET /x HTTP/1.1\nHost: a\r\n\r\n", "!400"},
    {"GET /x HTTP/1.1\r\nHost: a\n\r\n", "!400"},
    {"GET /x HTTP/1.1\r\n" H "\n", "!400"},
    {"GET /x HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n", "!400"},
    {"GET /x HTTP/1.1\r\nHost : a\r\n\r\n", "!400"},
    {"GET /x HTTP/1.1\r\n" H "X: a\x01\r\n\r\n", "!400"},
    {"GET /x HTTP/1.1\r\n" H "\r\nGET /y HTTP/1.1\r\n" H "\n", "GET /x 1+[].!400"}, /* and in the second of two */
    {CHUNKED "5\r\nhello\r\n0\r\nT: a\r\n b\r\n\r\n", "POST /x 2+[hello!400"},
    {CHUNKED "0\r\n T: a\r\n\r\n", "POST /x 2+[!400"},
    {CHUNKED "0\r\n: a\r\n\r\n", "POST /x 2+[!400"},
    {"GET /x HTTP/1.1\r\n" H ": a\r\n\r\n", "!400"},
    /* request lines */
    {"\r\n\r\nGET /x HTTP/1.1\r\n" H "\r\n", "GET /x 1+[]."},
    {"\nGET /x HTTP/1.1\r\n" H "\r\n", "!400"},
    {"GET  /x HTTP/1.1\r\n" H "\r\n", "!400"},
    {"GET /x  HTTP/1.1\r\n" H "\r\n", "!400"},
    {"GET /x RTSP/1.0\r\n" H "\r\n", "!400"},
    {"SOURCE /x ICE/1.0\r\n" H "\r\n", "!400"},
    /* hosts and versions */
    {"GET /x HTTP/1.1\r\n\r\n", "!400"},
    {"GET /x HTTP/1.1\r\n" H H "\r\n", "!400"},
    {"GET /x HTTP/1.1\r\nHost:\r\n\r\n", "GET /x 1+[]."},
    {"GET /x HTTP/1.1\r\nHost: a b\r\n\r\n", "!400"},
    {"GET /x HTTP/1.1\r\nHost: a/b\r\n\r\n", "!400"},
    {"GET /x HTTP/1.1\r\nHost: a,b\r\n\r\n", "!400"},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "!505"},
    {"GET / HTTP/2.0\r\n" H "\r\n", "!505"},
    {"GET / HTTP/1.2\r\n" H "\r\n", "!505"},
    {"\x16\x03\x01 aaaa\r\n", "!400"},
};

/* The first cut bytes in one slice, then slices of `chunk`. */
static void run(const char *stream, size_t cut, size_t chunk, struct buf *said)
{
    struct http_limits limits = {1024, 256, 8};
    struct http *h = http_new(&limits);
    size_t n = strlen(stream), at = 0;
    char slice[4096];
    enum http_step step = HTTP_NEED_MORE;

    assert_non_null(h);
    while (at < n || step == HTTP_HEAD_DONE) {
        size_t want = at < cut ? cut - at : chunk, used, body;
        size_t m = want < n - at ? want : n - at;
        memcpy(slice, stream + at, m);
        step = http_feed(h, slice, m, &used, &body);
        assert_true(used <= m && body <= m);
        buf_add(said, slice, body);
        at += used;
        if (step == HTTP_HEAD_DONE) {
            struct head *head = http_take_head(h);
            assert_non_null(head);
            buf_printf(said, "%.*s %.*s %u%c[", STR_ARG(head->method), STR_ARG(head->target), head->n_headers,
                       head->keep_alive ? '+' : '-');
            head_free(head);
        } else if (step == HTTP_ALL_DONE) {
            buf_str(said, STR("]."));
        } else if (step == HTTP_REFUSED) {
            buf_printf(said, "!%d", err_status(http_fault(h)->err));
            break;
        }
    }
    http_free(h);
}

/* Body bytes in front of a refusal depend on the slices; nothing else does. */
static void same(const char *stream, const char *want, size_t cut, size_t chunk)
{
    struct buf said = {0};

    run(stream, cut, chunk, &said);
    buf_char(&said, 0);
    const char *bang = strrchr(want, '!'), *brackets = bang ? strchr(want, '[') : NULL;
    if (!brackets) {
        assert_string_equal(said.p, want);
    } else {
        assert_memory_equal(said.p, want, (size_t)(brackets - want));
        assert_string_equal(strrchr(said.p, '!'), bang);
    }
    buf_free(&said);
}

static void test_every_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNTOF(cases); i++) {
        size_t n = strlen(cases[i].stream);
        same(cases[i].stream, cases[i].said, n, n);
        same(cases[i].stream, cases[i].said, 0, 1);
        for (size_t cut = 1; cut < n; cut++)
            same(cases[i].stream, cases[i].said, cut, n);
    }
}

static void refused(const char *stream, int status)
{
    struct buf said = {0};
    char want[8];

    run(stream, 0, 100, &said);
    buf_char(&said, 0);
    snprintf(want, sizeof want, "!%d", status);
    assert_string_equal(said.p, want);
    buf_free(&said);
}

static void test_limits(void **state)
{
    char text[4000];

    (void)state;
    snprintf(text, sizeof text, "GET /%0256d HTTP/1.1\r\n" H "\r\n", 1);
    refused(text, 414);
    snprintf(text, sizeof text, "GET / HTTP/1.1\r\n" H "X: %01024d\r\n\r\n", 1);
    refused(text, 431);
    refused("GET / HTTP/1.1\r\n" H "1: 1\r\n2: 2\r\n3: 3\r\n4: 4\r\n5: 5\r\n6: 6\r\n7: 7\r\n8: 8\r\n\r\n", 431);
    snprintf(text, sizeof text, "X%02000d", 1); /* never a line end */
    refused(text, 400);
}

static void test_begun(void **state)
{
    struct http_limits limits = {1024, 256, 8};
    struct http *h = http_new(&limits);
    char one[] = "GET / HTTP/1.1\r\n" H "\r\n";
    size_t used, body;

    (void)state;
    assert_false(http_begun(h));
    assert_int_equal(http_feed(h, one, 3, &used, &body), HTTP_NEED_MORE);
    assert_true(http_begun(h));
    assert_int_equal(http_feed(h, one + 3, sizeof one - 4, &used, &body), HTTP_HEAD_DONE);
    head_free(http_take_head(h));
    assert_int_equal(http_feed(h, one, 0, &used, &body), HTTP_ALL_DONE);
    assert_false(http_begun(h));
    http_free(h);
}

static void test_head(void **state)
{
    struct http_limits limits = {1024, 256, 20};
    struct http *h = http_new(&limits);
    char text[] = "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: br, GZIP;q=0.5\r\nAccept-Encoding: zstd;q=0.0\r\nX:  "
                  "padded \r\n\r\n";
    size_t used, body;
    uint32_t from = 0;

    (void)state;
    assert_int_equal(http_feed(h, text, sizeof text - 1, &used, &body), HTTP_HEAD_DONE);
    struct head *head = http_take_head(h);
    assert_true(head_lists(head, STR("accept-encoding"), STR("gzip")));
    assert_false(head_lists(head, STR("accept-encoding"), STR("zstd")));
    assert_false(head_lists(head, STR("accept-encoding"), STR("deflate")));
    assert_true(str_eq(head_get(head, STR("x")), STR("padded")));
    assert_non_null(head_next(head, STR("ACCEPT-ENCODING"), &from));
    assert_non_null(head_next(head, STR("ACCEPT-ENCODING"), &from));
    assert_null(head_next(head, STR("ACCEPT-ENCODING"), &from));
    head_free(head);
    http_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_cut), cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_begun), cmocka_unit_test(test_head)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
