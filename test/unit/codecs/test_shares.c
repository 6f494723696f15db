/* Function shares against a plain count over the profile, and their bytes. */
#include "codecs/shares.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "codecs/identity.h"
#include "test/oracle/made_profile.h"

static struct hash_key key;

static struct record *seal(const struct profile *p)
{
    struct record_origin o = {.format = STR("pprof")};
    struct record *r = record_seal(p, &o, &key);

    assert_non_null(r);
    return r;
}

static uint64_t frame_function(const struct profile *p, uint32_t frame)
{
    const struct frame *f = &p->frames[frame];
    char text[IDENTITY_TEXT];
    struct identity id = identity_of(f->function == PROFILE_NONE ? NULL : &p->functions[f->function],
                                     f->mapping == PROFILE_NONE ? NULL : &p->mappings[f->mapping], f->address, text);
    return identity_hash(&id, &key);
}

/* What one function gets, by looking at every sample. */
static struct share count(const struct profile *p, uint32_t type, uint64_t function)
{
    struct identity none = identity_lone("[no stack]");
    struct share s = {.function = function};

    for (uint32_t i = 0; i < p->n_samples; i++) {
        uint32_t at = p->stack_at[p->sample_stack[i]], end = p->stack_at[p->sample_stack[i] + 1];
        bool in = at == end && function == identity_hash(&none, &key);
        bool leaf = in;
        for (uint32_t j = at; j < end; j++) {
            bool same = frame_function(p, p->stack_frames[j]) == function;
            in |= same;
            leaf = same;
        }
        s.self += leaf ? p->values[type][i] : 0;
        s.total += in ? p->values[type][i] : 0;
    }
    return s;
}

static void test_equal_a_plain_count(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct arena *a = arena_new(SIZE_MAX);
        struct recipe recipe = {
            .seed = seed, .functions = 20, .stacks = 40, .depth = 9, .sets = 3, .samples = 80, .types = 2};
        struct profile *p = made_profile(a, &recipe);
        struct record *r = seal(p);
        struct fault f = {0};
        struct shares *s;

        assert_int_equal(shares_of(r, &key, a, &s, &f), E_OK);
        for (uint32_t t = 0; t < p->n_types; t++) {
            int64_t self = 0;
            assert_true(s[t].n > 0);
            for (uint32_t i = 0; i < s[t].n; i++) {
                struct share want = count(p, t, s[t].rows[i].function);
                assert_int_equal(s[t].rows[i].self, want.self);
                assert_int_equal(s[t].rows[i].total, want.total);
                self += want.self;
            }
            assert_int_equal(s[t].total, r->types[t].total);
            assert_int_equal(self, s[t].total);
        }
        record_free(r);
        arena_free(a);
    }
}

static void test_sums_and_bytes(void **state)
{
    struct arena *a = arena_new(SIZE_MAX);
    struct share x_rows[] = {{1, 5, 9}, {4, -1, 2}}, y_rows[] = {{0, 1, 1}, {4, 3, 4}, {UINT64_MAX, 0, 7}};
    struct shares x = {x_rows, 2, 4, share_check(1, 2, 3)}, y = {y_rows, 3, 4, share_check(1, 2, 4)}, sum, back;
    struct fault f = {0};
    struct buf b = {0};

    (void)state;
    assert_int_equal(shares_add(&x, &y, a, &sum, &f), E_OK);
    assert_int_equal(sum.n, 4);
    assert_int_equal(sum.total, 8);
    assert_true(sum.check == x.check + y.check && x.check != y.check);
    assert_int_equal(sum.rows[2].self, 2);
    assert_int_equal(sum.rows[2].total, 6);
    shares_pack(&sum, &b);
    assert_int_equal(shares_unpack(buf_view(&b), a, &back, &f), E_OK);
    assert_int_equal(back.n, 4);
    assert_memory_equal(back.rows, sum.rows, 4 * sizeof *sum.rows);
    assert_true(back.total == sum.total && back.check == sum.check);
    for (size_t cut = 0; cut < b.len; cut++) {
        struct fault g = {0};
        char *copy = malloc(cut + 1); /* so that a sanitizer sees reading past the end */
        memcpy(copy, b.p, cut);
        assert_int_equal(shares_unpack((struct str){copy, cut}, a, &back, &g), E_BAD_INPUT);
        free(copy);
    }
    buf_free(&b);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_a_plain_count),
        cmocka_unit_test(test_sums_and_bytes),
    };
    hash_key_derive(&key, STR("shares"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
