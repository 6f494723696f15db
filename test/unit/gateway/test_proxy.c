/* PROXY headers: each whole, byte by byte, and cut at every position, with a request behind it that must be left alone.
 */
#include "gateway/proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SIG "\r\n\r\n\0\r\nQUIT\n"
#define V4 "\xc0\0\2\1\xc0\0\2\2\x1f\x90\0\x50"
#define V6 "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\2\x1f\x90\0\x50"
#define BEHIND "GET / HTTP/1.1\r\n"
#define CASE(bytes, said)                                                                                              \
    {                                                                                                                  \
        bytes, sizeof(bytes) - 1, said                                                                                 \
    }

/* "address port", "-" for none, NULL: refused. */
static const struct {
    const char *header;
    size_t n;
    const char *said;
} cases[] = {
    CASE("PROXY TCP4 192.0.2.1 192.0.2.2 8080 80\r\n", "192.0.2.1 8080"),
    CASE("PROXY TCP6 2001:db8::1 ::1 65535 0\r\n", "2001:db8::1 65535"),
    CASE("PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n", "192.0.2.1 1"),
    CASE("PROXY UNKNOWN\r\n", "-"),
    CASE("PROXY UNKNOWN ffff:f:f:f:f:f:f:f what ever 1 2 3\r\n", "-"),
    CASE("PROXY TCP4 192.0.2.1 192.0.2.2 8080 80\n", NULL),
    CASE("PROXY TCP4 192.0.2.1 192.0.2.2 8080 80\r\r\n", NULL),
    CASE("PROXY TCP4 192.0.2.1 192.0.2.2 8080 80 \r\n", NULL),
    CASE("PROXY TCP4 192.0.2.1 192.0.2.2 8080\r\n", NULL),
    CASE("PROXY TCP4 192.0.2.1  192.0.2.2 8080 80\r\n", NULL),
    CASE("PROXY TCP4 192.0.2.1 192.0.2.2 08080 80\r\n", NULL),
    CASE("PROXY TCP4 192.0.2.1 192.0.2.2 65536 80\r\n", NULL),
    CASE("PROXY TCP4 192.0.2.1 192.0.2.2 +1 80\r\n", NULL),
    CASE("PROXY TCP4 192.0.2.256 192.0.2.2 1 80\r\n", NULL),
    CASE("PROXY TCP4 2001:db8::1 192.0.2.2 1 80\r\n", NULL),
    CASE("PROXY TCP6 192.0.2.1 ::1 1 80\r\n", NULL),
    CASE("PROXY TCP6 [2001:db8::1] ::1 1 80\r\n", NULL),
    CASE("PROXY TCP4 192.0.2.1:5 192.0.2.2 1 80\r\n", NULL),
    CASE("PROXY UDP4 192.0.2.1 192.0.2.2 1 80\r\n", NULL),
    CASE("PROXY UNKNOWNX\r\n", NULL),
    CASE("PROXY  TCP4 192.0.2.1 192.0.2.2 1 80\r\n", NULL),
    CASE("PROXY\r\n", NULL),
    CASE("PROXY TCP4\t192.0.2.1 192.0.2.2 1 80\r\n", NULL),
    CASE("proxy TCP4 192.0.2.1 192.0.2.2 1 80\r\n", NULL),
    CASE("PROXY UNKNOWN aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaaaaaa\r\n",
         NULL),
    CASE("GET / HTTP/1.1\r\n", NULL),
    CASE("POST / HTTP/1.1\r\n", NULL),
    CASE("\r\nGET / HTTP/1.1\r\n", NULL),
    CASE("\x16\x03\x01\x02\0", NULL),
    CASE(SIG "\x21\x11\0\x0c" V4, "192.0.2.1 8080"),
    CASE(SIG "\x21\x21\0\x24" V6, "2001:db8::1 8080"),
    CASE(SIG "\x21\x11\0\x14" V4 "\x04\0\1\0\x03\0\1\0", "192.0.2.1 8080"), /* TLVs */
    CASE(SIG "\x21\x11\0\x0e" V4 "\xff\xff", "192.0.2.1 8080"),             /* are read over whatever they say */
    CASE(SIG "\x20\0\0\0", "-"),                                            /* LOCAL */
    CASE(SIG "\x20\x11\0\x0c" V4, "-"),
    CASE(SIG "\x20\x11\0\4abcd", "-"),
    CASE(SIG "\x21\0\0\0", "-"), /* UNSPEC */
    CASE(SIG "\x21\0\0\5hello", "-"),
    CASE(SIG "\x21\x12\0\x0c" V4, "-"),  /* UDP */
    CASE(SIG "\x21\x11\0\x0b" V4, NULL), /* too short for its family */
    CASE(SIG "\x21\x21\0\x0c" V4, NULL),
    CASE(SIG "\x11\x11\0\x0c" V4, NULL), /* version 1 */
    CASE(SIG "\x31\x11\0\x0c" V4, NULL),
    CASE(SIG "\x22\x11\0\x0c" V4, NULL),   /* unknown command */
    CASE(SIG "\x21\x41\0\x0c" V4, NULL),   /* unknown family */
    CASE(SIG "\x21\x13\0\x0c" V4, NULL),   /* unknown transport */
    CASE(SIG "\x21\x11\xff\xff" V4, NULL), /* longer than anybody needs */
    CASE("\r\n\r\n\0\r\nQUIX\n\x21\x11\0\x0c" V4, NULL),
};

/* What it is taken for, fed in a first piece of `cut` bytes, then pieces of `chunk`. */
static void run(const char *bytes, size_t n, size_t header, size_t cut, size_t chunk, struct buf *said)
{
    struct proxy x = {.n = 0};
    enum proxy_step step = PROXY_NEED_MORE;
    size_t at = 0, used;

    while (step == PROXY_NEED_MORE && at < n) {
        size_t m = at == 0 && cut ? cut : chunk;
        m = m < n - at ? m : n - at;
        char *piece = malloc(m); /* exact, so that an over-read is seen */
        assert_non_null(piece);
        memcpy(piece, bytes + at, m);
        step = proxy_feed(&x, piece, m, &used);
        free(piece);
        assert_true(used <= m && (step != PROXY_NEED_MORE || used == m));
        at += used;
    }
    assert_int_not_equal(step, PROXY_NEED_MORE);
    if (step == PROXY_BAD)
        return;
    assert_int_equal(at, header);
    char text[ADDRESS_TEXT];
    if (x.has_source)
        buf_printf(said, "%s %u", address_text(&x.source, text), x.source.port);
    else
        buf_char(said, '-');
}

static void same(size_t i, size_t cut, size_t chunk)
{
    char bytes[512];
    struct buf said = {0};

    memcpy(bytes, cases[i].header, cases[i].n);
    memcpy(bytes + cases[i].n, BEHIND, sizeof BEHIND);
    run(bytes, cases[i].n + sizeof BEHIND - 1, cases[i].n, cut, chunk, &said);
    if (!str_eq(buf_view(&said), str_of(cases[i].said)))
        fail_msg("case %zu: %.*s", i, STR_ARG(buf_view(&said)));
    buf_free(&said);
}

static void test_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNTOF(cases); i++) {
        same(i, 0, sizeof BEHIND + 300);
        same(i, 0, 1);
        for (size_t cut = 1; cut < cases[i].n + 4; cut++)
            same(i, cut, 512);
    }
}

/* The largest one that is taken, and one byte more. */
static void test_longest(void **state)
{
    static const unsigned char start[] = SIG "\x21\x11";
    char bytes[PROXY_BYTES_MAX + 2] = {0};
    struct buf said = {0};

    (void)state;
    memcpy(bytes, start, sizeof start - 1);
    memcpy(bytes + 16, V4, 12);
    bytes[14] = (PROXY_BYTES_MAX - 16) >> 8;
    bytes[15] = (char)((PROXY_BYTES_MAX - 16) & 255);
    run(bytes, PROXY_BYTES_MAX + 1, PROXY_BYTES_MAX, 0, 700, &said);
    assert_true(str_eq(buf_view(&said), STR("192.0.2.1 8080")));
    buf_free(&said);
    bytes[15]++;
    run(bytes, PROXY_BYTES_MAX + 1, PROXY_BYTES_MAX, 0, 700, &said);
    assert_int_equal(said.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_headers), cmocka_unit_test(test_longest)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
