/*
 * Function shares in the file of their profiles, added up in the transaction that stores the profiles. A minute of one
 * (service, type) is a few rows, one per size class of their number of functions, which are added to like the digits of
 * a counter: so a small profile never rewrites what a large one of the same minute has left.
 *
 * Nothing here fails a put: a minute that could not be kept up is found out by its check when it is read.
 */
#include "backends/sqlite_shares.h"

#include <stdlib.h>

#include "backends/day.h"
#include "codecs/shares.h"

/* What a put gathers before it writes; a profile that needs more by itself is left out of its minute. */
enum { SHARES_MEMORY = 32 << 20, SHARES_ENOUGH = SHARES_MEMORY / 4 };

/* What a put adds to a minute. */
struct addition {
    int64_t service, type, minute;
    struct shares shares;
};
struct adding {
    struct sample_store *store;
    struct file *file;
    struct arena *arena;
    struct addition *list;
    uint32_t n, cap;
    struct buf packed;
};

static int64_t type_key(const struct sample_store *s, struct str type_id)
{
    return (int64_t)hash64(s->host->key, type_id.p, type_id.len);
}

/* Size class: half the bits of the number of functions. */
static int tier_of(uint32_t n)
{
    return n ? (33 - __builtin_clz(n)) / 2 : 0;
}

static struct db_stmt *row_of(struct adding *a, enum file_statement which, const struct addition *to, int tier)
{
    struct db_stmt *q = file_stmt(a->file, which);

    db_bind_int(q, 1, to->service);
    db_bind_int(q, 2, to->type);
    db_bind_int(q, 3, to->minute);
    db_bind_int(q, 4, tier);
    return q;
}

/* DB_ROW: out has what is there. DB_DONE: nothing is. */
static enum db_result load(struct adding *a, const struct addition *to, int tier, struct shares *out)
{
    struct db_stmt *q = row_of(a, FILE_GET_SHARE, to, tier);
    struct fault f = {0};
    enum db_result r = db_step(q);

    if (r == DB_ROW && shares_unpack(db_bytes(q, 0), a->arena, out, &f) != E_OK)
        r = DB_BAD;
    db_reset(q);
    return r;
}

static enum db_result write_row(struct adding *a, const struct addition *to, int tier)
{
    struct db_stmt *q;
    enum db_result r;

    a->packed.len = 0;
    shares_pack(&to->shares, &a->packed);
    if (a->packed.failed)
        return DB_BAD;
    q = row_of(a, FILE_PUT_SHARE, to, tier);
    db_bind_blob(q, 5, buf_view(&a->packed));
    r = db_step(q);
    db_reset(q);
    return r;
}

static enum db_result drop_row(struct adding *a, const struct addition *to, int tier)
{
    struct db_stmt *q = row_of(a, FILE_DROP_SHARE, to, tier);
    enum db_result r = db_step(q);

    db_reset(q);
    return r;
}

/* Adds to the row of its size class; a sum that has outgrown the class is carried on to the next. */
static enum db_result store(struct adding *a, struct addition *to)
{
    for (;;) {
        int tier = tier_of(to->shares.n);
        struct shares before;
        struct fault f = {0};
        enum db_result r = load(a, to, tier, &before);

        if (r == DB_ROW && shares_add(&before, &to->shares, a->arena, &to->shares, &f) != E_OK)
            r = DB_BAD;
        if (r != DB_ROW && r != DB_DONE)
            return r;
        if (r == DB_DONE || tier_of(to->shares.n) == tier)
            return write_row(a, to, tier);
        r = drop_row(a, to, tier);
        if (r != DB_DONE)
            return r;
    }
}

static bool flush(struct adding *a)
{
    bool ok = true;

    for (uint32_t i = 0; ok && i < a->n; i++) {
        enum db_result r = store(a, &a->list[i]);
        if (r == DB_BAD)
            store_log(a->store->host, 2, "store=sqlite ev=shares_skipped minute=%lld", (long long)a->list[i].minute);
        ok = r != DB_AGAIN;
    }
    arena_free(a->arena);
    a->arena = NULL;
    a->list = NULL;
    a->n = a->cap = 0;
    return ok;
}

static bool add(struct adding *a, const struct addition *more)
{
    struct fault f = {0};

    for (uint32_t i = 0; i < a->n; i++) {
        struct addition *to = &a->list[i];
        if (to->service == more->service && to->type == more->type && to->minute == more->minute)
            return shares_add(&to->shares, &more->shares, a->arena, &to->shares, &f) == E_OK;
    }
    if (a->n == a->cap) {
        uint32_t cap = a->cap ? a->cap * 2 : 64;
        struct addition *list = GROW(a->arena, a->list, struct addition, a->cap, cap);
        if (!list)
            return false;
        a->list = list;
        a->cap = cap;
    }
    a->list[a->n++] = *more;
    return true;
}

static bool add_row(struct adding *a, const struct group *g, uint16_t place, int64_t service)
{
    const struct record *r = g->records[place];
    struct shares *shares;
    struct fault f = {0};
    bool ok = true;

    if (!a->arena && !(a->arena = arena_new(SHARES_MEMORY)))
        return false;
    if (!r->symbols || shares_of(r, a->store->host->key, a->arena, &shares, &f) != E_OK)
        return false;
    for (uint32_t i = 0; ok && i < r->n_types; i++) {
        struct addition more = {service, type_key(a->store, r->types[i].id), share_minute(r->time_ns), shares[i]};
        more.shares.check = share_check(g->boot, g->id, place);
        ok = add(a, &more);
    }
    return ok;
}

bool sqlite_put_shares(struct sample_store *s, struct file *file, const struct group *g, const int64_t *services,
                       uint64_t inserted)
{
    struct adding a = {.store = s, .file = file};
    bool ok = true;

    for (uint16_t i = 0; ok && i < g->n; i++) {
        if (!(inserted >> i & 1))
            continue;
        if (!add_row(&a, g, i, services[i]))
            store_log(s->host, 2, "store=sqlite ev=shares_skipped group=%llu row=%u", (unsigned long long)g->id, i);
        if (a.arena && arena_used(a.arena) > SHARES_ENOUGH)
            ok = flush(&a);
    }
    ok = flush(&a) && ok;
    buf_free(&a.packed);
    return ok;
}

struct minutes {
    int64_t service, type, first, last;
    share_row row;
    void *ctx;
};

static enum err give_minutes(void *ctx, struct file *t, struct fault *f)
{
    const struct minutes *m = ctx;
    struct db_stmt *q = file_stmt(t, FILE_GET_SHARES);
    enum db_result r = DB_DONE;
    enum err e = E_OK;

    db_bind_int(q, 1, m->service);
    db_bind_int(q, 2, m->type);
    db_bind_int(q, 3, m->first);
    db_bind_int(q, 4, m->last);
    while (!e && (r = db_step(q)) == DB_ROW)
        e = m->row(m->ctx, db_int(q, 0), db_bytes(q, 1));
    if (!e && r != DB_DONE)
        e = fault_set(f, E_STORE_DOWN, "the store cannot be read: %s", db_error(t->db));
    db_reset(q);
    return e;
}

/* The share store is the sample store. */
static enum err sqlite_minutes(struct share_store *shares, const struct share_of *of, int64_t first, int64_t last,
                               share_row row, void *ctx, struct fault *f)
{
    struct sample_store *s = (struct sample_store *)shares;
    const int64_t per_day = 86400 / SHARE_MINUTE_S;
    struct minutes m = {.service = sqlite_service_id(s, of->project, of->service),
                        .type = type_key(s, of->type_id),
                        .first = first,
                        .last = last,
                        .row = row,
                        .ctx = ctx};

    return catalog_each(s->catalog, (int32_t)(first / per_day) - 1, (int32_t)(last / per_day) + 1, give_minutes, &m, f);
}

const struct share_reader_ops shares_sqlite = {.minutes = sqlite_minutes};
