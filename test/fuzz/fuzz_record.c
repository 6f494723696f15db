/*
 * Records and symbol blocks. The first byte chooses: bytes as a body, as a block, or as a recipe for a profile that
 * must come back whole, also after the rest of the input has changed some bytes of its body or block.
 */
#include "codecs/merge.h"
#include "codecs/pack.h"
#include "codecs/record_body.h"
#include "codecs/symblock.h"
#include "codecs/zstd.h"
#include "test/oracle/made_profile.h"
#include "test/oracle/record_same.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MEMORY = 32 << 20, RECIPE_BYTES = 8 };
static struct hash_key key;

/* An exact copy, so that the sanitizer sees a read outside. */
static struct str exact(const uint8_t *data, size_t n)
{
    char *p = malloc(n ? n : 1);

    ASSERT(p);
    if (n)
        memcpy(p, data, n);
    return (struct str){p, n};
}

static void use_view(const struct record_view *v)
{
    struct merge_spec spec = {.by_labels = true, .memory_limit = MEMORY};
    struct merge *m = merge_new(&spec);
    struct fault f = {0};

    ASSERT(m);
    if (merge_add(m, v, &f) == E_OK)
        ASSERT(merge_result(m)->n_rows <= v->n_samples);
    merge_free(m);
}

static void open_body(const uint8_t *data, size_t n)
{
    struct str body = exact(data, n);
    struct arena *a = arena_new(MEMORY);
    struct record_view v;
    struct fault f = {0};

    ASSERT(a);
    enum err e = record_open(&v, body, a, &f);
    ASSERT(e == E_OK || e == E_BAD_INPUT || e == E_PROFILE_TOO_LARGE);
    ASSERT((e == E_OK) == (f.err == E_OK));
    if (e == E_OK)
        use_view(&v);
    arena_free(a);
    free((char *)(uintptr_t)body.p);
}

static void add_block(const uint8_t *data, size_t n)
{
    struct str block = exact(data, n);
    struct symtab *t = symtab_new();
    const struct symframe *out[16];
    struct fault f = {0};

    ASSERT(t);
    enum err e = symtab_add(t, block, &f);
    ASSERT(e == E_OK || e == E_BAD_INPUT);
    for (uint64_t id = 0; e == E_OK && n >= 8 && id < 8; id++)
        (void)symtab_stack(t, id, out, COUNTOF(out));
    symtab_free(t);
    free((char *)(uintptr_t)block.p);
}

/* A body or block of these columns: `ids` names how many ids stand before them, in one list or two. */
static void wrap_columns(struct buf *out, struct str magic, const uint8_t *ids, size_t lists, struct str columns)
{
    static const uint64_t numbers[256] = {1, 2, 3, 4, 5, 6, 7, 8};

    buf_str(out, magic);
    for (size_t i = 0; i < lists; i++) {
        pack_u64(out, ids[i]);
        pack_ids(out, numbers, ids[i]);
    }
    ASSERT(zstd_pack(columns, 1, out) && !out->failed);
}

static void open_columns(const uint8_t *data, size_t n)
{
    struct buf b = {0};

    if (n < 1)
        return;
    wrap_columns(&b, (struct str){RECORD_MAGIC, RECORD_MAGIC_BYTES}, data, 1,
                 (struct str){(const char *)data + 1, n - 1});
    open_body((const uint8_t *)b.p, b.len);
    buf_free(&b);
}

static void add_columns(const uint8_t *data, size_t n)
{
    struct buf b = {0};

    if (n < 2)
        return;
    wrap_columns(&b, (struct str){SYMBLOCK_MAGIC, SYMBLOCK_MAGIC_BYTES}, data, 2,
                 (struct str){(const char *)data + 2, n - 2});
    add_block((const uint8_t *)b.p, b.len);
    buf_free(&b);
}

static struct recipe recipe_of(const uint8_t *d)
{
    return (struct recipe){.seed = d[0],
                           .functions = 1 + d[1] % 64,
                           .stacks = 1 + d[2] % 64,
                           .depth = 1 + d[3] % 32,
                           .sets = d[4] % 16,
                           .samples = d[5] * 2u,
                           .types = 1 + d[6] % 4,
                           .plain = d[7] % 2};
}

/* Pairs of bytes say which byte becomes what. */
static void change(struct str s, const uint8_t *data, size_t n)
{
    for (size_t i = 0; i + 3 <= n && s.len; i += 3)
        ((char *)(uintptr_t)s.p)[(data[i] << 8 | data[i + 1]) % s.len] ^= (char)data[i + 2];
}

static void round_trip(const uint8_t *data, size_t n)
{
    struct recipe recipe = recipe_of(data);
    struct record_origin o = {.format = STR("pprof")};
    struct arena *a = arena_new(SIZE_MAX);
    struct idset *fresh = idset_new();
    struct buf block = {0};
    struct record_view v;
    struct fault f = {0};

    ASSERT(a && fresh);
    struct profile *p = made_profile(a, &recipe);
    struct record *r = record_seal(p, &o, &key);
    ASSERT(r && record_open(&v, r->body, a, &f) == E_OK && !record_differs(&v, p, r));
    struct record *again = record_seal(record_again(a, &v, p, r), &o, &key);
    ASSERT(again && str_eq(again->body, r->body));
    const struct symbols *list[] = {r->symbols};
    ASSERT(symbols_block(list, 1, NULL, fresh, &block));
    change(again->body, data + RECIPE_BYTES, n - RECIPE_BYTES);
    open_body((const uint8_t *)again->body.p, again->body.len);
    change(buf_view(&block), data + RECIPE_BYTES, n - RECIPE_BYTES);
    if (block.len)
        add_block((const uint8_t *)block.p, block.len);
    record_free(r);
    record_free(again);
    idset_free(fresh);
    buf_free(&block);
    arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    hash_key_derive(&key, STR("fuzz"));
    if (n == 0)
        return 0;
    switch (data[0] % 8) {
    case 0:
        open_body(data + 1, n - 1);
        break;
    case 1:
        add_block(data + 1, n - 1);
        break;
    case 4:
    case 5:
        open_columns(data + 1, n - 1);
        break;
    case 6:
    case 7:
        add_columns(data + 1, n - 1);
        break;
    default:
        if (n > RECIPE_BYTES)
            round_trip(data + 1, n - 1);
    }
    return 0;
}
