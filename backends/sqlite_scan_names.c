/* Series and type sets by id, read from whichever file has them, once per scan. */
#include <stdlib.h>

#include "backends/blob.h"
#include "backends/sqlite_scan.h"

enum { CACHE_MIN = 64 };

static size_t slot_of(const struct cache *c, int64_t id)
{
    size_t i = (size_t)((uint64_t)id ^ (uint64_t)id >> 29) & (c->cap - 1);

    while (c->slots[i] && c->slots[i]->id != id)
        i = (i + 1) & (c->cap - 1);
    return i;
}

static struct cached *cache_find(const struct cache *c, int64_t id)
{
    return c->cap ? c->slots[slot_of(c, id)] : NULL;
}

static bool cache_grow(struct cache *c)
{
    struct cache big = {.n = c->n, .cap = c->cap ? c->cap * 2 : CACHE_MIN};

    big.slots = calloc(big.cap, sizeof(struct cached *));
    if (!big.slots)
        return false;
    for (size_t i = 0; i < c->cap; i++)
        if (c->slots[i])
            big.slots[slot_of(&big, c->slots[i]->id)] = c->slots[i];
    free(c->slots);
    *c = big;
    return true;
}

/* A new entry for id, in the arena. NULL: no memory. */
static struct cached *cache_add(struct scan *s, struct cache *c, int64_t id)
{
    struct cached *e = NEW(s->arena, struct cached, 1);

    if (!e || (c->n * 2 >= c->cap && !cache_grow(c)))
        return NULL;
    e->id = id;
    c->slots[slot_of(c, id)] = e;
    c->n++;
    return e;
}

static enum err read_series(struct scan *s, struct file *t, struct str service, struct cached *e)
{
    struct db_stmt *q = file_stmt(t, FILE_GET_SERIES);
    enum err err;

    db_bind_int(q, 1, e->id);
    if (db_step(q) != DB_ROW)
        return scan_broken(s, t);
    if (!arena_str(s->arena, s->sel->project, &e->series.project) ||
        !arena_str(s->arena, service, &e->series.service) || !arena_str(s->arena, db_bytes(q, 0), &e->series.name) ||
        !arena_str(s->arena, db_bytes(q, 1), &e->series.spy))
        return scan_no_memory(s);
    err = blob_read_labels(db_bytes(q, 2), s->arena, &e->series.labels, &e->series.n_labels, s->f);
    db_reset(q);
    if (!err)
        e->wanted = !s->sel->series_match || s->sel->series_match(s->sel->ctx, &e->series);
    return err;
}

enum err scan_find_series(struct scan *s, struct file *t, struct str service, int64_t id, struct cached **out)
{
    *out = cache_find(&s->series, id);
    if (*out)
        return E_OK;
    *out = cache_add(s, &s->series, id);
    return *out ? read_series(s, t, service, *out) : scan_no_memory(s);
}

enum err scan_find_typeset(struct scan *s, struct file *t, int64_t id, struct cached **out)
{
    struct db_stmt *q;
    enum err e;

    *out = cache_find(&s->typesets, id);
    if (*out)
        return E_OK;
    *out = cache_add(s, &s->typesets, id);
    if (!*out)
        return scan_no_memory(s);
    q = file_stmt(t, FILE_GET_TYPESET);
    db_bind_int(q, 1, id);
    if (db_step(q) != DB_ROW)
        return scan_broken(s, t);
    e = blob_read_types(db_bytes(q, 0), s->arena, &(*out)->types, &(*out)->n_types, s->f);
    db_reset(q);
    return e;
}

struct cached *scan_known_series(const struct scan *s, int64_t id)
{
    return cache_find(&s->series, id);
}
