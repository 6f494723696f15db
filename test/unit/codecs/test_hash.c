/* Keyed hashes, id sets, id maps and the varints of our own formats. */
#include "codecs/hash.h"
#include "codecs/idmap.h"
#include "codecs/pack.h"
#include "codecs/symbols.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_keys_differ(void **state)
{
    struct hash_key a, b, again, r1, r2;
    char fa[17], fb[17], fagain[17];

    (void)state;
    hash_key_derive(&a, STR("one"));
    hash_key_derive(&b, STR("two"));
    hash_key_derive(&again, STR("one"));
    hash_key_random(&r1);
    hash_key_random(&r2);
    assert_memory_equal(&a, &again, sizeof a);
    assert_memory_not_equal(&a, &b, sizeof a);
    assert_memory_not_equal(&r1, &r2, sizeof r1);
    hash_key_fingerprint(&a, fa);
    hash_key_fingerprint(&b, fb);
    hash_key_fingerprint(&again, fagain);
    assert_string_equal(fa, fagain);
    assert_string_not_equal(fa, fb);
    assert_int_equal(strspn(fa, "0123456789abcdef"), 16);
    assert_true(hash64(&a, "x", 1) != hash64(&b, "x", 1));
    assert_true(hash64(&a, "x", 1) == hash64(&again, "x", 1));
    assert_true(hash64(&a, "x", 1) != hash64(&a, "y", 1));
}

/* Cut anywhere, the stream's hash is that of the whole. */
static void test_stream_equals_whole(void **state)
{
    struct hash_key k;
    unsigned char data[5000];

    (void)state;
    hash_key_derive(&k, STR("stream"));
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 31 + i / 256);
    for (size_t n = 0; n <= sizeof data; n += n < 600 ? 1 : 489) {
        struct hash_state *h = hash_new(&k);
        struct hash128 whole = hash128(&k, data, n), streamed;
        assert_non_null(h);
        hash_feed(h, data, n / 3);
        hash_feed(h, data + n / 3, n - n / 3);
        hash_feed(h, NULL, 0);
        streamed = hash_end(h);
        assert_true(streamed.hi == whole.hi && streamed.lo == whole.lo);
        hash_free(h);
    }
}

static void test_idset(void **state)
{
    struct idset *s = idset_new();

    (void)state;
    assert_non_null(s);
    assert_false(idset_has(s, 0));
    assert_false(idset_has(s, 7));
    for (uint64_t i = 0; i < 10000; i++) {
        assert_true(idset_add(s, i * i * UINT64_C(0x9e3779b97f4a7c15)));
        assert_true(idset_add(s, i * i * UINT64_C(0x9e3779b97f4a7c15)));
    }
    assert_int_equal(idset_count(s), 10000);
    for (uint64_t i = 0; i < 10000; i++)
        assert_true(idset_has(s, i * i * UINT64_C(0x9e3779b97f4a7c15)));
    assert_false(idset_has(s, UINT64_C(0x9e3779b97f4a7c15) * 3));
    assert_true(idset_bytes(s) >= 10000 * 8 && idset_bytes(s) <= 10000 * 8 * 4);
    idset_free(s);
    idset_free(NULL);
}

static void test_idmap(void **state)
{
    struct idmap m = {0};

    (void)state;
    assert_int_equal(idmap_get(&m, 5), IDMAP_NONE);
    for (uint32_t i = 0; i < 5000; i++)
        assert_int_equal(idmap_add(&m, (uint64_t)i << 40, i), i);
    for (uint32_t i = 0; i < 5000; i++)
        assert_int_equal(idmap_add(&m, (uint64_t)i << 40, 9999999), i);
    assert_int_equal(idmap_get(&m, 0), 0);
    assert_int_equal(idmap_get(&m, 1), IDMAP_NONE);
    assert_true(idmap_reserve(&m, 100000));
    assert_int_equal(idmap_get(&m, (uint64_t)4999 << 40), 4999);
    assert_true(idmap_bytes(&m) > 100000 * sizeof(struct idmap_slot));
    idmap_free(&m);
    assert_int_equal(idmap_bytes(&m), 0);
}

static void test_pack(void **state)
{
    static const uint64_t numbers[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, INT64_MAX, UINT64_MAX};
    static const int64_t signs[] = {0, -1, 1, 63, -64, 64, INT64_MIN, INT64_MAX};
    struct buf b = {0};

    (void)state;
    for (size_t i = 0; i < COUNTOF(numbers); i++)
        pack_u64(&b, numbers[i]);
    for (size_t i = 0; i < COUNTOF(signs); i++)
        pack_i64(&b, signs[i]);
    pack_str(&b, STR("name"));
    pack_ids(&b, numbers, COUNTOF(numbers));
    assert_false(b.failed);

    struct unpack u = unpack_of(buf_view(&b));
    uint64_t ids[COUNTOF(numbers)];
    for (size_t i = 0; i < COUNTOF(numbers); i++)
        assert_true(unpack_u64(&u) == numbers[i]);
    for (size_t i = 0; i < COUNTOF(signs); i++)
        assert_true(unpack_i64(&u) == signs[i]);
    assert_true(str_eq(unpack_str(&u), STR("name")));
    unpack_ids(&u, ids, COUNTOF(ids));
    assert_memory_equal(ids, numbers, sizeof ids);
    assert_true(!u.bad && u.p == u.end);
    assert_int_equal(unpack_u64(&u), 0);
    assert_true(u.bad);
    buf_free(&b);
}

/* What is too long, too large or cut is refused, and stays refused. */
static void test_unpack_refuses(void **state)
{
    static const struct str bad[] = {STR(""), STR("\x80"), STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"),
                                     STR("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01")};

    (void)state;
    for (size_t i = 0; i < COUNTOF(bad); i++) {
        struct unpack u = unpack_of(bad[i]);
        assert_int_equal(unpack_u64(&u), 0);
        assert_true(u.bad);
    }
    struct unpack u = unpack_of(STR("\x05"
                                    "abcd"));
    assert_int_equal(unpack_str(&u).len, 0);
    assert_true(u.bad);
    u = unpack_of(STR("\x02"
                      "abc"));
    assert_int_equal(unpack_count(&u, 2), 0);
    assert_true(u.bad);
    u = unpack_of(STR("\x05"));
    assert_int_equal(unpack_below(&u, 5), 0);
    assert_true(u.bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_differ), cmocka_unit_test(test_stream_equals_whole),
        cmocka_unit_test(test_idset),       cmocka_unit_test(test_idmap),
        cmocka_unit_test(test_pack),        cmocka_unit_test(test_unpack_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
