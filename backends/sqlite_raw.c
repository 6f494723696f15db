/*
 * retention.raw in the embedded store: the single profiles of a day go, its hours stay. The file says so before the
 * first one goes: meta "raw" is the last profile that is in the hours, "done" once all up to it are gone. Profiles that
 * come later are in no hour and stay with the file.
 */
#include <stdio.h>
#include <stdlib.h>

#include "backends/day.h"
#include "backends/hours.h"
#include "backends/sqlite_store.h"

enum { DROP_ROWS = 256, DROP_SHARES = 2048, NUMBER_BYTES = 24, HOURS_A_DAY = 24 };

static void tell_since(struct sample_store *s, int32_t day)
{
    int64_t since = day_start(day + 1);

    if (since > atomic_load(&s->raw_since))
        atomic_store(&s->raw_since, since);
}

static enum db_result put_meta(struct file *t, struct str value)
{
    struct db_stmt *q = file_stmt(t, FILE_PUT_META);
    enum db_result r;

    db_bind_text(q, 1, STR("raw"));
    db_bind_text(q, 2, value);
    r = db_step(q);
    db_reset(q);
    return r;
}

/* The last profile that is to go; -1: none, or done. */
static int64_t read_limit(struct file *t)
{
    struct db_stmt *q = file_stmt(t, FILE_META);
    int64_t limit = -1;

    db_bind_text(q, 1, STR("raw"));
    if (db_step(q) == DB_ROW && !str_eq(db_bytes(q, 0), STR("done")))
        limit = 0;
    if (!limit) {
        char text[NUMBER_BYTES];
        struct str v = db_bytes(q, 0);

        snprintf(text, sizeof text, "%.*s", STR_ARG(v));
        limit = strtoll(text, NULL, 10);
    }
    db_reset(q);
    return limit;
}

/* Whether an hour of the day is dirty by a row in this file. */
static bool any_dirty(struct file *t, int32_t day, bool *ok)
{
    struct db_stmt *q = file_stmt(t, FILE_ANY_DIRTY);
    enum db_result r;

    db_bind_int(q, 1, (int64_t)day * HOURS_A_DAY);
    db_bind_int(q, 2, (int64_t)day * HOURS_A_DAY + HOURS_A_DAY - 1);
    r = db_step(q);
    db_reset(q);
    *ok = r == DB_ROW || r == DB_DONE;
    return r == DB_ROW;
}

/* On the lane. */
struct drop_job {
    struct lane_job job;
    const struct file_key *keys; /* of one day; or one of them */
    size_t n;
    bool ok, more;
};

static bool begin_file(struct file *t)
{
    struct db_stmt *q = file_stmt(t, FILE_LAST_PROFILE);
    char text[NUMBER_BYTES];

    if (db_step(q) != DB_ROW)
        return false;
    snprintf(text, sizeof text, "%lld", (long long)db_int(q, 0));
    db_reset(q);
    t->raw_gone = put_meta(t, str_of(text)) == DB_DONE;
    return t->raw_gone;
}

/* All files of a day in one turn, so that no put comes between; if one is dirty by now, none. */
static void begin_day(struct sample_store *s, struct lane_job *j)
{
    struct drop_job *d = (struct drop_job *)j;

    d->ok = true;
    for (size_t i = 0; d->ok && i < d->n; i++) {
        struct file *t = catalog_has(s->catalog, d->keys[i]) ? sqlite_write_file(s, d->keys[i]) : NULL;

        d->ok = t && !any_dirty(t, d->keys[i].day, &d->ok) && d->ok;
    }
    if (!d->ok)
        return;
    tell_since(s, d->keys[0].day);
    for (size_t i = 0; d->ok && i < d->n; i++) {
        struct file *t = sqlite_write_file(s, d->keys[i]);

        d->ok = t && (t->raw_gone || (sqlite_begin(t, true) && begin_file(t) && db_exec(t->db, "COMMIT") == DB_DONE));
        if (t && !d->ok)
            sqlite_give_up(s, t, "raw_failed");
    }
}

static bool run(struct file *t, enum file_statement which, int64_t a, int64_t b)
{
    struct db_stmt *q = file_stmt(t, which);
    bool ok;

    db_bind_int(q, 1, a);
    if (which != FILE_DROP_SHARES)
        db_bind_int(q, 2, b);
    ok = db_step(q) == DB_DONE;
    db_reset(q);
    return ok;
}

/* What the file system can have back; files of the first version keep what they have. */
static bool has_free_pages(struct file *t)
{
    struct db_stmt *q = file_stmt(t, FILE_FREE_PAGES);
    bool has = db_step(q) == DB_ROW;

    db_reset(q);
    return has;
}

/* Some rows of one file, and their pages; none left: done. */
static void drop_rows(struct sample_store *s, struct lane_job *j)
{
    struct drop_job *d = (struct drop_job *)j;
    struct file *t = catalog_has(s->catalog, *d->keys) ? sqlite_write_file(s, *d->keys) : NULL;
    int64_t limit = t ? read_limit(t) : -1;

    d->ok = true;
    d->more = limit >= 0;
    if (!d->more)
        return;
    d->ok = sqlite_begin(t, false) && run(t, FILE_DROP_BODIES, limit, DROP_ROWS) &&
            run(t, FILE_DROP_PROFILES, limit, DROP_ROWS);
    if (d->ok && !db_changed(t->db)) {
        d->ok = run(t, FILE_DROP_SHARES, DROP_SHARES, 0);
        if (d->ok && !db_changed(t->db) && !has_free_pages(t))
            d->ok = put_meta(t, STR("done")) == DB_DONE;
    }
    d->ok = d->ok && db_exec(t->db, "COMMIT; PRAGMA incremental_vacuum(1024)") == DB_DONE;
    if (!d->ok)
        sqlite_give_up(s, t, "raw_failed");
}

/* What is known from reading: whether the day is to be begun, and a file that has rows to drop. */
struct looked {
    bool begun, ready;
    const struct file_key *going; /* NULL: none */
};

static enum err look_at_file(struct sample_store *s, const struct file_key *key, int32_t day, struct looked *l,
                             struct fault *f)
{
    struct fault why = {0};
    struct file *t = catalog_take(s->catalog, *key, &why);
    bool ok = true;

    if (t)
        ok = file_look(t);
    if (!t)
        return why.err == E_NOT_FOUND ? E_OK : fault_set(f, why.err, "%s", why.text);
    if (t->has_hours && any_dirty(t, day, &ok))
        l->ready = false;
    if (key->day == day) {
        l->ready = l->ready && t->has_hours;
        l->begun = l->begun && t->raw_gone;
        if (t->raw_gone && read_limit(t) >= 0)
            l->going = key;
    }
    if (!ok)
        fault_set(f, E_STORE_DOWN, "the store cannot be read: %s", db_error(t->db));
    catalog_give(s->catalog, t);
    return f->err;
}

/* keys: of the day and of those beside it. */
static enum err drop_of_day(struct sample_store *s, int32_t day, const struct file_key *keys, size_t n, bool *more,
                            struct fault *f)
{
    struct looked l = {.begun = true, .ready = true};
    struct drop_job d = {.keys = NULL};

    for (size_t i = 0; i < n; i++)
        if (look_at_file(s, &keys[i], day, &l, f))
            return f->err;
    for (size_t i = 0; i < n; i++)
        if (keys[i].day == day && d.n++ == 0)
            d.keys = &keys[i];
    if (!d.n || (!l.going && (l.begun || !l.ready)))
        return E_OK;
    d.job.run = l.going ? drop_rows : begin_day;
    if (l.going)
        d.keys = l.going;
    sqlite_run_job(s, &d.job);
    *more = d.ok;
    return E_OK;
}

enum err sqlite_drop_raw(struct sample_store *s, int32_t day, bool *more, struct fault *f)
{
    struct file_key *all;
    size_t n;
    enum err e = E_OK;

    *more = false;
    if (!catalog_list(s->catalog, INT32_MIN, day, &all, &n))
        return fault_set(f, E_NO_MEMORY, NULL);
    for (size_t i = 0; !e && !*more && i < n; i++) {
        size_t first = i, until = i;

        if (all[i].day >= day || (i && all[i - 1].day == all[i].day))
            continue;
        while (first && all[first - 1].day >= all[i].day - 1)
            first--;
        while (until < n && all[until].day <= all[i].day + 1)
            until++;
        e = drop_of_day(s, all[i].day, all + first, until - first, more, f);
    }
    free(all);
    return e;
}

void sqlite_look_raw(struct sample_store *s)
{
    struct file_key *keys;
    size_t n;

    if (!catalog_list(s->catalog, INT32_MIN, INT32_MAX, &keys, &n))
        return;
    for (size_t i = 0; i < n; i++) {
        struct fault f = {0};
        struct file *t = catalog_take(s->catalog, keys[i], &f);

        if (!t)
            continue;
        if (t->raw_gone)
            tell_since(s, keys[i].day);
        catalog_give(s->catalog, t);
    }
    free(keys);
}
