/* Compressed layers: members, padding, truncation, garbage, nesting, bombs, and what zstd declares of itself. Cases C19
 * to C25. */
#include "codecs/zstd.h"
#include "test/oracle/feed.h"
#include "test/oracle/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct hash_key key;
static struct limits limits;
static const char text[] = "main;foo 3\nmain;bar 4\n";

static int set_up(void **state)
{
    (void)state;
    hash_key_derive(&key, STR("layers"));
    limits = feed_limits;
    return 0;
}

/* Fed whole and byte by byte; E_OK only with a record whose total is 7. */
static enum err fed(struct str body, enum coding coding, struct fault *f)
{
    struct upload_spec spec = {.kind = UPLOAD_FOLDED,
                               .coding = coding,
                               .params = {.name = STR("app"), .sample_rate = STR("0")},
                               .window_past_ns = -1,
                               .window_future_ns = -1,
                               .limits = &limits,
                               .key = &key};

    for (size_t piece = 0; piece < 2; piece++) {
        *f = (struct fault){0};
        struct upload *u = feed_upload(&spec, body, &(struct feed_plan){.piece = piece}, f);
        if (u) {
            assert_non_null(upload_outcome(u, 0)->record);
            assert_int_equal(upload_outcome(u, 0)->record->types[0].total, 7);
            assert_true(upload_memory(u) < 1 << 20);
        }
        upload_free(u);
    }
    return f->err;
}

static void good(struct str body, enum coding coding)
{
    struct fault f;
    if (fed(body, coding, &f) != E_OK)
        fail_msg("%s", f.text);
}

static void bad(struct str body, enum coding coding, enum err e, const char *words)
{
    struct fault f;
    assert_int_equal(fed(body, coding, &f), e);
    if (!strstr(f.text, words))
        fail_msg("\"%s\" does not say \"%s\"", f.text, words);
}

static void test_members(void **state)
{
    struct buf b = {0};
    size_t n = sizeof text - 1;

    (void)state;
    for (size_t k = 0; k <= n; k++) {
        b.len = 0;
        wire_gzip(&b, (struct str){text, k});
        wire_gzip(&b, (struct str){text + k, n - k});
        good(buf_view(&b), CODING_GZIP);
        good(buf_view(&b), CODING_IDENTITY);
    }
    for (int i = 0; i < 600; i++)
        buf_char(&b, 0);
    good(buf_view(&b), CODING_GZIP);
    buf_char(&b, 1);
    bad(buf_view(&b), CODING_GZIP, E_BAD_ENCODING, "garbage after the end");
    b.len = 0;
    wire_gzip(&b, STR(text));
    buf_str(&b, STR("x"));
    bad(buf_view(&b), CODING_IDENTITY, E_BAD_ENCODING, "garbage after the end");
    b.p[b.len - 1] = 0x1f;
    bad(buf_view(&b), CODING_IDENTITY, E_BAD_ENCODING, "truncated");
    buf_free(&b);
}

static void test_broken(void **state)
{
    struct buf b = {0};

    (void)state;
    wire_gzip(&b, STR(text));
    for (size_t cut = 3; cut < b.len; cut++)
        bad((struct str){b.p, cut}, CODING_GZIP, E_BAD_ENCODING, "truncated");
    b.p[b.len - 6] ^= 1;
    bad(buf_view(&b), CODING_GZIP, E_BAD_ENCODING, "checksum");
    bad(STR("\x1f\x8b plain text"), CODING_GZIP, E_BAD_ENCODING, "gzip");
    bad(STR(text), CODING_GZIP, E_BAD_ENCODING, "not a gzip header");
    bad(STR(text), CODING_ZSTD, E_BAD_ENCODING, "zstd");
    buf_free(&b);
}

/* Optional fields of a header, with and without its checksum: the same deflate data and trailer behind each. */
static void test_headers(void **state)
{
    static const struct {
        struct str head;
        const char *words; /* NULL: good */
    } rows[] = {{{"\x1f\x8b\x08\x00\0\0\0\0\0\3", 10}, NULL},
                {{"\x1f\x8b\x08\x01\0\0\0\0\0\3", 10}, NULL},
                {{"\x1f\x8b\x08\x08\0\0\0\0\0\3name\0", 15}, NULL},
                {{"\x1f\x8b\x08\x10\0\0\0\0\0\3\0", 11}, NULL},
                {{"\x1f\x8b\x08\x04\0\0\0\0\0\3\0\0", 12}, NULL},
                {{"\x1f\x8b\x08\x04\0\0\0\0\0\3\3\0a\0b", 15}, NULL},
                {{"\x1f\x8b\x08\x02\0\0\0\0\0\3\xa7\x77", 12}, NULL},
                {{"\x1f\x8b\x08\x02\0\0\0\0\0\3\xa6\x77", 12}, "header checksum"},
                {{"\x1f\x8b\x08\x20\0\0\0\0\0\3", 10}, "unknown flags"},
                {{"\x1f\x8b\x07\x00\0\0\0\0\0\3", 10}, "compression method"}};
    struct buf whole = {0}, b = {0};

    (void)state;
    wire_gzip(&whole, STR(text));
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        b.len = 0;
        buf_str(&b, rows[i].head);
        buf_add(&b, whole.p + 10, whole.len - 10);
        if (rows[i].words)
            bad(buf_view(&b), CODING_IDENTITY, E_BAD_ENCODING, rows[i].words);
        else
            good(buf_view(&b), CODING_IDENTITY);
    }
    buf_free(&whole);
    buf_free(&b);
}

static void test_nesting(void **state)
{
    struct buf a = {0}, b = {0};

    (void)state;
    buf_str(&a, STR(text));
    for (int n = 1; n <= 4; n++) {
        b.len = 0;
        wire_gzip(&b, buf_view(&a));
        a.len = 0;
        buf_str(&a, buf_view(&b));
        if (n < 4) {
            good(buf_view(&a), CODING_IDENTITY);
            good(buf_view(&a), CODING_GZIP);
        } else {
            bad(buf_view(&a), CODING_IDENTITY, E_BAD_ENCODING, "at most 3");
            bad(buf_view(&a), CODING_GZIP, E_BAD_ENCODING, "at most 3");
        }
    }
    buf_free(&a);
    buf_free(&b);
}

static void test_zstd(void **state)
{
    static const char huge[] = "\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\x01\0\0\x51\0\0zzzzzzzzzz";
    static const char window[] = "\x28\xb5\x2f\xfd\x00\xa8\x51\0\0zzzzzzzzzz";
    struct buf b = {0}, back = {0};
    struct fault f;

    (void)state;
    assert_true(zstd_pack(STR(text), 1, &b));
    assert_true(zstd_unpack(buf_view(&b), 1000, &back));
    assert_true(str_eq(buf_view(&back), STR(text)));
    assert_false(zstd_unpack(buf_view(&b), 10, &back));
    good(buf_view(&b), CODING_ZSTD);
    for (size_t cut = 4; cut < b.len; cut++)
        bad((struct str){b.p, cut}, CODING_ZSTD, E_BAD_ENCODING, "truncated");
    assert_true(zstd_pack(STR("# c\n"), 1, &b)); /* two frames */
    good(buf_view(&b), CODING_ZSTD);
    assert_int_equal(fed((struct str){huge, sizeof huge - 1}, CODING_ZSTD, &f), E_BAD_ENCODING);
    assert_int_equal(fed((struct str){window, sizeof window - 1}, CODING_ZSTD, &f), E_BAD_ENCODING);
    buf_free(&b);
    buf_free(&back);
}

static void test_bombs(void **state)
{
    struct buf zeros = {0}, b = {0}, z = {0};

    (void)state;
    limits.inflated = 1 << 20;
    for (size_t i = 0; i < (1 << 20) / 8 + 100; i++)
        buf_add(&zeros, "\0\0\0\0\0\0\0\0", 8);
    wire_gzip(&b, buf_view(&zeros));
    assert_true(zstd_pack(buf_view(&zeros), 1, &z));
    bad(buf_view(&b), CODING_IDENTITY, E_INFLATED_TOO_LARGE, "limits.inflated (1048576 bytes)");
    bad(buf_view(&b), CODING_GZIP, E_INFLATED_TOO_LARGE, "limits.inflated");
    bad(buf_view(&z), CODING_ZSTD, E_INFLATED_TOO_LARGE, "limits.inflated");
    z.len = 0;
    wire_gzip(&z, buf_view(&b));
    bad(buf_view(&z), CODING_IDENTITY, E_INFLATED_TOO_LARGE, "limits.inflated");
    buf_free(&zeros);
    buf_free(&b);
    buf_free(&z);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, set_up)
    const struct CMUnitTest tests[] = {TEST(test_members), TEST(test_broken), TEST(test_headers),
                                       TEST(test_nesting), TEST(test_zstd),   TEST(test_bombs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
