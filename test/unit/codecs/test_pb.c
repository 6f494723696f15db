/* The cursor and the framer on the same bytes: good ones in every cut, and all that must be refused. */
#include "codecs/pb.h"
#include "test/oracle/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void note(struct buf *out, const struct pb_field *f)
{
    if (f->wire == PB_BYTES)
        buf_printf(out, "%u=%.*s;", f->num, STR_ARG(f->bytes));
    else
        buf_printf(out, "%u:%llu;", f->num, f->wire == PB_VARINT ? (unsigned long long)f->u : 0);
}

/* Fields as text; "!" at the end for refused. */
static void by_cursor(struct str in, struct buf *out)
{
    struct pb c = pb_of(in);
    struct pb_field f;

    out->len = 0;
    while (pb_next(&c, &f))
        note(out, &f);
    if (c.bad)
        buf_char(out, '!');
}

static void by_framer(struct str in, size_t piece, struct buf *out)
{
    struct arena *a = arena_new(1 << 20);
    struct pb_framer fr = {.arena = a, .wanted = UINT32_MAX, .max = 100};
    enum pb_step s = PB_MORE;

    out->len = 0;
    for (size_t at = 0; at < in.len && s != PB_BAD && s != PB_TOO_LONG; at += piece) {
        struct str p = {in.p + at, piece < in.len - at ? piece : in.len - at};
        struct pb_field f;
        while ((s = pb_frame(&fr, &p, &f)) == PB_FIELD)
            note(out, &f);
    }
    if (s == PB_BAD || s == PB_TOO_LONG || !pb_framed(&fr))
        buf_char(out, '!');
    arena_free(a);
}

static const struct {
    struct str in;
    const char *fields;
} rows[] = {
    {{"", 0}, ""},
    {{"\x08\x05", 2}, "1:5;"},
    {{"\x0a\x03"
      "abc"
      "\x12\x00",
      7},
     "1=abc;2=;"},
    {{"\x88\x80\x00\x85\x80\x80\x00", 7}, "1:5;"}, /* padded */
    {{"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, "1:18446744073709551615;"},
    {{"\x09"
      "12345678"
      "\x15"
      "1234"
      "\x08\x01",
      16},
     "1:0;2:0;1:1;"},
    {{"\x0a\x83\x80\x80\x80\x00"
      "abc",
      9},
     "1=abc;"}, /* five-byte length */
    {{"\x08", 1}, "!"},
    {{"\x08\x80", 2}, "!"},
    {{"\x0a\x05"
      "abc",
      5},
     "!"},
    {{"\x00\x05", 2}, "!"}, /* field 0 */
    {{"\x0b", 1}, "!"},     /* a group */
    {{"\x0c", 1}, "!"},
    {{"\x0e\x01", 2}, "!"},
    {{"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11}, "!"},     /* 65 bits */
    {{"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12}, "!"}, /* eleven bytes */
    {{"\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x40", 10}, "!"},
    {{"\x09"
      "1234",
      5},
     "!"},
};

static void test_rows(void **state)
{
    struct buf got = {0};

    (void)state;
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        by_cursor(rows[i].in, &got);
        if (!str_eq(buf_view(&got), str_of(rows[i].fields)))
            fail_msg("row %zu by cursor: %.*s", i, STR_ARG(buf_view(&got)));
        for (size_t piece = 1; piece < 20; piece++) {
            by_framer(rows[i].in, piece, &got);
            if (!str_eq(buf_view(&got), str_of(rows[i].fields)))
                fail_msg("row %zu by framer, %zu: %.*s", i, piece, STR_ARG(buf_view(&got)));
        }
    }
    buf_free(&got);
}

static void test_too_long(void **state)
{
    struct buf b = {0}, got = {0};
    char filling[101];

    (void)state;
    memset(filling, 'z', sizeof filling);
    wire_bytes(&b, 3, (struct str){filling, 100});
    by_framer(buf_view(&b), 7, &got);
    assert_true(got.len > 100 && got.p[got.len - 1] == ';');
    b.len = 0;
    wire_bytes(&b, 3, (struct str){filling, 101});
    for (size_t piece = 1; piece < 200; piece += 30) {
        by_framer(buf_view(&b), piece, &got);
        assert_true(got.len == 1 && got.p[0] == '!');
    }
    b.len = 0;
    wire_bytes(&b, 40, (struct str){filling, 101}); /* skipped, so of any length */
    wire_number(&b, 1, 9);
    by_framer(buf_view(&b), 9, &got);
    assert_true(str_eq(buf_view(&got), STR("1:9;")));
    assert_int_equal(pb_count((struct str){"\x01\x81\x01\xff\xff\x00", 6}), 3);
    buf_free(&b);
    buf_free(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_too_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
