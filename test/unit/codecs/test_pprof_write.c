/* A merge written as pprof and decoded again says the same: every stack with its frames, labels and values. */
#include "codecs/inflate.h"
#include "codecs/merge.h"
#include "codecs/pprof.h"
#include "test/oracle/made_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct hash_key key;
static struct arena *arena;

static int setup(void **state)
{
    (void)state;
    hash_key_derive(&key, STR("test"));
    arena = arena_new(SIZE_MAX);
    return !arena;
}

static int teardown(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

/* A sample in words. Whether a frame was inlined shows only where it can be written: behind what it was inlined into.
 */
static void tell_frames(struct buf *b, const struct profile *p, uint32_t stack)
{
    const struct frame *caller = NULL;

    for (uint32_t j = p->stack_at[stack]; j < p->stack_at[stack + 1]; j++) {
        const struct frame *f = &p->frames[p->stack_frames[j]];
        bool inside = f->flags & FRAME_INLINED && f->function != PROFILE_NONE && caller &&
                      caller->function != PROFILE_NONE && caller->mapping == f->mapping &&
                      !((caller->flags ^ f->flags) & FRAME_FOLDED);
        if (f->function == PROFILE_NONE) {
            buf_printf(b, "0x%llx", (unsigned long long)f->address);
        } else {
            const struct function *fn = &p->functions[f->function];
            buf_printf(b, "%.*s %.*s %.*s:%lld", STR_ARG(fn->name), STR_ARG(fn->system_name), STR_ARG(fn->file),
                       (long long)fn->start_line);
        }
        if (f->mapping != PROFILE_NONE)
            buf_printf(b, " in %.*s %.*s", STR_ARG(p->mappings[f->mapping].file),
                       STR_ARG(p->mappings[f->mapping].build_id));
        buf_printf(b, " %lld:%lld%s%s;", (long long)f->line, (long long)f->column,
                   f->flags & FRAME_FOLDED ? " folded" : "", inside ? " inlined" : "");
        caller = f;
    }
}

static void tell_labels(struct buf *b, const struct profile *p, uint32_t set)
{
    for (uint32_t j = p->set_at[set]; j < p->set_at[set + 1]; j++) {
        const struct sample_label *l = &p->labels[j];
        if (l->numeric)
            buf_printf(b, " %.*s=%lld%.*s", STR_ARG(l->key), (long long)l->num, STR_ARG(l->unit));
        else
            buf_printf(b, " %.*s=%.*s", STR_ARG(l->key), STR_ARG(l->value));
    }
}

static int compare(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* All samples in words, sorted. `values`: of `n` records that were equal. */
static struct str *told(const struct profile *p, int64_t n)
{
    struct str *all = NEW(arena, struct str, p->n_samples + (size_t)1);

    assert_non_null(all);
    for (uint32_t i = 0; i < p->n_samples; i++) {
        struct buf b = {0};
        tell_frames(&b, p, p->sample_stack[i]);
        tell_labels(&b, p, p->sample_set[i]);
        for (uint32_t t = 0; t < p->n_types; t++)
            buf_printf(&b, " %lld", (long long)(n * p->values[t][i]));
        assert_false(b.failed);
        assert_true(arena_str(arena, buf_view(&b), &all[i]));
        buf_free(&b);
    }
    qsort(all, p->n_samples, sizeof *all, compare);
    return all;
}

static struct str gunzipped(struct str in)
{
    enum { MOST = 16 << 20 };
    struct inflate *z = inflate_new();
    char *out = NEW(arena, char, MOST);
    size_t len = 0, n;

    assert_true(z && out);
    do {
        assert_true(inflate_pull(z, &in, out + len, MOST - len, &n));
        len += n;
    } while (n || in.len);
    assert_true(inflate_ended(z));
    inflate_free(z);
    return (struct str){out, len};
}

static const struct limits limits = {
    .decoded = 64 << 20, .field = 1 << 20, .samples = 100000, .depth = 1024, .sample_labels = 64};

/* Decoded with the decoder of uploads. What it allocates is in the arena of the test. */
static struct profile *decoded(struct str raw)
{
    struct upload_spec spec = {.key = &key, .limits = &limits};
    struct intake in = {.spec = &spec, .limits = &limits, .arena = arena};
    struct pprof_reading how = {0};
    struct fault f = {0};
    uint32_t budget = UINT32_MAX;
    struct str refused;
    struct profile *p = NEW(arena, struct profile, 1);
    struct pprof *d = pprof_new(&in, &f);

    assert_true(p && d);
    assert_int_equal(pprof_feed(d, &raw, &budget), STEP_MORE);
    assert_int_equal(pprof_end(d), STEP_MORE);
    assert_int_equal(pprof_build(d, &how, arena, p, &refused, &f), E_OK);
    return p;
}

/* One record of p, `times` times, merged; *table gets its symbols. */
static struct merge *merged(const struct profile *p, int times, bool by_labels, struct symtab **table)
{
    struct record_origin o = {.format = STR("pprof")};
    struct record *r = record_seal(p, &o, &key);
    struct merge_spec spec = {.by_labels = by_labels, .memory_limit = 64 << 20};
    struct merge *m = merge_new(&spec);
    struct idset *fresh = idset_new();
    struct buf block = {0};
    struct record_view v;
    struct fault f = {0};

    *table = symtab_new();
    assert_true(r && m && fresh && *table);
    const struct symbols *list[] = {r->symbols};
    assert_true(symbols_block(list, 1, NULL, fresh, &block));
    assert_int_equal(symtab_add(*table, buf_view(&block), &f), E_OK);
    assert_int_equal(record_open(&v, r->body, arena, &f), E_OK);
    for (int i = 0; i < times; i++)
        assert_int_equal(merge_add(m, &v, &f), E_OK);
    buf_free(&block);
    idset_free(fresh);
    record_free(r);
    return m;
}

static void check(const struct profile *p, int times)
{
    struct symtab *table;
    struct merge *m = merged(p, times, true, &table);
    struct buf out = {0};
    struct fault f = {0};

    assert_int_equal(pprof_write(merge_result(m), table, &out, &f), E_OK);
    struct profile *q = decoded(gunzipped(buf_view(&out)));
    assert_int_equal(q->n_samples, p->n_samples);
    assert_int_equal(q->n_types, p->n_types);
    for (uint32_t t = 0; t < p->n_types; t++) {
        assert_true(str_eq(q->types[t].type, p->types[t].type) && str_eq(q->types[t].unit, p->types[t].unit));
        assert_true(q->types[t].total == p->types[t].total * times);
    }
    assert_true(q->period == p->period && q->duration_ns == p->duration_ns * times);
    assert_true(str_eq(q->period_type, p->period_type) && str_eq(q->period_unit, p->period_unit));
    struct str *want = told(p, times), *got = told(q, 1);
    for (uint32_t i = 0; i < p->n_samples; i++)
        if (!str_eq(want[i], got[i]))
            fail_msg("sample %u:\n%.*s\n%.*s", i, STR_ARG(want[i]), STR_ARG(got[i]));
    buf_free(&out);
    merge_free(m);
    symtab_free(table);
}

static void test_plain(void **state)
{
    struct recipe r = {
        .seed = 1, .functions = 60, .stacks = 80, .depth = 20, .sets = 1, .samples = 80, .types = 2, .plain = true};

    (void)state;
    check(made_profile(arena, &r), 1);
    check(made_profile(arena, &r), 3);
}

static void test_everything(void **state)
{
    struct recipe r = {.seed = 2, .functions = 60, .stacks = 80, .depth = 20, .sets = 7, .samples = 300, .types = 3};

    (void)state;
    check(made_profile(arena, &r), 1);
    r = (struct recipe){
        .seed = 3, .functions = 900, .stacks = 1500, .depth = 200, .sets = 2, .samples = 2000, .types = 2};
    check(made_profile(arena, &r), 2);
}

/* Stacks whose symbols are lost keep their values. */
static void test_without_symbols(void **state)
{
    struct recipe r = {.seed = 4, .functions = 20, .stacks = 30, .depth = 9, .sets = 1, .samples = 30, .types = 1};
    struct profile *p = made_profile(arena, &r);
    struct symtab *table, *empty = symtab_new();
    struct merge *m = merged(p, 1, false, &table);
    struct buf out = {0};
    struct fault f = {0};

    (void)state;
    assert_non_null(empty);
    assert_int_equal(pprof_write(merge_result(m), empty, &out, &f), E_OK);
    struct profile *q = decoded(gunzipped(buf_view(&out)));
    assert_int_equal(q->n_functions, 1);
    assert_true(str_eq(q->functions[0].name, STR("[unknown]")));
    assert_true(q->types[0].total == p->types[0].total);
    buf_free(&out);
    merge_free(m);
    symtab_free(table);
    symtab_free(empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_without_symbols),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
