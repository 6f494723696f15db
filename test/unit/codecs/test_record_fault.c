/* Every allocation of seal, block, table, open, merge and pprof fails in turn, once and from then on: an error, no
 * leak. */
#include "codecs/merge.h"
#include "test/oracle/made_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "test/oracle/failing_malloc.h"

static struct hash_key key;

/* What one walk holds; freed whole, however far it came. */
struct walk {
    struct record *record;
    struct idset *fresh;
    struct symtab *table;
    struct merge *merge;
    struct arena *arena;
    struct buf block, out;
};

static enum err steps(struct walk *w, const struct profile *p, struct fault *f)
{
    struct record_origin o = {
        .format = STR("pprof"), .original = STR("sent"), .original_bytes = 4, .keep_original = true};
    struct merge_spec spec = {.by_labels = true, .memory_limit = 64 << 20};
    struct record_view v;

    w->record = record_seal(p, &o, &key);
    w->fresh = idset_new();
    w->table = symtab_new();
    w->merge = merge_new(&spec);
    w->arena = arena_new(64 << 20);
    if (!w->record || !w->fresh || !w->table || !w->merge || !w->arena)
        return E_NO_MEMORY;
    const struct symbols *list[] = {w->record->symbols};
    if (!symbols_block(list, 1, NULL, w->fresh, &w->block))
        return E_NO_MEMORY;
    enum err e = symtab_add(w->table, buf_view(&w->block), f);
    if (e == E_OK)
        e = record_open(&v, w->record->body, w->arena, f);
    if (e == E_OK)
        e = merge_add(w->merge, &v, f);
    return e == E_OK ? pprof_write(merge_result(w->merge), w->table, &w->out, f) : e;
}

/* Whatever failed on the way: what is said to be all right is what it would have been. */
static struct buf right;

static enum err walk(const struct profile *p, struct fault *f)
{
    struct walk w = {0};
    enum err e = steps(&w, p, f);

    if (e == E_OK && right.p)
        assert_true(str_eq(buf_view(&w.out), buf_view(&right)));
    if (e == E_OK && !right.p) {
        right = w.out;
        w.out = (struct buf){0};
    }

    record_free(w.record);
    idset_free(w.fresh);
    symtab_free(w.table);
    merge_free(w.merge);
    arena_free(w.arena);
    buf_free(&w.block);
    buf_free(&w.out);
    return e;
}

static void test_every_failure(void **state)
{
    struct recipe r = {
        .seed = 5, .functions = 300, .stacks = 400, .depth = 140, .sets = 40, .samples = 900, .types = 5};
    struct arena *a = arena_new(SIZE_MAX);
    long refused = 0;

    (void)state;
    assert_non_null(a);
    hash_key_derive(&key, STR("test"));
    struct profile *p = made_profile(a, &r);
    struct fault none = {0};
    assert_int_equal(walk(p, &none), E_OK);
    for (int s = 0; s < 2; s++) {
        sticky = s;
        for (fail_at = 0;; fail_at++) {
            struct fault f = {0};
            calls = 0;
            enum err e = walk(p, &f);
            long seen = calls, at = fail_at;
            fail_at = -1;
            if (e == E_OK && seen <= at)
                break;
            /* Some failures cost nothing: a table that cannot grow still answers for what it has. */
            assert_true(e == E_NO_MEMORY || e == E_OK);
            refused += e != E_OK;
            fail_at = at;
        }
        fail_at = -1;
    }
    assert_true(calls > 60 && refused > 2 * (calls - 10));
    buf_free(&right);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_failure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
