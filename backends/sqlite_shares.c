/*
 * Function shares in the file of their profiles: one row per (service, type, minute), added up in the transaction that
 * stores the profiles. Nothing here fails a put: a minute that could not be kept up is found out by its check when it
 * is read.
 */
#include "backends/sqlite_shares.h"

#include <stdlib.h>

#include "backends/day.h"
#include "codecs/shares.h"

enum { SHARES_MEMORY = 32 << 20 }; /* for one profile; one that needs more is left out of its minute */

/* One profile on its way into its minutes. */
struct addition {
    struct sample_store *store;
    struct file *file;
    struct arena *arena;
    struct buf packed;
    int64_t service, minute;
};

static int64_t type_key(const struct sample_store *s, struct str type_id)
{
    return (int64_t)hash64(s->host->key, type_id.p, type_id.len);
}

/* The minute so far, or nothing. */
static enum db_result load(struct addition *a, int64_t type, struct shares *out)
{
    struct db_stmt *q = file_stmt(a->file, FILE_GET_SHARE);
    struct fault f = {0};
    enum db_result r;

    *out = (struct shares){0};
    db_bind_int(q, 1, a->service);
    db_bind_int(q, 2, type);
    db_bind_int(q, 3, a->minute);
    r = db_step(q);
    if (r == DB_ROW)
        r = shares_unpack(db_bytes(q, 0), a->arena, out, &f) == E_OK ? DB_DONE : DB_BAD;
    db_reset(q);
    return r;
}

static enum db_result add(struct addition *a, int64_t type, const struct shares *more)
{
    struct shares before, sum;
    struct fault f = {0};
    struct db_stmt *q;
    enum db_result r = load(a, type, &before);

    if (r == DB_DONE && shares_add(&before, more, a->arena, &sum, &f) != E_OK)
        r = DB_BAD;
    if (r != DB_DONE)
        return r;
    a->packed.len = 0;
    shares_pack(&sum, &a->packed);
    if (a->packed.failed)
        return DB_BAD;
    q = file_stmt(a->file, FILE_PUT_SHARE);
    db_bind_int(q, 1, a->service);
    db_bind_int(q, 2, type);
    db_bind_int(q, 3, a->minute);
    db_bind_blob(q, 4, buf_view(&a->packed));
    r = db_step(q);
    db_reset(q);
    return r;
}

static enum db_result add_row(struct addition *a, const struct group *g, uint16_t place)
{
    const struct record *r = g->records[place];
    enum db_result result = DB_DONE;
    struct shares *shares;
    struct fault f = {0};

    if (!r->symbols || !a->arena || shares_of(r, a->store->host->key, a->arena, &shares, &f) != E_OK)
        return DB_BAD;
    for (uint32_t i = 0; i < r->n_types && result == DB_DONE; i++) {
        shares[i].check = share_check(g->boot, g->id, place);
        result = add(a, type_key(a->store, r->types[i].id), &shares[i]);
    }
    return result;
}

bool sqlite_put_shares(struct sample_store *s, struct file *file, const struct group *g, const int64_t *services,
                       uint64_t inserted)
{
    bool ok = true;

    for (uint16_t i = 0; ok && i < g->n; i++) {
        struct addition a = {
            .store = s,
            .file = file,
            .service = services[i],
            .minute = share_minute(g->records[i]->time_ns),
        };
        if (!(inserted >> i & 1))
            continue;
        a.arena = arena_new(SHARES_MEMORY);
        enum db_result r = add_row(&a, g, i);
        if (r == DB_BAD)
            sqlite_log(s, 2, "store=sqlite ev=shares_skipped group=%llu row=%u", (unsigned long long)g->id, i);
        ok = r != DB_AGAIN;
        buf_free(&a.packed);
        arena_free(a.arena);
    }
    return ok;
}

static enum err give_minutes(struct file *t, int64_t service, int64_t type, const int64_t minutes[2], share_row row,
                             void *ctx, struct fault *f)
{
    struct db_stmt *q = file_stmt(t, FILE_GET_SHARES);
    enum db_result r = DB_DONE;
    enum err e = E_OK;

    db_bind_int(q, 1, service);
    db_bind_int(q, 2, type);
    db_bind_int(q, 3, minutes[0]);
    db_bind_int(q, 4, minutes[1]);
    while (!e && (r = db_step(q)) == DB_ROW)
        e = row(ctx, db_int(q, 0), db_bytes(q, 1));
    if (!e && r != DB_DONE)
        e = fault_set(f, E_STORE_DOWN, "the store cannot be read: %s", db_error(t->db));
    db_reset(q);
    return e;
}

static enum err sqlite_minutes(struct sample_store *s, struct str project, struct str service, struct str type_id,
                               int64_t first, int64_t last, share_row row, void *ctx, struct fault *f)
{
    const int64_t per_day = 86400 / SHARE_MINUTE_S, range[2] = {first, last};
    int64_t id = sqlite_service_id(s, project, service), type = type_key(s, type_id);
    struct file_key *keys;
    enum err e = E_OK;
    size_t n;

    if (!catalog_list(s->catalog, (int32_t)(first / per_day) - 1, (int32_t)(last / per_day) + 1, &keys, &n))
        return fault_set(f, E_NO_MEMORY, NULL);
    for (size_t i = 0; !e && i < n; i++) {
        struct fault why = {0};
        struct file *t = catalog_take(s->catalog, keys[i], &why);

        if (!t) {
            e = why.err == E_NOT_FOUND ? E_OK : fault_set(f, why.err, "%s", why.text);
            continue;
        }
        e = give_minutes(t, id, type, range, row, ctx, f);
        catalog_give(s->catalog, t);
    }
    free(keys);
    return e;
}

const struct share_reader_ops shares_sqlite = {.scheme = "sqlite", .minutes = sqlite_minutes};
