/* Writing blocks of symbols (format: codecs/symblock.h): what a group has that was not stored yet, each thing once. */
#include "codecs/symblock.h"

#include "codecs/idmap.h"
#include "codecs/pack.h"
#include "codecs/stacksort.h"
#include "codecs/symbols.h"
#include "codecs/zstd.h"

/* A frame of the block. Its definition is that of the first list that has it; elsewhere: an earlier block has it. */
struct entry {
    const struct symbols *of;
    uint32_t frame;
    bool elsewhere;
};

struct function_entry {
    const struct function *function;
    uint64_t hashes[3]; /* of name, system name and file */
};

struct block {
    struct hash_key key; /* of this block's tables only */
    struct arena *a;
    const struct idset *known;
    struct sortable *stacks;
    uint32_t n_stacks;
    struct entry *frames;               /* numbered as met while gathering */
    uint32_t n_frames, *order, *number; /* order[number] is a frame; number[frame] is its number + 1 once it has one */
    struct function_entry *functions;
    const struct mapping **mappings;
    uint32_t *frame_function, *frame_mapping; /* by number; the function's and mapping's numbers */
    uint32_t n_functions, n_mappings, n_strings;
    struct idmap frame_of, stack_of, function_of, mapping_of, string_of;
    struct buf lengths, bytes, rest; /* of strings; and all columns behind them */
    bool no_memory;
};

static void *need(struct block *b, void *p)
{
    b->no_memory |= !p;
    return p;
}
#define TAKE(b, type, n) ((type *)need((b), arena_alloc((b)->a, sizeof(type), _Alignof(type), (n) + (size_t)1)))

/* Its number in m, `next` if it is new; sets no_memory. */
static uint32_t add(struct block *b, struct idmap *m, uint64_t id, uint32_t next)
{
    uint32_t v = idmap_add(m, id, next);

    b->no_memory |= v == IDMAP_NONE;
    return v;
}

/* The stacks of one list that are new here and not stored; only their places, until it is known how many there are. */
static void gather_stacks(struct block *b, const struct symbols *s, uint32_t *refs)
{
    uint32_t *met = TAKE(b, uint32_t, s->n_frames);

    for (uint32_t i = 0; i < s->n_stacks && !b->no_memory; i++) {
        uint64_t id = s->stack_ids[i];
        uint32_t from = s->stack_at[i], n = s->stack_at[i + 1] - from;
        if (id == 0 || (b->known && idset_has(b->known, id)) || add(b, &b->stack_of, id, b->n_stacks) < b->n_stacks)
            continue;
        b->stacks[b->n_stacks++] = (struct sortable){id, refs + from, n};
        for (uint32_t j = from; j < from + n && !b->no_memory; j++) {
            uint32_t f = s->stack_frames[j];
            if (!met[f])
                met[f] = add(b, &b->frame_of, s->frame_ids[f], b->n_frames) + 1;
            if (met[f] == b->n_frames + 1)
                b->frames[b->n_frames++] = (struct entry){s, f, b->known && idset_has(b->known, s->frame_ids[f])};
            refs[j] = met[f] - 1;
        }
    }
}

static bool gather(struct block *b, const struct symbols *const *list, uint32_t n)
{
    size_t stacks = 0, frames = 0, refs = 0;

    for (uint32_t i = 0; i < n; i++) {
        stacks += list[i]->n_stacks;
        frames += list[i]->n_frames;
    }
    b->stacks = TAKE(b, struct sortable, stacks);
    b->frames = TAKE(b, struct entry, frames);
    for (uint32_t i = 0; i < n && !b->no_memory; i++) {
        refs = list[i]->n_stacks ? list[i]->stack_at[list[i]->n_stacks] : 0;
        uint32_t *space = TAKE(b, uint32_t, refs);
        if (!b->no_memory)
            gather_stacks(b, list[i], space);
    }
    return !b->no_memory;
}

static uint32_t shared(const struct sortable *x, const struct sortable *y)
{
    uint32_t n = x->n < y->n ? x->n : y->n, i = 0;

    while (i < n && x->refs[i] == y->refs[i])
        i++;
    return i;
}

/* One frame of the walk; `follows` is the slot of its caller. */
static void pack_ref(struct block *b, struct buf *out, uint32_t frame, uint32_t *follows)
{
    if (!b->number[frame]) {
        b->order[b->n_frames] = frame;
        b->number[frame] = ++b->n_frames;
        pack_raw_u64(out, REF_NEW);
    } else if (*follows == b->number[frame]) {
        pack_raw_u64(out, REF_FOLLOWS);
    } else {
        pack_raw_u64(out, (uint64_t)b->number[frame] - 1 + REF_OLD);
    }
    *follows = b->number[frame];
}

/* Walks the sorted stacks: numbers the frames, writes pops, pushes and refs. */
static void walk(struct block *b, struct buf *pops, struct buf *pushes, struct buf *refs)
{
    struct sortable none = {0}, *last = &none;
    uint32_t frames = b->n_frames, *follows = TAKE(b, uint32_t, (size_t)frames + 1);

    b->order = TAKE(b, uint32_t, frames);
    b->number = TAKE(b, uint32_t, frames);
    b->n_frames = 0;
    for (uint32_t i = 0; i < b->n_stacks && !b->no_memory; last = &b->stacks[i++]) {
        struct sortable *s = &b->stacks[i];
        uint32_t keep = shared(last, s);
        pack_u64(pops, last->n - keep);
        pack_u64(pushes, s->n - keep);
        if (!pack_room(refs, (size_t)(s->n - keep) * PACK_VARINT_MAX))
            b->no_memory = true;
        for (uint32_t j = keep; j < s->n && !b->no_memory; j++)
            pack_ref(b, refs, s->refs[j], &follows[j ? b->number[s->refs[j - 1]] : 0]);
    }
}

static const struct frame *frame_at(const struct block *b, uint32_t number)
{
    const struct entry *e = &b->frames[b->order[number]];
    return &e->of->frames[e->frame];
}

static uint64_t hash_str(const struct block *b, struct str s)
{
    return s.len ? hash64(&b->key, s.p, s.len) : 0;
}

static uint32_t function_number(struct block *b, const struct function *f)
{
    struct function_entry e = {f, {hash_str(b, f->name), hash_str(b, f->system_name), hash_str(b, f->file)}};
    uint64_t of[] = {e.hashes[0], e.hashes[1], e.hashes[2], (uint64_t)f->start_line};
    uint32_t n = add(b, &b->function_of, hash64(&b->key, of, sizeof of), b->n_functions);

    if (n == b->n_functions)
        b->functions[b->n_functions++] = e;
    return n;
}

static uint32_t mapping_number(struct block *b, const struct mapping *m)
{
    uint64_t of[] = {hash_str(b, m->file), hash_str(b, m->build_id), m->start, m->limit, m->offset};
    uint32_t n = add(b, &b->mapping_of, hash64(&b->key, of, sizeof of), b->n_mappings);

    if (n == b->n_mappings)
        b->mappings[b->n_mappings++] = m;
    return n;
}

/* The first column of frames; numbers functions and mappings on the way. */
static void pack_frame_kinds(struct block *b, struct buf *out)
{
    b->functions = TAKE(b, struct function_entry, b->n_frames);
    b->mappings = TAKE(b, const struct mapping *, b->n_frames);
    b->frame_function = TAKE(b, uint32_t, b->n_frames);
    b->frame_mapping = TAKE(b, uint32_t, b->n_frames);
    for (uint32_t i = 0; i < b->n_frames && !b->no_memory; i++) {
        const struct entry *e = &b->frames[b->order[i]];
        const struct frame *f = frame_at(b, i);
        uint32_t next = b->n_functions, n = PROFILE_NONE;
        if (!e->elsewhere && f->function != PROFILE_NONE)
            n = function_number(b, &e->of->functions[f->function]);
        if (!e->elsewhere && f->mapping != PROFILE_NONE)
            b->frame_mapping[i] = mapping_number(b, &e->of->mappings[f->mapping]) + 1;
        b->frame_function[i] = n;
        if (n == PROFILE_NONE)
            pack_u64(out, e->elsewhere ? FRAME_ELSEWHERE : FRAME_BARE);
        else
            pack_u64(out, n == next ? FRAME_NEW : (uint64_t)n + FRAME_OLD);
    }
}

static uint64_t line_code(const struct block *b, uint32_t i)
{
    uint32_t function = b->frame_function[i];
    uint64_t start = function == PROFILE_NONE ? 0 : (uint64_t)b->functions[function].function->start_line;
    return pack_zigzag((int64_t)((uint64_t)frame_at(b, i)->line - start));
}

static uint64_t mapping_code(const struct block *b, uint32_t i)
{
    return b->frame_mapping[i];
}

static uint64_t column_code(const struct block *b, uint32_t i)
{
    return pack_zigzag(frame_at(b, i)->column);
}

static uint64_t address_code(const struct block *b, uint32_t i)
{
    return frame_at(b, i)->address;
}

static uint64_t flags_code(const struct block *b, uint32_t i)
{
    return frame_at(b, i)->flags;
}

static void pack_frames(struct block *b, struct buf *out)
{
    static uint64_t (*const columns[])(const struct block *, uint32_t) = {mapping_code, line_code, column_code,
                                                                          address_code, flags_code};

    for (size_t c = 0; c < COUNTOF(columns); c++)
        for (uint32_t i = 0; i < b->n_frames; i++)
            if (!b->frames[b->order[i]].elsewhere)
                pack_u64(out, columns[c](b, i));
}

/* The code of s, which is put into the table where it is new. *last: the string before it in its column, + 1. */
static void pack_string(struct block *b, struct buf *out, struct str s, uint64_t hash, uint32_t *last)
{
    if (s.len == 0) {
        pack_u64(out, STRING_EMPTY);
        return;
    }
    uint32_t n = add(b, &b->string_of, hash, b->n_strings);
    if (n == b->n_strings) {
        b->n_strings++;
        pack_u64(&b->lengths, s.len);
        buf_add(&b->bytes, s.p, s.len);
        pack_u64(out, STRING_NEW);
    } else {
        pack_u64(out, n + 1 == *last ? STRING_LAST : (uint64_t)n + STRING_OLD);
    }
    *last = n + 1;
}

static void pack_mappings(struct block *b, struct buf *out)
{
    uint32_t last = 0;

    pack_u64(out, b->n_mappings);
    for (uint32_t i = 0; i < b->n_mappings; i++)
        pack_string(b, out, b->mappings[i]->file, hash_str(b, b->mappings[i]->file), &last);
    for (uint32_t i = 0; i < b->n_mappings; i++)
        pack_string(b, out, b->mappings[i]->build_id, hash_str(b, b->mappings[i]->build_id), &last);
    for (uint32_t i = 0; i < b->n_mappings; i++)
        pack_u64(out, b->mappings[i]->start);
    for (uint32_t i = 0; i < b->n_mappings; i++)
        pack_u64(out, b->mappings[i]->limit);
    for (uint32_t i = 0; i < b->n_mappings; i++)
        pack_u64(out, b->mappings[i]->offset);
}

static void pack_functions(struct block *b, struct buf *out)
{
    uint32_t last = 0, file = 0;

    pack_u64(out, b->n_functions);
    for (uint32_t i = 0; i < b->n_functions; i++)
        pack_string(b, out, b->functions[i].function->name, b->functions[i].hashes[0], &last);
    for (uint32_t i = 0; i < b->n_functions; i++) {
        last = idmap_get(&b->string_of, b->functions[i].hashes[0]) + 1;
        pack_string(b, out, b->functions[i].function->system_name, b->functions[i].hashes[1], &last);
    }
    for (uint32_t i = 0; i < b->n_functions; i++)
        pack_string(b, out, b->functions[i].function->file, b->functions[i].hashes[2], &file);
    for (uint32_t i = 0; i < b->n_functions; i++)
        pack_i64(out, b->functions[i].function->start_line);
}

static void pack_table(struct buf *out, const struct block *b)
{
    pack_u64(out, b->n_strings);
    buf_str(out, buf_view(&b->lengths));
    buf_str(out, buf_view(&b->bytes));
    buf_str(out, buf_view(&b->rest));
}

/* Everything behind the ids. Frames are walked before functions are known, functions before strings; written the other
 * way. */
static bool pack_columns(struct block *b, struct buf *out)
{
    struct buf pops = {0}, pushes = {0}, refs = {0}, frames = {0};

    walk(b, &pops, &pushes, &refs);
    if (!b->no_memory)
        pack_frame_kinds(b, &frames);
    if (!b->no_memory) {
        pack_frames(b, &frames);
        pack_mappings(b, &b->rest);
        pack_functions(b, &b->rest);
        buf_str(&b->rest, buf_view(&frames));
        buf_str(&b->rest, buf_view(&pops));
        buf_str(&b->rest, buf_view(&pushes));
        buf_str(&b->rest, buf_view(&refs));
        pack_table(out, b);
    }
    bool ok = !b->no_memory && !b->lengths.failed && !b->bytes.failed && !b->rest.failed && !frames.failed &&
              !pops.failed && !pushes.failed && !refs.failed && !out->failed;
    buf_free(&pops);
    buf_free(&pushes);
    buf_free(&refs);
    buf_free(&frames);
    return ok;
}

static bool pack_all_ids(struct block *b, struct idset *fresh, struct buf *out)
{
    uint32_t n = b->n_frames > b->n_stacks ? b->n_frames : b->n_stacks;
    uint64_t *ids = TAKE(b, uint64_t, n);
    bool ok = ids;

    buf_add(out, SYMBLOCK_MAGIC, SYMBLOCK_MAGIC_BYTES);
    for (uint32_t i = 0; ok && i < b->n_frames; i++) {
        const struct entry *e = &b->frames[b->order[i]];
        ids[i] = e->of->frame_ids[e->frame];
        ok = e->elsewhere || idset_add(fresh, ids[i]);
    }
    pack_u64(out, b->n_frames);
    if (ok)
        pack_ids(out, ids, b->n_frames);
    for (uint32_t i = 0; ok && i < b->n_stacks; i++) {
        ids[i] = b->stacks[i].id;
        ok = idset_add(fresh, ids[i]);
    }
    pack_u64(out, b->n_stacks);
    if (ok)
        pack_ids(out, ids, b->n_stacks);
    return ok && !out->failed;
}

static void block_free(struct block *b)
{
    idmap_free(&b->frame_of);
    idmap_free(&b->stack_of);
    idmap_free(&b->function_of);
    idmap_free(&b->mapping_of);
    idmap_free(&b->string_of);
    buf_free(&b->lengths);
    buf_free(&b->bytes);
    buf_free(&b->rest);
    arena_free(b->a);
}

bool symbols_block(const struct symbols *const *list, uint32_t n, const struct idset *known, struct idset *fresh,
                   struct buf *out)
{
    struct block b = {.a = arena_new(SIZE_MAX), .known = known};
    struct buf columns = {0};
    bool ok = b.a && gather(&b, list, n);

    if (ok && b.n_stacks) {
        hash_key_random(&b.key);
        stacksort(b.stacks, b.n_stacks);
        ok = pack_columns(&b, &columns) && pack_all_ids(&b, fresh, out) &&
             zstd_pack(buf_view(&columns), SYMBLOCK_ZSTD_LEVEL, out);
    }
    buf_free(&columns);
    block_free(&b);
    return ok;
}
