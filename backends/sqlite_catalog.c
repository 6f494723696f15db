/*
 * Opening and dropping happen under one lock, so that nobody opens half of a file that is going (SQLite opens the log
 * after the database). A generation, counted up by each drop, tells connections to a dropped file from those to a new
 * one of that name.
 */
#include "backends/sqlite_catalog.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <uv.h>

enum { IDLE_MAX = 16 };

struct catalog {
    uv_mutex_t lock;
    const char *dir;
    const struct hash_key *key;
    struct file_key *keys; /* sorted by day, then class */
    size_t n, cap;
    struct file *idle; /* used last comes first */
    size_t n_idle;
    uint64_t generation;
};

static int order(struct file_key a, struct file_key b)
{
    if (a.day != b.day)
        return a.day < b.day ? -1 : 1;
    return (int)a.class_days - (int)b.class_days;
}

/* Index of the first key that is not before `key`. */
static size_t lower_bound(const struct catalog *c, struct file_key key)
{
    size_t lo = 0, hi = c->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (order(c->keys[mid], key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool listed(const struct catalog *c, struct file_key key)
{
    size_t i = lower_bound(c, key);

    return i < c->n && file_key_eq(c->keys[i], key);
}

static bool add_key(struct catalog *c, struct file_key key)
{
    size_t at = lower_bound(c, key);

    if (at < c->n && file_key_eq(c->keys[at], key))
        return true;
    if (c->n == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : 32;
        struct file_key *keys = realloc(c->keys, cap * sizeof *keys);

        if (!keys)
            return false;
        c->keys = keys;
        c->cap = cap;
    }
    memmove(c->keys + at + 1, c->keys + at, (c->n - at) * sizeof *c->keys);
    c->keys[at] = key;
    c->n++;
    return true;
}

static enum err load(struct catalog *c, struct fault *f)
{
    DIR *d = opendir(c->dir);
    enum err e = E_OK;

    if (!d)
        return fault_set(f, E_STORE_DOWN, "%s: %s", c->dir, strerror(errno));
    for (struct dirent *at; !e && (at = readdir(d));) {
        struct file_key key;

        if (file_name_parse(at->d_name, &key) && !add_key(c, key))
            e = fault_set(f, E_NO_MEMORY, NULL);
    }
    closedir(d);
    return e;
}

struct catalog *catalog_open(const char *dir, const struct hash_key *key, struct fault *f)
{
    struct catalog *c = calloc(1, sizeof *c);

    if (!c || uv_mutex_init(&c->lock)) {
        free(c);
        fault_set(f, E_NO_MEMORY, NULL);
        return NULL;
    }
    c->dir = dir;
    c->key = key;
    if (!load(c, f)) {
        struct file *newest;

        if (!c->n)
            return c;
        newest = catalog_take(c, c->keys[c->n - 1], f);
        if (newest)
            catalog_give(c, newest);
        if (newest || f->err == E_NOT_FOUND)
            return c;
    }
    catalog_close(c);
    return NULL;
}

void catalog_close(struct catalog *c)
{
    if (!c)
        return;
    for (struct file *t = c->idle, *next; t; t = next) {
        next = t->next;
        file_close(t);
    }
    uv_mutex_destroy(&c->lock);
    free(c->keys);
    free(c);
}

bool catalog_has(struct catalog *c, struct file_key key)
{
    bool has;

    uv_mutex_lock(&c->lock);
    has = listed(c, key);
    uv_mutex_unlock(&c->lock);
    return has;
}

struct file *catalog_open_write(struct catalog *c, struct file_key key, struct fault *f)
{
    struct file *t;

    uv_mutex_lock(&c->lock);
    t = file_open(c->dir, key, DB_WRITE, c->key, f);
    if (t && !add_key(c, key)) {
        file_close(t);
        t = NULL;
        fault_set(f, E_NO_MEMORY, NULL);
    }
    uv_mutex_unlock(&c->lock);
    return t;
}

/* The first idle connection to key, off the list; any: the last one of the list. */
static struct file *take_idle(struct catalog *c, const struct file_key *key)
{
    for (struct file **at = &c->idle; *at; at = &(*at)->next) {
        struct file *t = *at;

        if (key ? !file_key_eq(t->key, *key) : t->next != NULL)
            continue;
        *at = t->next;
        t->next = NULL;
        c->n_idle--;
        return t;
    }
    return NULL;
}

void catalog_drop(struct catalog *c, struct file_key key)
{
    size_t at;

    uv_mutex_lock(&c->lock);
    for (struct file *t; (t = take_idle(c, &key));)
        file_close(t);
    at = lower_bound(c, key);
    if (at < c->n && file_key_eq(c->keys[at], key)) {
        c->n--;
        memmove(c->keys + at, c->keys + at + 1, (c->n - at) * sizeof *c->keys);
    }
    file_unlink(c->dir, key);
    c->generation++;
    uv_mutex_unlock(&c->lock);
}

bool catalog_list(struct catalog *c, int32_t first, int32_t last, struct file_key **keys, size_t *n)
{
    size_t from, until;

    uv_mutex_lock(&c->lock);
    from = lower_bound(c, (struct file_key){.day = first});
    until = lower_bound(c, (struct file_key){.day = last, .class_days = UINT16_MAX});
    *n = until > from ? until - from : 0;
    *keys = malloc((*n ? *n : 1) * sizeof **keys);
    if (*keys && *n)
        memcpy(*keys, c->keys + from, *n * sizeof **keys);
    uv_mutex_unlock(&c->lock);
    return *keys != NULL;
}

struct file *catalog_take(struct catalog *c, struct file_key key, struct fault *f)
{
    struct file *t = NULL;

    uv_mutex_lock(&c->lock);
    if (!listed(c, key)) {
        fault_set(f, E_NOT_FOUND, "expired");
    } else if (!(t = take_idle(c, &key))) {
        t = file_open(c->dir, key, DB_READ, c->key, f);
        if (t)
            t->used = c->generation;
    }
    uv_mutex_unlock(&c->lock);
    return t;
}

void catalog_give(struct catalog *c, struct file *t)
{
    struct file *out = NULL;

    db_rest(t->db);
    uv_mutex_lock(&c->lock);
    if (t->used != c->generation) {
        out = t;
    } else {
        t->next = c->idle;
        c->idle = t;
        if (++c->n_idle > IDLE_MAX)
            out = take_idle(c, NULL);
    }
    uv_mutex_unlock(&c->lock);
    file_close(out);
}

enum err catalog_each(struct catalog *c, int32_t first, int32_t last, catalog_visit visit, void *ctx, struct fault *f)
{
    struct file_key *keys;
    enum err e = E_OK;
    size_t n;

    if (!catalog_list(c, first, last, &keys, &n))
        return fault_set(f, E_NO_MEMORY, NULL);
    for (size_t i = 0; !e && i < n; i++) {
        struct fault why = {0};
        struct file *t = catalog_take(c, keys[i], &why);

        if (!t) {
            e = why.err == E_NOT_FOUND ? E_OK : fault_set(f, why.err, "%s", why.text);
            continue;
        }
        e = visit(ctx, t, f);
        catalog_give(c, t);
    }
    free(keys);
    return e;
}
