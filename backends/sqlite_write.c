/*
 * What the store lane does to files. A put is one transaction of one file, synced before it is answered: originals
 * first (into their segments), then marks that ride along, symbol blocks, rows. A row that can never be stored is
 * rolled back to its savepoint and fails alone; anything else rolls back the whole and asks the caller to come again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/blob.h"
#include "backends/day.h"
#include "backends/sqlite_shares.h"
#include "backends/sqlite_store.h"

/* One put on its way. */
struct put {
    struct sample_store *store;
    struct group *group;
    struct file *file;
    int64_t services[GROUP_MAX]; /* of each row */
    struct segment_place places[GROUP_MAX];
    struct buf scratch;
    uint64_t inserted; /* bit i: row i is new in this transaction */
    int64_t now_ns;
};

static struct file_key key_of(const struct group *g)
{
    return (struct file_key){.class_days = g->class_days, .day = g->day};
}

static enum db_result put_service(struct put *p, const struct record *r, int64_t service)
{
    struct db_stmt *q = file_stmt(p->file, FILE_PUT_SERVICE);

    db_bind_int(q, 1, service);
    db_bind_text(q, 2, r->series.project);
    db_bind_text(q, 3, r->series.service);
    return db_step(q);
}

/* One block with what is new of all rows of a service. */
static enum db_result put_symbols(struct put *p, int64_t service, const struct symbols *const *list, uint32_t n)
{
    struct known_key key = {p->group->class_days, p->group->day, service};
    struct idset *fresh = idset_new();
    struct buf block = {0};
    enum db_result result = DB_AGAIN;

    if (fresh && symbols_block(list, n, known_get(p->store->known, key), fresh, &block)) {
        result = DB_DONE;
        if (block.len) {
            struct db_stmt *q = file_stmt(p->file, FILE_PUT_SYMBOLS);

            db_bind_int(q, 1, service);
            db_bind_blob(q, 2, buf_view(&block));
            result = db_step(q);
            db_reset(q);
        }
    }
    idset_free(fresh);
    buf_free(&block);
    return result;
}

/* Symbols of the rows from `first` on that share its service. */
static uint32_t symbols_of(const struct put *p, uint16_t first, const struct symbols *list[GROUP_MAX])
{
    uint32_t n = 0;

    for (uint16_t i = first; i < p->group->n; i++)
        if (p->services[i] == p->services[first] && p->group->records[i]->symbols)
            list[n++] = p->group->records[i]->symbols;
    return n;
}

static bool first_of_service(const struct put *p, uint16_t at)
{
    for (uint16_t i = 0; i < at; i++)
        if (p->services[i] == p->services[at])
            return false;
    return true;
}

static void fail_service(struct put *p, int64_t service)
{
    for (uint16_t i = 0; i < p->group->n; i++)
        if (p->services[i] == service)
            p->group->results[i] = PUT_BAD;
}

/* false: the group has to come again. */
static bool put_services(struct put *p)
{
    for (uint16_t i = 0; i < p->group->n; i++) {
        const struct symbols *list[GROUP_MAX];
        enum db_result r;
        uint32_t n;

        if (!first_of_service(p, i))
            continue;
        r = put_service(p, p->group->records[i], p->services[i]);
        n = symbols_of(p, i, list);
        if (r == DB_DONE && n)
            r = put_symbols(p, p->services[i], list, n);
        if (r == DB_AGAIN)
            return false;
        if (r == DB_BAD)
            fail_service(p, p->services[i]);
    }
    return true;
}

static enum db_result put_series(struct put *p, const struct record *r, int64_t service)
{
    struct db_stmt *q = file_stmt(p->file, FILE_PUT_SERIES);

    p->scratch.len = 0;
    blob_labels(&p->scratch, r->series.labels, r->series.n_labels);
    if (p->scratch.failed)
        return DB_AGAIN;
    db_bind_int(q, 1, (int64_t)r->series_id);
    db_bind_int(q, 2, service);
    db_bind_text(q, 3, r->series.name);
    db_bind_text(q, 4, r->series.spy);
    db_bind_blob(q, 5, buf_view(&p->scratch));
    return db_step(q);
}

static enum db_result put_typeset(struct put *p, const struct record *r, int64_t *id)
{
    struct db_stmt *q = file_stmt(p->file, FILE_PUT_TYPESET);

    p->scratch.len = 0;
    blob_types(&p->scratch, r->types, r->n_types);
    if (p->scratch.failed)
        return DB_AGAIN;
    *id = (int64_t)hash64(p->store->host->key, p->scratch.p, p->scratch.len);
    db_bind_int(q, 1, *id);
    db_bind_blob(q, 2, buf_view(&p->scratch));
    return db_step(q);
}

static void bind_profile(struct put *p, struct db_stmt *q, uint16_t i, int64_t typeset)
{
    const struct record *r = p->group->records[i];

    db_bind_int(q, 1, p->services[i]);
    db_bind_int(q, 2, r->time_ns);
    db_bind_blob(q, 3, (struct str){(const char *)&r->content_id, sizeof r->content_id});
    db_bind_int(q, 4, r->identity);
    db_bind_int(q, 5, (int64_t)p->group->boot);
    db_bind_int(q, 6, (int64_t)p->group->id);
    db_bind_int(q, 7, i);
    db_bind_int(q, 8, (int64_t)r->series_id);
    db_bind_int(q, 9, r->duration_ns);
    db_bind_int(q, 10, p->now_ns);
    db_bind_int(q, 11, r->n_samples);
    db_bind_int(q, 12, typeset);
    db_bind_blob(q, 13, buf_view(&p->scratch));
    db_bind_int(q, 14, r->primary);
    db_bind_text(q, 15, r->format);
    db_bind_text(q, 16, r->trace_id);
    db_bind_int(q, 17, (int64_t)r->original_bytes);
    db_bind_int(q, 18, p->places[i].segment);
    db_bind_int(q, 19, p->places[i].at);
}

static enum db_result put_row(struct put *p, uint16_t i)
{
    const struct record *r = p->group->records[i];
    int64_t typeset = 0;
    struct db_stmt *q;
    enum db_result result = put_series(p, r, p->services[i]);

    if (result == DB_DONE)
        result = put_typeset(p, r, &typeset);
    if (result != DB_DONE)
        return result;
    p->scratch.len = 0;
    blob_totals(&p->scratch, r->types, r->n_types);
    if (p->scratch.failed)
        return DB_AGAIN;
    q = file_stmt(p->file, FILE_PUT_PROFILE);
    bind_profile(p, q, i, typeset);
    result = db_step(q);
    db_reset(q);
    if (result != DB_DONE || !db_changed(p->file->db))
        return result;
    q = file_stmt(p->file, FILE_PUT_BODY);
    db_bind_int(q, 1, db_last_id(p->file->db));
    db_bind_blob(q, 2, r->body);
    result = db_step(q);
    db_reset(q);
    if (result == DB_DONE)
        p->inserted |= UINT64_C(1) << i;
    return result;
}

static bool put_rows(struct put *p)
{
    for (uint16_t i = 0; i < p->group->n; i++) {
        enum db_result r = DB_BAD;

        if (p->group->results[i] == PUT_BAD)
            continue;
        if (db_exec(p->file->db, "SAVEPOINT row") != DB_DONE)
            return false;
        if (day_of(p->group->records[i]->time_ns) == p->group->day)
            r = put_row(p, i);
        if (r == DB_AGAIN)
            return false;
        if (r == DB_BAD) {
            p->group->results[i] = PUT_BAD;
            if (db_exec(p->file->db, "ROLLBACK TO row") != DB_DONE)
                return false;
        }
        if (db_exec(p->file->db, "RELEASE row") != DB_DONE)
            return false;
    }
    return true;
}

static bool put_originals(struct put *p)
{
    const struct group *g = p->group;
    bool any = false;

    if (!p->store->host->originals_max_bytes)
        return true;
    errno = 0;
    for (uint16_t i = 0; i < g->n; i++) {
        const struct record *r = g->records[i];
        struct attempt a = {.boot = g->boot, .group = g->id, .place = i};

        if (!r->original.len)
            continue;
        any = true;
        if (!segments_append(p->store->segments, r->series.project, g->class_days, g->day, a, r->original,
                             &p->places[i])) {
            store_log(p->store->host, 0, "store=sqlite ev=original_failed why=\"%s\"",
                      errno ? strerror(errno) : "no memory");
            return false;
        }
    }
    if (!any || segments_sync(p->store->segments))
        return true;
    store_log(p->store->host, 0, "store=sqlite ev=original_not_synced why=\"%s\"", strerror(errno));
    return false;
}

static void learn(struct put *p)
{
    for (uint16_t i = 0; i < p->group->n; i++) {
        const struct symbols *list[GROUP_MAX];
        uint32_t n;

        if (p->group->results[i] == PUT_BAD || !first_of_service(p, i))
            continue;
        n = symbols_of(p, i, list);
        known_add(p->store->known, (struct known_key){p->group->class_days, p->group->day, p->services[i]}, list, n);
    }
    sqlite_charge_known(p->store);
}

static bool put_shares(struct put *p)
{
    return !p->store->host->shares || sqlite_put_shares(p->store, p->file, p->group, p->services, p->inserted);
}

static bool put_all(struct put *p, const struct mark_job *marks)
{
    return sqlite_put_marks(p->store, p->file, marks) && put_services(p) && put_rows(p) && put_shares(p) &&
           sqlite_put_dirty(p->store, p->file, p->group, p->services, p->inserted) &&
           db_exec(p->file->db, "COMMIT") == DB_DONE;
}

void sqlite_write_put(struct sample_store *s, struct group *g, struct mark_job *marks)
{
    struct put p = {.store = s, .group = g, .now_ns = day_now_ns()};
    bool ok;

    for (uint16_t i = 0; i < g->n; i++) {
        g->results[i] = PUT_STORED;
        p.services[i] = sqlite_service_id(s, g->records[i]->series.project, g->records[i]->series.service);
    }
    ok = put_originals(&p);
    p.file = ok ? sqlite_write_file(s, key_of(g)) : NULL;
    ok = p.file && sqlite_begin(p.file, true) && put_all(&p, marks);
    if (ok) {
        if (!s->listed_boot) { /* nothing has been listed yet */
            s->listed_boot = g->boot;
            s->listed_group = g->id - 1;
        }
        s->put_boot = g->boot;
        s->put_group = g->id;
        learn(&p);
        sqlite_free_marks(marks);
    } else {
        if (p.file)
            sqlite_give_up(s, p.file, "put_failed");
        for (uint16_t i = 0; i < g->n; i++)
            g->results[i] = PUT_AGAIN;
        sqlite_keep_marks(s, marks);
    }
    buf_free(&p.scratch);
    atomic_store(&s->healthy, ok);
}
