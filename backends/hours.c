/* The driver: an hour's profiles, through the ordinary reader, into rows that were read back before they are handed on.
 */
#include "backends/hours.h"

#include <stdlib.h>

#include "backends/hour_group.h"
#include "codecs/shares.h"

/* A merge may pass the bound by one profile; more than this it never takes. */
static const size_t MERGE_MAX_BYTES = (size_t)1 << 30;

/* Exact sums over profiles, or over rows: equal ones mean that nothing was lost, added or changed. */
struct hour_sums {
    uint64_t profiles, samples, check, rows;
    int64_t duration_ns;
    struct type_sum {
        struct str id;
        int64_t total;
    } * types;
    uint32_t n_types, cap_types;
    bool over;
};

struct packed_row {
    struct buf about, body;
    struct hour_row row;
};

struct compacting {
    const struct backend *backend;
    struct sample_store *store;
    const struct hash_key *key;
    const struct hour_todo *todo;
    size_t memory, held; /* of all merges */
    struct arena *arena;
    struct buf scratch;
    struct hour_group *groups;
    uint32_t n_groups, cap_groups;
    struct idmap group_at; /* hash of the key -> place */
    struct packed_row *rows;
    uint32_t n_rows, cap_rows;
    struct hour_sums merged, raw; /* of the profiles that were merged; of a second look at all */
    struct hour_result *result;
    struct fault *f;
    const atomic_bool *cancel;
};

static enum err no_memory(struct compacting *c)
{
    return fault_set(c->f, E_NO_MEMORY, NULL);
}

static enum err add_total(struct compacting *c, struct hour_sums *sums, struct str id, int64_t total)
{
    struct type_sum *t = sums->types;
    uint32_t i = 0;

    while (i < sums->n_types && !str_eq(t[i].id, id))
        i++;
    if (i == sums->cap_types) {
        uint32_t cap = i ? i * 2 : 8;
        t = sums->types = GROW(c->arena, t, struct type_sum, i, cap);
        if (!t)
            return no_memory(c);
        sums->cap_types = cap;
    }
    if (i == sums->n_types) {
        if (!arena_str(c->arena, id, &t[i].id))
            return no_memory(c);
        sums->n_types++;
    }
    t[i].total = add_sat(t[i].total, total, &sums->over);
    return E_OK;
}

static enum err add_sums(struct compacting *c, struct hour_sums *sums, const struct stored *s, uint64_t check)
{
    enum err e = E_OK;

    sums->rows++;
    sums->profiles += s->n_profiles;
    sums->samples += s->n_samples;
    sums->check += check;
    sums->duration_ns = add_sat(sums->duration_ns, s->duration_ns > 0 ? s->duration_ns : 0, &sums->over);
    for (uint32_t i = 0; !e && i < s->n_types; i++)
        e = add_total(c, sums, s->types[i].id, s->types[i].total);
    return e;
}

static bool same_sums(const struct hour_sums *a, const struct hour_sums *b)
{
    if (a->profiles != b->profiles || a->samples != b->samples || a->check != b->check ||
        a->duration_ns != b->duration_ns || a->over || b->over || a->n_types != b->n_types)
        return false;
    for (uint32_t i = 0, j; i < a->n_types; i++) {
        for (j = 0; j < b->n_types && !str_eq(a->types[i].id, b->types[j].id); j++)
            continue;
        if (j == b->n_types || a->types[i].total != b->types[j].total)
            return false;
    }
    return true;
}

static struct packed_row *add_row(struct compacting *c)
{
    if (c->n_rows == c->cap_rows) {
        uint32_t cap = c->cap_rows ? c->cap_rows * 2 : 16;
        struct packed_row *rows = realloc(c->rows, cap * sizeof *rows);

        if (!rows)
            return NULL;
        c->rows = rows;
        c->cap_rows = cap;
    }
    c->rows[c->n_rows] = (struct packed_row){0};
    return &c->rows[c->n_rows++];
}

static enum err pack_group(struct compacting *c, struct hour_group *g)
{
    struct packed_row *r = add_row(c);
    enum err e = r ? hour_group_pack(g, c->todo->hour, &r->about, &r->body, c->arena, c->f) : no_memory(c);

    if (!e)
        r->row = (struct hour_row){
            .class_days = g->sum.class_days,
            .first_ns = g->sum.time_ns,
            .first = g->sum.attempt,
            .about = buf_view(&r->about),
            .body = buf_view(&r->body),
        };
    return e;
}

static void close_groups(struct compacting *c)
{
    while (c->n_groups)
        hour_group_close(&c->groups[--c->n_groups]);
    idmap_free(&c->group_at);
    c->held = 0;
}

/* All groups become rows; what comes next begins new ones. */
static enum err pack_groups(struct compacting *c)
{
    enum err e = E_OK;

    for (uint32_t i = 0; !e && i < c->n_groups; i++)
        e = pack_group(c, &c->groups[i]);
    close_groups(c);
    return e;
}

static enum err new_group(struct compacting *c, struct str key, const struct stored *s)
{
    enum err e;

    if (c->n_groups == c->cap_groups) {
        uint32_t cap = c->cap_groups ? c->cap_groups * 2 : 16;
        struct hour_group *groups = realloc(c->groups, cap * sizeof *groups);

        if (!groups)
            return no_memory(c);
        c->groups = groups;
        c->cap_groups = cap;
    }
    e = hour_group_open(&c->groups[c->n_groups], key, s, MERGE_MAX_BYTES, c->arena, c->f);
    c->held += c->groups[c->n_groups].merge ? merge_bytes(c->groups[c->n_groups].merge) : 0;
    c->n_groups++;
    return e;
}

static enum err find_group(struct compacting *c, const struct stored *s, struct hour_group **out)
{
    struct str key;
    uint32_t place;
    enum err e = E_OK;

    c->scratch.len = 0;
    hour_group_key(s, &c->scratch);
    key = buf_view(&c->scratch);
    place = c->scratch.failed ? IDMAP_NONE : idmap_add(&c->group_at, hash64(c->key, key.p, key.len), c->n_groups);
    if (place == IDMAP_NONE)
        return no_memory(c);
    if (place == c->n_groups)
        e = new_group(c, key, s);
    if (e)
        return e;
    *out = &c->groups[place];
    return str_eq((*out)->key, key) ? E_OK : fault_set(c->f, E_INTERNAL, "two groups of one hash");
}

static enum err on_profile(void *ctx, const struct stored *s)
{
    struct compacting *c = ctx;
    struct hour_group *g = NULL;
    size_t before;
    enum err e = find_group(c, s, &g);

    if (e)
        return e;
    before = merge_bytes(g->merge);
    e = add_sums(c, &c->merged, s, share_check(s->attempt.boot, s->attempt.group, s->attempt.place));
    if (e)
        return e;
    c->result->raw_bytes += s->body.len;
    e = hour_group_add(g, s, c->arena, c->f);
    c->held += merge_bytes(g->merge) - before;
    if (!e && c->held > c->memory)
        e = pack_groups(c);
    return e;
}

static enum err on_meta(void *ctx, const struct stored *s)
{
    struct compacting *c = ctx;

    return add_sums(c, &c->raw, s, share_check(s->attempt.boot, s->attempt.group, s->attempt.place));
}

static enum err scan(struct compacting *c, enum scan_what what, scan_row row)
{
    struct selection sel = {
        .project = c->todo->project,
        .service = c->todo->service,
        .from_ns = c->todo->hour * HOUR_NS,
        .until_ns = (c->todo->hour + 1) * HOUR_NS,
        .cancel = c->cancel,
    };
    struct fault why = {0};
    enum err e = c->backend->read->scan(c->store, &sel, what, row, c, &why);

    return e ? fault_set(c->f, e, why.text[0] ? "%s" : NULL, why.text) : E_OK;
}

/* Whether the columns of a row that is read back add up to what it says. */
static enum err check_columns(struct compacting *c, const struct stored *s, struct arena *a)
{
    struct record_view v;
    enum err e = record_open(&v, s->body, a, c->f);
    bool over = false;

    if (e)
        return e;
    if (v.n_types != s->n_types)
        return fault_set(c->f, E_INTERNAL, "an hour row has other types than its body");
    for (uint32_t t = 0; t < v.n_types; t++) {
        int64_t sum = 0;

        for (uint32_t i = 0; i < v.n_samples; i++)
            sum = add_sat(sum, v.values[t][i], &over);
        if (over || sum != s->types[t].total)
            return fault_set(c->f, E_INTERNAL, "an hour row does not add up");
    }
    return E_OK;
}

static enum err check_row(struct compacting *c, const struct packed_row *r, struct hour_sums *sums)
{
    struct arena *a = arena_new(SIZE_MAX);
    struct stored_hour hour;
    struct stored s;
    enum err e = a ? hour_open(r->row.about, r->row.body, c->todo->project, a, &s, &hour, c->f) : no_memory(c);

    if (!e)
        e = check_columns(c, &s, a);
    if (!e)
        e = add_sums(c, sums, &s, hour.check);
    arena_free(a);
    c->result->bytes += r->row.about.len + r->row.body.len;
    return e;
}

/* *changed: profiles have come since they were merged, so the hour has to be done again. */
static enum err verify(struct compacting *c, bool *changed)
{
    struct hour_sums rows = {0};
    enum err e = scan(c, SCAN_META, on_meta);

    for (uint32_t i = 0; !e && i < c->n_rows; i++)
        e = check_row(c, &c->rows[i], &rows);
    if (!e && (c->merged.over || c->raw.over))
        e = fault_set(c->f, E_INTERNAL, "sums of this hour do not fit into 64 bits");
    *changed = !same_sums(&c->merged, &c->raw);
    if (!e && !same_sums(&rows, &c->merged))
        e = fault_set(c->f, E_INTERNAL, "the rows of an hour differ from its profiles");
    c->result->profiles = rows.profiles;
    return e;
}

static enum err hand_over(struct compacting *c)
{
    struct hour_row *rows = NEW(c->arena, struct hour_row, (size_t)c->n_rows + 1);

    if (!rows)
        return no_memory(c);
    for (uint32_t i = 0; i < c->n_rows; i++)
        rows[i] = c->rows[i].row;
    c->result->rows = c->n_rows;
    return c->backend->hours->write(c->store, c->todo, rows, c->n_rows, &c->result->written, c->f);
}

enum err hour_compact(const struct backend *b, struct sample_store *s, const struct hash_key *k,
                      const struct hour_todo *t, size_t memory, const atomic_bool *cancel, struct hour_result *out,
                      struct fault *f)
{
    struct compacting c = {
        .backend = b,
        .store = s,
        .key = k,
        .todo = t,
        .memory = memory,
        .arena = arena_new(SIZE_MAX),
        .result = out,
        .f = f,
        .cancel = cancel,
    };
    enum err e = c.arena ? E_OK : no_memory(&c);
    bool changed = false;

    *out = (struct hour_result){0};
    if (!e)
        e = scan(&c, SCAN_BODY, on_profile);
    if (!e)
        e = pack_groups(&c);
    if (!e)
        e = verify(&c, &changed);
    if (!e && !changed)
        e = hand_over(&c);
    close_groups(&c);
    for (uint32_t i = 0; i < c.n_rows; i++) {
        buf_free(&c.rows[i].about);
        buf_free(&c.rows[i].body);
    }
    free(c.rows);
    free(c.groups);
    buf_free(&c.scratch);
    arena_free(c.arena);
    return e;
}
