/* Turns stack ids into functions: every frame is looked at once, every function gets one row, every sample is charged
 * exactly. */
#include "gateway/query/stacks.h"

#include <stdlib.h>

struct known_frame {
    const struct symframe *frame; /* NULL: a free slot */
    uint32_t fn;
    bool own;
};

enum { FIRST_SLOTS = 1024, FIRST_PATH = 256 };

static void place_fn(const struct ask *a, const struct fn *fns, uint32_t i, uint32_t *slots, uint32_t n)
{
    uint64_t at = identity_hash(&fns[i].id, &a->key);
    while (slots[at & (n - 1)] != STACK_NONE)
        at++;
    slots[at & (n - 1)] = i;
}

static enum err grow_slots(struct stacks *s)
{
    uint32_t n = s->n_slots ? s->n_slots * 2 : FIRST_SLOTS;
    uint32_t *slots = NEW(s->ask->arena, uint32_t, n);
    if (!slots)
        return ask_no_memory(s->ask);
    memset(slots, 0xff, n * sizeof(*slots));
    for (uint32_t i = 0; i < s->n_fns; i++)
        place_fn(s->ask, s->fns, i, slots, n);
    s->slots = slots;
    s->n_slots = n;
    return E_OK;
}

static enum err add_fn(struct stacks *s, const struct fn *f, uint32_t *out)
{
    if (s->n_fns == s->cap_fns) {
        uint32_t cap = s->cap_fns ? s->cap_fns * 2 : FIRST_SLOTS;
        struct fn *fns = GROW(s->ask->arena, s->fns, struct fn, s->cap_fns, cap);
        if (!fns)
            return ask_no_memory(s->ask);
        s->fns = fns;
        s->cap_fns = cap;
    }
    if (s->n_fns * 2 >= s->n_slots && grow_slots(s) != E_OK)
        return s->ask->fault.err;
    *out = s->n_fns++;
    s->fns[*out] = *f;
    place_fn(s->ask, s->fns, *out, s->slots, s->n_slots);
    return E_OK;
}

/* The row of an identity, made where there is none. */
static enum err intern(struct stacks *s, const struct fn *f, uint32_t *out)
{
    uint64_t at = identity_hash(&f->id, &s->ask->key);
    for (; s->n_slots && s->slots[at & (s->n_slots - 1)] != STACK_NONE; at++) {
        *out = s->slots[at & (s->n_slots - 1)];
        if (identity_eq(&s->fns[*out].id, &f->id))
            return E_OK;
    }
    return add_fn(s, f, out);
}

static enum err describe(struct stacks *s, const struct symframe *frame, struct fn *f)
{
    const struct function *fun = frame->function;
    char text[IDENTITY_TEXT];
    *f = (struct fn){.id = identity_of(fun, frame->mapping, frame->address, text)};
    if (fun)
        f->line = fun->start_line > 0 ? fun->start_line : frame->line;
    else if (!arena_str(s->ask->arena, f->id.name, &f->id.name))
        return ask_no_memory(s->ask);
    return E_OK;
}

static enum err learn(struct stacks *s, const struct symframe *frame, struct known_frame *k)
{
    struct fn f;
    enum err e = describe(s, frame, &f);
    if (e == E_OK)
        e = intern(s, &f, &k->fn);
    if (e)
        return e;
    struct fn *row = &s->fns[k->fn];
    k->frame = frame;
    if (f.line > 0 && (row->line <= 0 || f.line < row->line))
        row->line = f.line;
    return E_OK;
}

static struct place place_of(const struct stacks *s, const struct known_frame *k)
{
    const struct identity *id = &s->fns[k->fn].id;
    return (struct place){id->name, id->file, k->frame->mapping ? k->frame->mapping->file : (struct str){NULL, 0}};
}

/* The language of frames that do not show it: of the agent; else of most frames, where they are all of one service. */
static enum language common_language(const struct stacks *s)
{
    uint32_t votes[LANG_COUNT] = {0};
    enum language most = rules_agent_language(s->g->spy);
    if (most != LANG_ANY || s->g->n_services != 1)
        return most;
    for (uint32_t i = 0; i < s->cap_known; i++) {
        if (!s->known[i].frame)
            continue;
        struct place p = place_of(s, &s->known[i]);
        votes[rules_language(&p, LANG_ANY)]++;
    }
    votes[LANG_ANY] = votes[LANG_NATIVE] = 0;
    for (enum language l = LANG_ANY; l < LANG_COUNT; l++)
        if (votes[l] > votes[most])
            most = l;
    return most;
}

/* Says of every frame whether it is own code, once all are known. */
static void judge(struct stacks *s)
{
    enum language common = common_language(s);
    for (uint32_t i = 0; i < s->cap_known; i++) {
        struct known_frame *k = &s->known[i];
        if (!k->frame || !k->frame->function || k->frame->flags & FRAME_FOLDED)
            continue;
        struct place p = place_of(s, k);
        k->own = rules_owner(&p, rules_language(&p, common)) == OWNER_OWN;
        s->fns[k->fn].own_code = s->fns[k->fn].own_code || k->own;
    }
}

/* Addresses of frames are ours, not a client's: plain mixing will do. */
static struct known_frame *frame_slot(struct known_frame *table, uint32_t cap, const struct symframe *frame)
{
    uint64_t at = (uint64_t)(uintptr_t)frame * UINT64_C(0x9e3779b97f4a7c15) >> 20;
    while (table[at & (cap - 1)].frame && table[at & (cap - 1)].frame != frame)
        at++;
    return &table[at & (cap - 1)];
}

static enum err grow_known(struct stacks *s)
{
    uint32_t cap = s->cap_known ? s->cap_known * 2 : FIRST_SLOTS;
    struct known_frame *table = NEW(s->ask->arena, struct known_frame, cap);
    if (!table)
        return ask_no_memory(s->ask);
    for (uint32_t i = 0; i < s->cap_known; i++)
        if (s->known[i].frame)
            *frame_slot(table, cap, s->known[i].frame) = s->known[i];
    s->known = table;
    s->cap_known = cap;
    return E_OK;
}

static enum err resolve(struct stacks *s, const struct symframe *frame, uint32_t *fn, bool *own)
{
    struct known_frame *k = frame_slot(s->known, s->cap_known, frame);
    if (!k->frame) {
        if (s->n_known * 2 >= s->cap_known && grow_known(s) != E_OK)
            return s->ask->fault.err;
        k = frame_slot(s->known, s->cap_known, frame);
        if (learn(s, frame, k) != E_OK)
            return s->ask->fault.err;
        s->n_known++;
    }
    *fn = k->fn;
    *own = k->own;
    return E_OK;
}

static enum err grow_path(struct stacks *s, uint32_t need)
{
    uint32_t cap = s->cap_path ? s->cap_path : FIRST_PATH;
    while (cap < need)
        cap *= 2;
    s->frames = GROW(s->ask->arena, s->frames, const struct symframe *, s->cap_path, cap);
    s->path = GROW(s->ask->arena, s->path, uint32_t, s->cap_path, cap);
    if (!s->frames || !s->path)
        return ask_no_memory(s->ask);
    s->cap_path = cap;
    return E_OK;
}

/* A stack without frames is a row of its own; so is one whose definition is lost. */
static enum err lone(struct stacks *s, const char *name, struct stack *out)
{
    out->n = 1;
    out->own = STACK_NONE;
    return intern(s, &(struct fn){.id = identity_lone(name)}, &s->path[0]);
}

static enum err fill(struct stacks *s, uint64_t id, struct stack *out)
{
    uint32_t n = id ? symtab_stack(s->g->symtab, id, s->frames, s->cap_path) : 0;
    if (n == SYMTAB_UNKNOWN)
        return lone(s, "[unknown]", out);
    if (n == 0)
        return lone(s, "[no stack]", out);
    if (n > s->cap_path) {
        enum err e = grow_path(s, n);
        if (e)
            return e;
        n = symtab_stack(s->g->symtab, id, s->frames, s->cap_path);
    }
    out->n = n;
    out->own = STACK_NONE;
    for (uint32_t i = 0; i < n; i++) {
        bool own = false;
        if (resolve(s, s->frames[i], &s->path[i], &own) != E_OK)
            return s->ask->fault.err;
        if (own)
            out->own = i;
    }
    return E_OK;
}

enum err stacks_walk(struct stacks *s, stack_visit visit, void *ctx)
{
    const struct merged *m = s->g->merged;
    for (uint32_t r = 0; m && m->n_types && r < m->n_rows; r++) {
        struct stack stack = {.value = m->values[0][r]};
        enum err e = ask_alive(s->ask);
        if (e == E_OK && stack.value != 0) {
            e = fill(s, m->stack[r], &stack);
            stack.fn = s->path;
            if (e == E_OK)
                e = visit(ctx, &stack);
        }
        if (e)
            return e;
    }
    return E_OK;
}

static enum err no_visit(void *ctx, const struct stack *st)
{
    (void)ctx;
    (void)st;
    return E_OK;
}

/* Functions that only the minutes know. */
static enum err meet_shared(struct stacks *s)
{
    const struct minutes *m = &s->g->minutes;
    const struct symframe *frame;
    enum err e = E_OK;
    for (size_t i = 0; e == E_OK && (frame = symtab_frame(s->g->symtab, i)); i++) {
        char text[IDENTITY_TEXT];
        struct identity id = identity_of(frame->function, frame->mapping, frame->address, text);
        uint32_t fn;
        bool own;
        e = ask_alive(s->ask);
        if (e == E_OK && minutes_find(m, &id))
            e = resolve(s, frame, &fn, &own);
    }
    struct identity none = identity_lone("[no stack]");
    if (e == E_OK && minutes_find(m, &none))
        e = intern(s, &(struct fn){.id = none}, &s->path[0]);
    return e;
}

enum err stacks_open(struct stacks *s, struct ask *a, const struct gathered *g)
{
    *s = (struct stacks){.ask = a, .g = g};
    enum err e = grow_known(s);
    if (e == E_OK)
        e = grow_path(s, FIRST_PATH);
    if (e == E_OK)
        e = stacks_walk(s, no_visit, NULL);
    if (e == E_OK && g->minutes.used && g->symtab)
        e = meet_shared(s);
    judge(s);
    return e;
}

static enum err charge(void *ctx, const struct stack *st)
{
    struct stacks *s = ctx;
    bool over = false;
    struct fn *leaf = &s->fns[st->fn[st->n - 1]];
    leaf->self = add_sat(leaf->self, st->value, &over);
    s->mark++;
    for (uint32_t i = 0; i < st->n; i++) {
        struct fn *f = &s->fns[st->fn[i]];
        if (f->mark == s->mark)
            continue;
        f->mark = s->mark;
        f->total = add_sat(f->total, st->value, &over);
    }
    int64_t *own = st->own == STACK_NONE ? &s->no_own_code : &s->fns[st->fn[st->own]].own;
    *own = add_sat(*own, st->value, &over);
    return E_OK;
}

/* Shares whose function no block defines any more belong to [unknown], so that sums stay whole. */
static enum err charge_shares(struct stacks *s)
{
    int64_t left = s->g->minutes.total;
    bool over = false;
    for (uint32_t i = 0; i < s->n_fns; i++) {
        const struct share *share = minutes_find(&s->g->minutes, &s->fns[i].id);
        if (!share)
            continue;
        s->fns[i].self = add_sat(s->fns[i].self, share->self, &over);
        s->fns[i].total = add_sat(s->fns[i].total, share->total, &over);
        left -= share->self;
    }
    if (left == 0)
        return E_OK;
    uint32_t fn;
    enum err e = intern(s, &(struct fn){.id = identity_lone("[unknown]")}, &fn);
    if (e)
        return e;
    s->fns[fn].self = add_sat(s->fns[fn].self, left, &over);
    s->fns[fn].total = add_sat(s->fns[fn].total, left, &over);
    return E_OK;
}

enum err stacks_charge(struct stacks *s)
{
    enum err e = stacks_walk(s, charge, s);
    return e || !s->g->minutes.used ? e : charge_shares(s);
}

static int64_t fn_value(const struct fn *f, enum stack_key key)
{
    return key == KEY_SELF ? f->self : key == KEY_TOTAL ? f->total : f->own;
}

struct ranking {
    const struct fn *fns;
    enum stack_key key;
};

static int compare_fns(const void *a, const void *b, void *ctx)
{
    const struct ranking *r = ctx;
    const struct fn *x = &r->fns[*(const uint32_t *)a], *y = &r->fns[*(const uint32_t *)b];
    int64_t vx = fn_value(x, r->key), vy = fn_value(y, r->key);
    if (vx != vy)
        return vx > vy ? -1 : 1;
    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    int c = str_cmp(x->id.name, y->id.name);
    return c ? c : str_cmp(x->id.file, y->id.file);
}

uint32_t *stacks_rank(struct stacks *s, enum stack_key key)
{
    uint32_t *order = NEW(s->ask->arena, uint32_t, s->n_fns + 1);
    struct ranking r = {s->fns, key};
    if (!order) {
        (void)ask_no_memory(s->ask);
        return NULL;
    }
    for (uint32_t i = 0; i < s->n_fns; i++)
        order[i] = i;
    if (s->n_fns > 1)
        qsort_r(order, s->n_fns, sizeof(*order), compare_fns, &r);
    return order;
}
