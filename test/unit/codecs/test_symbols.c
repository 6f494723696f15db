/* Symbols: ids, blocks, and the table that reads them back frame for frame. */
#include "codecs/symbols.h"
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

static struct symbols *sealed(const struct profile *p)
{
    struct symbols *s = symbols_seal(p, &key);
    assert_non_null(s);
    return s;
}

static struct symtab *table(void)
{
    struct symtab *t = symtab_new();
    assert_non_null(t);
    return t;
}

static struct idset *set(void)
{
    struct idset *s = idset_new();
    assert_non_null(s);
    return s;
}

static void add(struct symtab *t, const struct buf *block)
{
    struct fault f = {0};
    assert_int_equal(symtab_add(t, buf_view(block), &f), E_OK);
}

static void check_frame(const struct profile *p, const struct frame *f, const struct symframe *got)
{
    assert_true(got->line == f->line && got->column == f->column && got->address == f->address &&
                got->flags == f->flags);
    assert_true((got->function == NULL) == (f->function == PROFILE_NONE));
    assert_true((got->mapping == NULL) == (f->mapping == PROFILE_NONE));
    if (got->function) {
        const struct function *fn = &p->functions[f->function];
        assert_true(str_eq(got->function->name, fn->name) && str_eq(got->function->system_name, fn->system_name));
        assert_true(str_eq(got->function->file, fn->file) && got->function->start_line == fn->start_line);
    }
    if (got->mapping) {
        const struct mapping *m = &p->mappings[f->mapping];
        assert_true(str_eq(got->mapping->file, m->file) && str_eq(got->mapping->build_id, m->build_id));
        assert_true(got->mapping->start == m->start && got->mapping->limit == m->limit &&
                    got->mapping->offset == m->offset);
    }
}

/* Every stack of p, resolved, is what p says. */
static void check_profile(const struct symtab *t, const struct profile *p, const struct symbols *s)
{
    const struct symframe *out[256];

    for (uint32_t i = 0; i < p->n_stacks; i++) {
        uint32_t n = symtab_stack(t, s->stack_ids[i], out, COUNTOF(out));
        assert_int_equal(n, p->stack_at[i + 1] - p->stack_at[i]);
        for (uint32_t j = 0; j < n; j++)
            check_frame(p, &p->frames[p->stack_frames[p->stack_at[i] + j]], out[j]);
    }
}

static const struct recipe small = {
    .seed = 1, .functions = 60, .stacks = 80, .depth = 20, .sets = 1, .samples = 10, .types = 1};
static const struct recipe shifted = {
    .seed = 2, .functions = 60, .stacks = 80, .depth = 30, .sets = 1, .samples = 10, .types = 1, .shift = 30};
static const struct recipe large = {
    .seed = 3, .functions = 2000, .stacks = 3000, .depth = 60, .sets = 1, .samples = 10, .types = 1};

static void test_copies(void **state)
{
    struct arena *a = arena_new(SIZE_MAX);
    struct profile *gone = made_profile(a, &small), *p = made_profile(arena, &small);
    struct symbols *s = sealed(gone);

    (void)state;
    arena_free(a);
    assert_int_equal(s->n_stacks, p->n_stacks);
    for (uint32_t i = 0; i < p->n_functions; i++)
        assert_true(str_eq(s->functions[i].name, p->functions[i].name) &&
                    str_eq(s->functions[i].file, p->functions[i].file));
    for (uint32_t i = 0; i < p->n_mappings; i++)
        assert_true(str_eq(s->mappings[i].build_id, p->mappings[i].build_id));
    assert_memory_equal(s->stack_frames, p->stack_frames, p->stack_at[p->n_stacks] * sizeof *p->stack_frames);
    assert_true(s->bytes > p->n_frames * sizeof(struct frame));
    symbols_free(s);
    symbols_free(NULL);
}

/* Anything in a frame's definition changes its id; where a mapping was loaded does not. */
static void test_ids(void **state)
{
    struct profile *p = made_profile(arena, &small), q = *p;
    struct symbols *a = sealed(p), *b;
    struct function functions[60];
    struct mapping mappings[3];
    struct frame frames[120];

    (void)state;
    assert_true(a->stack_ids[0] == 0);
    for (uint32_t i = 1; i < a->n_stacks; i++)
        assert_true(a->stack_ids[i] != 0);
    memcpy(functions, p->functions, sizeof functions);
    memcpy(mappings, p->mappings, sizeof mappings);
    memcpy(frames, p->frames, sizeof frames);
    q.functions = functions;
    q.mappings = mappings;
    q.frames = frames;
    mappings[0].start += 4096;
    b = sealed(&q);
    assert_memory_equal(a->frame_ids, b->frame_ids, sizeof *a->frame_ids * a->n_frames);
    symbols_free(b);
    functions[0].start_line++;
    functions[1].file = STR("other");
    functions[2].system_name = STR("other");
    mappings[1].build_id = STR("other");
    frames[6].line++;
    frames[7].column++;
    frames[20].address++;
    frames[8].flags ^= FRAME_FOLDED;
    b = sealed(&q);
    for (uint32_t i = 0; i < p->n_frames; i++) {
        bool changed = i < 6 || i == 6 || i == 7 || i == 8 || i == 20 || frames[i].mapping == 1;
        assert_true((a->frame_ids[i] != b->frame_ids[i]) == changed);
    }
    symbols_free(b);
    symbols_free(a);
}

static void test_round_trip(void **state)
{
    static const struct recipe *const all[] = {&small, &shifted, &large};

    (void)state;
    for (size_t i = 0; i < COUNTOF(all); i++) {
        struct profile *p = made_profile(arena, all[i]);
        struct symbols *s = sealed(p);
        const struct symbols *list[] = {s};
        struct idset *fresh = set();
        struct symtab *t = table();
        struct buf block = {0};
        assert_true(symbols_block(list, 1, NULL, fresh, &block));
        add(t, &block);
        check_profile(t, p, s);
        assert_true(symtab_bytes(t) > block.len);
        print_message("%u stacks, %.1f bytes each\n", p->n_stacks, (double)block.len / p->n_stacks);
        buf_free(&block);
        symtab_free(t);
        idset_free(fresh);
        symbols_free(s);
    }
}

/* What is known is left out, and named by id; both orders of loading give everything. */
/* Out of the table again, as symbols of their own: the same ids, so that a store takes them for the same. */
static void test_pick(void **state)
{
    const struct profile *p = made_profile(arena, &small);
    struct symbols *s = sealed(p), *picked;
    uint64_t *wanted = malloc((p->n_stacks + 1) * sizeof *wanted);
    struct symtab *t = table();
    struct idset *fresh = set();
    struct buf block = {0};

    (void)state;
    assert_true(symbols_block((const struct symbols *const[]){s}, 1, NULL, fresh, &block));
    add(t, &block);
    memcpy(wanted, s->stack_ids, p->n_stacks * sizeof *wanted);
    wanted[p->n_stacks] = 4711; /* nobody's */
    picked = symtab_pick(t, wanted, p->n_stacks + 1, &key);
    assert_non_null(picked);
    assert_int_equal(picked->n_stacks, p->n_stacks);
    assert_memory_equal(picked->stack_ids, s->stack_ids, p->n_stacks * sizeof *wanted);
    struct symtab *again = table();
    block.len = 0;
    assert_true(symbols_block((const struct symbols *const[]){picked}, 1, NULL, fresh, &block));
    add(again, &block);
    check_profile(again, p, s);
    symtab_free(again);
    symtab_free(t);
    symbols_free(picked);
    idset_free(fresh);
    symbols_free(s);
    buf_free(&block);
    free(wanted);
}

static void test_second_block_names_the_first(void **state)
{
    struct profile *p = made_profile(arena, &small), *q = made_profile(arena, &shifted);
    struct symbols *a = sealed(p), *b = sealed(q);
    const struct symbols *first[] = {a}, *both[] = {a, b, a};
    struct idset *known = set(), *fresh = set();
    struct buf one = {0}, two = {0}, none = {0}, alone = {0};

    (void)state;
    assert_true(symbols_block(first, 1, known, known, &one));
    assert_true(symbols_block(both, 3, known, fresh, &two));
    assert_true(symbols_block(first, 1, known, fresh, &none));
    assert_int_equal(none.len, 0);
    struct idset *nothing = set();
    const struct symbols *second[] = {b};
    assert_true(symbols_block(second, 1, nothing, nothing, &alone));
    assert_true(two.len < alone.len);
    for (int order = 0; order < 2; order++) {
        struct symtab *t = table();
        add(t, order ? &two : &one);
        add(t, order ? &one : &two);
        add(t, &one);
        check_profile(t, p, a);
        check_profile(t, q, b);
        symtab_free(t);
    }
    for (uint32_t i = 1; i < b->n_stacks; i++)
        assert_true(idset_has(fresh, b->stack_ids[i]) || idset_has(known, b->stack_ids[i]));
    buf_free(&one);
    buf_free(&two);
    buf_free(&alone);
    idset_free(nothing);
    idset_free(known);
    idset_free(fresh);
    symbols_free(a);
    symbols_free(b);
}

static void test_what_is_lost(void **state)
{
    struct profile *p = made_profile(arena, &small);
    struct symbols *a = sealed(p);
    const struct symbols *list[] = {a};
    const struct symframe *out[64];
    struct idset *known = set(), *fresh = set();
    struct symtab *t = table();
    struct buf block = {0};

    (void)state;
    uint32_t lost = a->stack_frames[a->stack_at[5]], unknown = 0;
    assert_true(idset_add(known, a->frame_ids[lost]));
    assert_true(symbols_block(list, 1, known, fresh, &block));
    add(t, &block);
    uint32_t n = symtab_stack(t, a->stack_ids[5], out, COUNTOF(out));
    assert_int_equal(n, a->stack_at[6] - a->stack_at[5]);
    for (uint32_t j = 0; j < n; j++)
        if (str_eq(out[j]->function ? out[j]->function->name : STR(""), STR("[unknown]")))
            unknown++;
    assert_true(unknown >= 1);
    assert_true(str_eq(out[0]->function->name, STR("[unknown]")));
    assert_int_equal(symtab_stack(t, 0, out, COUNTOF(out)), 0);
    assert_int_equal(symtab_stack(t, 12345, out, COUNTOF(out)), SYMTAB_UNKNOWN);
    assert_false(idset_has(fresh, a->frame_ids[lost]));
    buf_free(&block);
    symtab_free(t);
    idset_free(known);
    idset_free(fresh);
    symbols_free(a);
}

/* The root side of a stack that is deeper than the answer has room for. */
static void test_short_answer(void **state)
{
    struct profile *p = made_profile(arena, &large);
    struct symbols *s = sealed(p);
    const struct symbols *list[] = {s};
    const struct symframe *all[256], *some[3];
    struct idset *fresh = set();
    struct symtab *t = table();
    struct buf block = {0};

    (void)state;
    assert_true(symbols_block(list, 1, NULL, fresh, &block));
    add(t, &block);
    for (uint32_t i = 1; i < 100; i++) {
        uint32_t n = symtab_stack(t, s->stack_ids[i], all, COUNTOF(all));
        assert_int_equal(symtab_stack(t, s->stack_ids[i], some, 3), n);
        assert_memory_equal(all, some, sizeof *some * (n < 3 ? n : 3));
    }
    buf_free(&block);
    symtab_free(t);
    idset_free(fresh);
    symbols_free(s);
}

/* Any prefix and any changed byte: refused or read, never a read outside; what was there before stays whole. */
static void test_damage(void **state)
{
    struct profile *p = made_profile(arena, &small), *q = made_profile(arena, &shifted);
    struct symbols *a = sealed(p), *b = sealed(q);
    const struct symbols *list[] = {a}, *other[] = {b};
    struct idset *fresh = set();
    struct symtab *t = table();
    struct buf good = {0}, block = {0};
    size_t refused = 0;

    (void)state;
    assert_true(symbols_block(list, 1, NULL, fresh, &good));
    assert_true(symbols_block(other, 1, NULL, fresh, &block));
    add(t, &good);
    for (size_t i = 0; i < block.len; i++) {
        for (int cut = 0; cut < 2; cut++) {
            size_t n = cut ? i : block.len;
            char *copy = malloc(n ? n : 1);
            struct symtab *into = cut ? t : table();
            struct fault f = {0};
            assert_non_null(copy);
            memcpy(copy, block.p, n);
            if (!cut)
                copy[i] = (char)(copy[i] ^ (1 << i % 8));
            enum err e = symtab_add(into, (struct str){copy, n}, &f);
            assert_true(e == E_OK || e == E_BAD_INPUT);
            assert_true(!cut || e == E_BAD_INPUT);
            refused += e != E_OK;
            free(copy);
            if (!cut)
                symtab_free(into);
        }
    }
    assert_true(refused >= block.len);
    check_profile(t, p, a);
    add(t, &block);
    check_profile(t, q, b);
    buf_free(&good);
    buf_free(&block);
    symtab_free(t);
    idset_free(fresh);
    symbols_free(a);
    symbols_free(b);
}

/* Only blocks of use are read: those with a wanted stack, and those that define the frames it names. */
static void test_wanted_stacks(void **state)
{
    static const struct recipe far = {.seed = 4,
                                      .functions = 60,
                                      .stacks = 80,
                                      .depth = 20,
                                      .sets = 1,
                                      .samples = 10,
                                      .types = 1,
                                      .plain = true,
                                      .shift = 10000};
    struct profile *p = made_profile(arena, &small), *q = made_profile(arena, &shifted),
                   *other = made_profile(arena, &far);
    struct symbols *a = sealed(p), *b = sealed(q), *c = sealed(other);
    struct idset *known = set(), *wanted = set(), *spare = set();
    struct buf first = {0}, second = {0}, useless = {0};
    struct symtab *t = table();

    (void)state;
    assert_true(symbols_block((const struct symbols *[]){a}, 1, NULL, known, &first));
    struct idset *fresh = set();
    assert_true(symbols_block((const struct symbols *[]){b}, 1, known, fresh, &second));
    assert_true(symbols_block((const struct symbols *[]){c}, 1, NULL, spare, &useless));
    for (uint32_t i = 0; i < b->n_stacks; i++)
        assert_true(!b->stack_ids[i] || idset_add(wanted, b->stack_ids[i]));
    symtab_want(t, wanted);
    size_t empty = symtab_bytes(t);
    add(t, &useless);
    add(t, &first);
    assert_int_equal(symtab_bytes(t), empty);
    add(t, &second);
    assert_true(symtab_lacks(t));
    add(t, &useless);
    add(t, &first);
    assert_false(symtab_lacks(t));
    check_profile(t, q, b);
    assert_int_equal(symtab_stack(t, c->stack_ids[c->n_stacks - 1], NULL, 0), SYMTAB_UNKNOWN);
    symtab_free(t);
    buf_free(&first);
    buf_free(&second);
    buf_free(&useless);
    idset_free(known);
    idset_free(fresh);
    idset_free(wanted);
    idset_free(spare);
    symbols_free(a);
    symbols_free(b);
    symbols_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_pick),
        cmocka_unit_test(test_second_block_names_the_first),
        cmocka_unit_test(test_what_is_lost),
        cmocka_unit_test(test_short_answer),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_wanted_stacks),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
