/* Reading by name: one profile by its attempt, the symbols of a service's days, the original of a profile. */
#include <stdlib.h>

#include "backends/sqlite_store.h"

static enum err broken(const struct file *t, struct fault *f)
{
    return fault_set(f, E_STORE_DOWN, "the store cannot be read: %s", db_error(t->db));
}

static bool of_project(struct file *t, int64_t service, struct str project)
{
    struct db_stmt *q = file_stmt(t, FILE_GET_SERVICE);
    bool is;

    db_bind_int(q, 1, service);
    is = db_step(q) == DB_ROW && str_eq(db_bytes(q, 0), project);
    db_reset(q);
    return is;
}

/* An id does not say its day: all files are asked, newest first; each answers from an index. */
enum err sqlite_find_attempt(struct sample_store *s, struct str project, struct attempt a, struct file **file,
                             struct db_stmt **row, struct fault *f)
{
    enum err e = E_NOT_FOUND;
    struct file_key *keys;
    size_t n;

    if (!catalog_list(s->catalog, INT32_MIN, INT32_MAX, &keys, &n))
        return fault_set(f, E_NO_MEMORY, NULL);
    while (e == E_NOT_FOUND && n-- > 0) {
        struct fault why = {0};
        struct file *t = catalog_take(s->catalog, keys[n], &why);
        struct db_stmt *q;
        enum db_result r;

        if (!t) {
            e = why.err == E_NOT_FOUND ? E_NOT_FOUND : fault_set(f, why.err, "%s", why.text);
            continue;
        }
        q = file_stmt(t, FILE_GET_ATTEMPT);
        db_bind_int(q, 1, (int64_t)a.boot);
        db_bind_int(q, 2, (int64_t)a.group);
        db_bind_int(q, 3, a.place);
        r = db_step(q);
        if (r == DB_ROW && of_project(t, db_int(q, 8), project)) {
            *file = t;
            *row = q;
            e = E_OK;
            break;
        }
        if (r != DB_ROW && r != DB_DONE)
            e = broken(t, f);
        db_reset(q);
        catalog_give(s->catalog, t);
    }
    free(keys);
    return e == E_NOT_FOUND ? fault_set(f, e, "no such profile") : e;
}

struct blocks {
    int64_t service;
    block_row row;
    void *ctx;
};

static enum err give_blocks(void *ctx, struct file *t, struct fault *f)
{
    const struct blocks *b = ctx;
    struct db_stmt *q = file_stmt(t, FILE_GET_SYMBOLS);
    enum db_result r = DB_DONE;
    enum err e = E_OK;

    db_bind_int(q, 1, b->service);
    while (!e && (r = db_step(q)) == DB_ROW)
        e = b->row(b->ctx, db_bytes(q, 0));
    if (!e && r != DB_DONE)
        e = broken(t, f);
    db_reset(q);
    return e;
}

enum err sqlite_symbols(struct sample_store *s, struct str project, struct str service, int32_t first, int32_t last,
                        block_row row, void *ctx, struct fault *f)
{
    struct blocks b = {sqlite_service_id(s, project, service), row, ctx};

    return catalog_each(s->catalog, first, last, give_blocks, &b, f);
}

enum err sqlite_original(struct sample_store *s, struct str project, struct attempt a, enum original_state *state,
                         struct buf *out, struct fault *f)
{
    struct segment_place place = {0};
    struct fault why = {0};
    struct file_key key;
    struct db_stmt *q;
    struct file *t;
    int64_t id;
    bool found;
    enum err e = sqlite_find_attempt(s, project, a, &t, &q, f);

    if (e)
        return e;
    key = t->key;
    id = db_int(q, 0);
    db_reset(q);
    q = file_stmt(t, FILE_GET_ORIGINAL);
    db_bind_int(q, 1, id);
    found = db_step(q) == DB_ROW;
    if (found)
        place = (struct segment_place){.segment = db_int(q, 0), .at = db_int(q, 1)};
    else
        e = broken(t, f);
    db_reset(q);
    catalog_give(s->catalog, t);
    if (e)
        return e;
    *state = place.segment == SEGMENT_OFF ? ORIGINAL_OFF : ORIGINAL_EXPIRED;
    if (place.segment <= 0)
        return E_OK;
    e = segments_read(s->segments, project, key.class_days, key.day, place, a, out, &why);
    if (e == E_NOT_FOUND)
        return E_OK;
    *state = ORIGINAL_KEPT;
    return e ? fault_set(f, e, "%s", why.text) : E_OK;
}
