/* Reading a block of symbols (codecs/symblock.h) into the table. Total: a block that does not hold leaves no id behind.
 */
#include "codecs/pack.h"
#include "codecs/symblock.h"
#include "codecs/symtab.h"
#include "codecs/zstd.h"

#include <stdlib.h>

/* A block unpacks to less than this, or is not ours. */
#define UNPACKED_MAX ((size_t)512 << 20)

struct reading {
    struct symtab *t;
    struct unpack u;
    struct str *strings;
    struct mapping *mappings;
    struct function *functions;
    struct symframe *frames;
    uint64_t *frame_ids, *stack_ids;
    bool *elsewhere;
    uint32_t *leaves; /* node of each stack */
    uint32_t n_strings, n_mappings, n_functions, n_frames, n_stacks, next_string;
    struct arena *a; /* what only the reading needs */
    bool no_memory;
};

static void *need(struct reading *r, void *p)
{
    r->no_memory |= !p;
    return p;
}
#define TAKE(r, a, type, n) ((type *)need((r), arena_alloc((a), sizeof(type), _Alignof(type), (n) + (size_t)1)))

static bool going(const struct reading *r)
{
    return !r->no_memory && !r->u.bad;
}

/* An array on malloc with room for n + more elements. */
static bool room(struct reading *r, void **p, size_t size, size_t n, size_t *cap, size_t more)
{
    if (more <= *cap - n)
        return true;
    size_t want = *cap * 2 > n + more ? *cap * 2 : n + more;
    void *grown = realloc(*p, want * size);
    if (!need(r, grown))
        return false;
    *p = grown;
    *cap = want;
    return true;
}

static void take_strings(struct reading *r)
{
    uint64_t total = 0;

    r->n_strings = unpack_count(&r->u, 2);
    r->strings = TAKE(r, r->a, struct str, r->n_strings);
    for (uint32_t i = 0; i < r->n_strings && going(r); i++) {
        r->strings[i].len = unpack_below(&r->u, UINT32_MAX);
        total += r->strings[i].len;
    }
    struct str bytes = unpack_bytes(&r->u, total);
    if (!going(r) || !arena_str(r->t->a, bytes, &bytes)) {
        r->no_memory |= !r->u.bad;
        return;
    }
    for (uint32_t i = 0; i < r->n_strings; i++) {
        r->strings[i].p = bytes.p;
        bytes.p += r->strings[i].len;
    }
}

static struct str take_string(struct reading *r, struct str last)
{
    uint32_t code = unpack_below(&r->u, (uint64_t)r->n_strings + STRING_OLD);

    if (code == STRING_LAST)
        return last;
    if (code >= STRING_OLD)
        return r->strings[code - STRING_OLD];
    if (code == STRING_NEW && r->next_string < r->n_strings)
        return r->strings[r->next_string++];
    r->u.bad |= code == STRING_NEW;
    return (struct str){"", 0};
}

/* The string that LAST means afterwards: empty ones are skipped, as the writer does. */
static struct str take_next(struct reading *r, struct str *last)
{
    struct str s = take_string(r, *last);

    if (s.len)
        *last = s;
    return s;
}

static void take_mappings(struct reading *r)
{
    struct str last = {"", 0};
    uint32_t n = r->n_mappings = unpack_count(&r->u, 5);
    struct mapping *m = r->mappings = TAKE(r, r->t->a, struct mapping, n);

    if (!going(r))
        return;
    for (uint32_t i = 0; i < n; i++)
        m[i].file = take_next(r, &last);
    for (uint32_t i = 0; i < n; i++)
        m[i].build_id = take_next(r, &last);
    for (uint32_t i = 0; i < n; i++)
        m[i].start = unpack_u64(&r->u);
    for (uint32_t i = 0; i < n; i++)
        m[i].limit = unpack_u64(&r->u);
    for (uint32_t i = 0; i < n; i++)
        m[i].offset = unpack_u64(&r->u);
}

static void take_functions(struct reading *r)
{
    struct str last = {"", 0}, file = last;
    uint32_t n = r->n_functions = unpack_count(&r->u, 4);
    struct function *f = r->functions = TAKE(r, r->t->a, struct function, n);

    if (!going(r))
        return;
    for (uint32_t i = 0; i < n; i++)
        f[i].name = take_next(r, &last);
    for (uint32_t i = 0; i < n; i++)
        f[i].system_name = take_string(r, f[i].name);
    for (uint32_t i = 0; i < n; i++)
        f[i].file = take_next(r, &file);
    for (uint32_t i = 0; i < n; i++)
        f[i].start_line = unpack_i64(&r->u);
}

static void take_frame_kinds(struct reading *r)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < r->n_frames && going(r); i++) {
        uint32_t code = unpack_below(&r->u, (uint64_t)next + FRAME_OLD);
        r->elsewhere[i] = code == FRAME_ELSEWHERE;
        if (code == FRAME_NEW && next == r->n_functions)
            r->u.bad = true;
        else if (code == FRAME_NEW)
            r->frames[i].function = &r->functions[next++];
        else if (code >= FRAME_OLD)
            r->frames[i].function = &r->functions[code - FRAME_OLD];
    }
}

static void take_mapping(struct reading *r, struct symframe *f)
{
    uint32_t code = unpack_below(&r->u, (uint64_t)r->n_mappings + 1);
    f->mapping = code ? &r->mappings[code - 1] : NULL;
}

static void take_line(struct reading *r, struct symframe *f)
{
    uint64_t start = f->function ? (uint64_t)f->function->start_line : 0;
    f->line = (int64_t)((uint64_t)unpack_i64(&r->u) + start);
}

static void take_column(struct reading *r, struct symframe *f)
{
    f->column = unpack_i64(&r->u);
}

static void take_address(struct reading *r, struct symframe *f)
{
    f->address = unpack_u64(&r->u);
}

static void take_flags(struct reading *r, struct symframe *f)
{
    f->flags = unpack_below(&r->u, UINT64_MAX);
}

static void take_frames(struct reading *r)
{
    static void (*const columns[])(struct reading *, struct symframe *) = {take_mapping, take_line, take_column,
                                                                           take_address, take_flags};

    r->frames = TAKE(r, r->t->a, struct symframe, r->n_frames);
    r->elsewhere = TAKE(r, r->a, bool, r->n_frames);
    if (!going(r))
        return;
    take_frame_kinds(r);
    for (size_t c = 0; c < COUNTOF(columns); c++)
        for (uint32_t i = 0; i < r->n_frames && going(r); i++)
            if (!r->elsewhere[i])
                columns[c](r, &r->frames[i]);
}

/* The three columns of stacks, read side by side. */
struct paths {
    struct unpack pops, pushes;
    uint32_t *follows; /* by frame of the block + 1; 0 is the root's */
    uint32_t next;     /* frame that nobody used yet */
    uint32_t leaf;     /* node of the stack before */
};

static uint32_t take_ref(struct reading *r, struct paths *p, uint32_t caller1)
{
    uint32_t code = unpack_below(&r->u, (uint64_t)p->next + REF_OLD), frame;

    if (code == REF_NEW)
        frame = p->next++;
    else if (code == REF_FOLLOWS)
        frame = p->follows[caller1] - 1;
    else
        frame = code - REF_OLD;
    if (frame >= r->n_frames) {
        r->u.bad = true;
        return 0;
    }
    p->follows[caller1] = frame + 1;
    return frame;
}

static void take_stack(struct reading *r, struct paths *p)
{
    struct symtab *t = r->t;
    uint64_t pops = unpack_u64(&p->pops), pushes = unpack_u64(&p->pushes);

    for (; pops && p->leaf != NODE_NONE; pops--)
        p->leaf = t->nodes[p->leaf].parent;
    if (pops || pushes > (size_t)(r->u.end - r->u.p) || t->n_nodes + pushes >= NODE_NONE) {
        r->u.bad = true;
        return;
    }
    void *nodes = t->nodes;
    bool ok = room(r, &nodes, sizeof *t->nodes, t->n_nodes, &t->nodes_cap, pushes);
    t->nodes = nodes;
    for (; ok && pushes && going(r); pushes--) {
        struct node *up = p->leaf == NODE_NONE ? NULL : &t->nodes[p->leaf];
        uint32_t frame = take_ref(r, p, up ? up->frame + 1 : 0);
        t->nodes[t->n_nodes] = (struct node){p->leaf, frame, up ? up->depth + 1 : 1};
        p->leaf = (uint32_t)t->n_nodes++;
    }
}

static struct unpack skip_varints(struct reading *r, uint32_t n)
{
    struct unpack column = r->u;

    for (uint32_t i = 0; i < n; i++)
        unpack_u64(&r->u);
    return column;
}

/* Only stack 0 is empty, and it is in no block. */
static void take_stacks(struct reading *r)
{
    struct paths p = {.leaf = NODE_NONE};

    p.pops = skip_varints(r, r->n_stacks);
    p.pushes = skip_varints(r, r->n_stacks);
    p.follows = TAKE(r, r->a, uint32_t, r->n_frames);
    r->leaves = TAKE(r, r->a, uint32_t, r->n_stacks);
    for (uint32_t i = 0; i < r->n_stacks && going(r); i++) {
        take_stack(r, &p);
        r->leaves[i] = p.leaf;
        r->u.bad |= p.leaf == NODE_NONE;
    }
    r->u.bad |= p.next != r->n_frames || r->next_string != r->n_strings || r->u.p != r->u.end;
}

/* Frame numbers of the table for those of the block; a definition that the table lacks is put in. */
static bool unify_frames(struct reading *r, uint32_t *number)
{
    struct symtab *t = r->t;
    void *frames = t->frames;
    bool ok = room(r, &frames, sizeof *t->frames, t->n_frames, &t->frames_cap, r->n_frames) &&
              idmap_reserve(&t->frame_of, r->n_frames) && idmap_reserve(&t->stack_of, r->n_stacks);

    t->frames = frames;
    for (uint32_t i = 0; ok && i < r->n_frames; i++) {
        number[i] = idmap_add(&t->frame_of, r->frame_ids[i], (uint32_t)t->n_frames);
        if (number[i] == t->n_frames)
            t->frames[t->n_frames++] = NULL;
        if (!t->frames[number[i]] && !r->elsewhere[i])
            t->frames[number[i]] = &r->frames[i];
    }
    return ok;
}

/* Everything was read and holds: now it gets its ids. Memory for all of it is there before the first one. */
static bool publish(struct reading *r, size_t first_node)
{
    struct symtab *t = r->t;
    uint32_t *number = TAKE(r, r->a, uint32_t, r->n_frames);

    if (!number || t->n_frames + r->n_frames >= IDMAP_NONE || !unify_frames(r, number))
        return false;
    for (size_t i = first_node; i < t->n_nodes; i++)
        t->nodes[i].frame = number[t->nodes[i].frame];
    for (uint32_t i = 0; i < r->n_stacks; i++)
        if (idmap_add(&t->stack_of, r->stack_ids[i], r->leaves[i]) == IDMAP_NONE)
            return false;
    return true;
}

static enum err read_columns(struct reading *r, struct fault *f)
{
    size_t first_node = r->t->n_nodes;

    take_strings(r);
    if (going(r))
        take_mappings(r);
    if (going(r))
        take_functions(r);
    if (going(r))
        take_frames(r);
    if (going(r))
        take_stacks(r);
    if (going(r) && publish(r, first_node))
        return E_OK;
    r->t->n_nodes = first_node;
    if (r->no_memory || !r->u.bad)
        return fault_set(f, E_NO_MEMORY, NULL);
    return fault_set(f, E_BAD_INPUT, "not a block of symbols of ours: its columns do not hold");
}

static uint64_t *take_ids(struct reading *r, uint32_t *n)
{
    *n = unpack_count(&r->u, 8);
    uint64_t *ids = TAKE(r, r->a, uint64_t, *n);
    if (ids)
        unpack_ids(&r->u, ids, *n);
    return ids;
}

/* Whether the block has a stack that is wanted, or defines (perhaps) a frame that so far was only named. */
static bool of_use(const struct reading *r)
{
    const struct symtab *t = r->t;

    if (!t->wanted)
        return true;
    for (uint32_t i = 0; i < r->n_stacks; i++)
        if (idset_has(t->wanted, r->stack_ids[i]) && idmap_get(&t->stack_of, r->stack_ids[i]) == IDMAP_NONE)
            return true;
    for (uint32_t i = 0; i < r->n_frames; i++) {
        uint32_t number = idmap_get(&t->frame_of, r->frame_ids[i]);
        if (number != IDMAP_NONE && !t->frames[number])
            return true;
    }
    return false;
}

static enum err read_block(struct reading *r, struct buf *columns, struct fault *f)
{
    struct str magic = unpack_bytes(&r->u, SYMBLOCK_MAGIC_BYTES);

    if (!str_eq(magic, (struct str){SYMBLOCK_MAGIC, SYMBLOCK_MAGIC_BYTES}))
        return fault_set(f, E_BAD_INPUT, "not a block of symbols of ours: unknown magic or version");
    r->frame_ids = take_ids(r, &r->n_frames);
    r->stack_ids = take_ids(r, &r->n_stacks);
    if (r->no_memory)
        return fault_set(f, E_NO_MEMORY, NULL);
    struct str frame = {(const char *)r->u.p, (size_t)(r->u.end - r->u.p)};
    if (r->u.bad)
        return fault_set(f, E_BAD_INPUT, "not a block of symbols of ours: ids are cut short");
    if (!of_use(r))
        return E_OK;
    if (!zstd_unpack(frame, UNPACKED_MAX, columns))
        return columns->failed ? fault_set(f, E_NO_MEMORY, NULL)
                               : fault_set(f, E_BAD_INPUT, "not a block of symbols of ours: it does not unpack");
    r->u = unpack_of(buf_view(columns));
    return read_columns(r, f);
}

enum err symtab_add(struct symtab *t, struct str block, struct fault *f)
{
    struct reading r = {.t = t, .u = unpack_of(block), .a = arena_new(SIZE_MAX)};
    struct buf columns = {0};

    if (!r.a)
        return fault_set(f, E_NO_MEMORY, NULL);
    enum err e = read_block(&r, &columns, f);
    buf_free(&columns);
    arena_free(r.a);
    return e;
}
