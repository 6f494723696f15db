/* The files that the lane has open for writing, how transactions begin and fail, checkpoints, expiry. */
#include <stdlib.h>

#include "backends/day.h"
#include "backends/sqlite_store.h"

enum { IDLE_PAGES = 1, LARGE_LOG_PAGES = 4096, HUGE_LOG_PAGES = 32768 };

void sqlite_charge_known(struct sample_store *s)
{
    size_t bytes = known_bytes(s->known);

    s->host->account(s->host->ctx, "symbols", (int64_t)bytes - (int64_t)s->known_charged);
    s->known_charged = bytes;
}

static void sqlite_close_file(struct sample_store *s, struct file **at)
{
    struct file *t = *at;

    *at = t->next;
    s->n_files--;
    file_close(t);
}

static struct file **sqlite_find_file(struct sample_store *s, struct file_key key)
{
    struct file **at = &s->files;

    while (*at && !file_key_eq((*at)->key, key))
        at = &(*at)->next;
    return at;
}

static void close_oldest(struct sample_store *s)
{
    struct file **at = &s->files;

    while ((*at)->next)
        at = &(*at)->next;
    db_checkpoint((*at)->db, true);
    sqlite_close_file(s, at);
}

/* The file open for writing, made if need be, at the head of the list. NULL: logged. */
struct file *sqlite_write_file(struct sample_store *s, struct file_key key)
{
    struct file **at = sqlite_find_file(s, key), *t = *at;
    struct fault f = {0};

    if (t) {
        *at = t->next;
    } else {
        t = catalog_open_write(s->catalog, key, &f);
        if (!t) {
            store_log(s->host, 0, "store=sqlite ev=open_failed why=\"%s\"", f.text);
            return NULL;
        }
        if (++s->n_files > WRITE_FILES)
            close_oldest(s);
    }
    t->next = s->files;
    s->files = t;
    return t;
}

/* Begins a transaction whose commit waits for the disk (flush), or only for the kernel. */
bool sqlite_begin(struct file *t, bool flush)
{
    if (t->flushing != flush) {
        if (db_exec(t->db, flush ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL") != DB_DONE)
            return false;
        t->flushing = flush;
    }
    return db_exec(t->db, "BEGIN IMMEDIATE") == DB_DONE;
}

/* A connection that failed is not trusted any further: the next use opens anew. */
void sqlite_give_up(struct sample_store *s, struct file *t, const char *what)
{
    store_log(s->host, 0, "store=sqlite ev=%s why=\"%s\"", what, db_error(t->db));
    if (db_exec(t->db, "ROLLBACK") != DB_DONE)
        store_log(s->host, 2, "store=sqlite ev=rollback why=\"%s\"", db_error(t->db));
    sqlite_close_file(s, sqlite_find_file(s, t->key));
}

void sqlite_write_expire(struct sample_store *s, int64_t at_ns)
{
    int32_t today = day_of(at_ns);
    struct file_key *keys;
    size_t n;

    segments_expire(s->segments, today);
    if (!catalog_list(s->catalog, INT32_MIN, today, &keys, &n))
        return;
    for (size_t i = 0; i < n; i++) {
        struct file **open;

        if (!day_expired(keys[i].day, keys[i].class_days, today))
            continue;
        open = sqlite_find_file(s, keys[i]);
        if (*open)
            sqlite_close_file(s, open);
        catalog_drop(s->catalog, keys[i]);
        known_forget(s->known, keys[i].class_days, keys[i].day);
        store_log(s->host, 2, "store=sqlite ev=expired class=%u day=%d", (unsigned)keys[i].class_days,
                  (int)keys[i].day);
    }
    free(keys);
    sqlite_charge_known(s);
}

void sqlite_write_checkpoint(struct sample_store *s, bool idle)
{
    for (struct file *t = s->files; t; t = t->next) {
        int pages = db_wal_pages(t->db);

        if (pages >= (idle ? IDLE_PAGES : LARGE_LOG_PAGES))
            db_checkpoint(t->db, pages >= HUGE_LOG_PAGES);
    }
}

void sqlite_write_close_files(struct sample_store *s)
{
    while (s->files) {
        db_checkpoint(s->files->db, true);
        sqlite_close_file(s, &s->files);
    }
}
