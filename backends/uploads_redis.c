/*
 * The upload ledger in Redis: two capped streams a project, which all replicas add to and read.
 *
 *   fs:uploads:{PROJECT}:good, :other   entry = "b", an upload_entry_pack
 *
 * PROJECT: keyed hash of its name, 16 hexadecimal digits. Redis cuts a stream back to about what is kept; one that
 * nothing has been added to for 30 days goes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "backends/redis_link.h"
#include "backends/uploads_store.h"

enum { DEADLINE_MS = 2000, KEY = 64, AT_ONCE = 500, TTL_S = 30 * 86400 };

struct uploads_store {
    struct redis_address address;
    const struct hash_key *key;
    char keep[16], ttl[16];
    struct redis_link *writer; /* the thread's */
    uv_mutex_t lock;           /* of the reader */
    struct redis_link *reader;
};

static void redis_close(struct uploads_store *s)
{
    redis_link_free(s->writer);
    redis_link_free(s->reader);
    uv_mutex_destroy(&s->lock);
    free(s);
}

static struct uploads_store *redis_open(const struct uploads_options *o, struct str address, struct fault *f)
{
    struct uploads_store *s = calloc(1, sizeof *s);

    if (!s || uv_mutex_init(&s->lock)) {
        free(s);
        fault_set(f, E_NO_MEMORY, NULL);
        return NULL;
    }
    s->key = o->key;
    snprintf(s->keep, sizeof s->keep, "%u", o->keep);
    snprintf(s->ttl, sizeof s->ttl, "%d", TTL_S);
    if (redis_address_parse(&s->address, address, f) == E_OK) {
        s->writer = redis_link_new(&s->address, DEADLINE_MS);
        s->reader = redis_link_new(&s->address, DEADLINE_MS);
        if (s->writer && s->reader)
            return s;
        fault_set(f, E_NO_MEMORY, NULL);
    }
    redis_close(s);
    return NULL;
}

static void key_of(const struct uploads_store *s, struct str project, bool good, char out[KEY])
{
    snprintf(out, KEY, "fs:uploads:{%016" PRIx64 "}:%s", hash64(s->key, project.p, project.len),
             good ? "good" : "other");
}

/* An error that passes (loading, out of memory, read only) looks like any other: all may come again. */
static enum err redis_put(struct uploads_store *s, const struct upload_item *list, struct fault *f)
{
    char key[KEY] = "", before[KEY] = "";
    enum err e = E_OK;
    unsigned n = 0;

    for (; list && !e; list = list->next) {
        key_of(s, upload_item_project(list), list->good, key);
        REDIS_COMMAND(s->writer, STR("XADD"), str_of(key), STR("MAXLEN"), STR("~"), str_of(s->keep), STR("*"), STR("b"),
                      upload_item_body(list));
        if (strcmp(key, before) != 0)
            REDIS_COMMAND(s->writer, STR("EXPIRE"), str_of(key), str_of(s->ttl));
        memcpy(before, key, sizeof before);
        if (++n % AT_ONCE == 0 || !list->next)
            e = redis_run(s->writer, NULL, NULL, f);
    }
    return e;
}

struct page {
    uploads_row row;
    void *ctx;
    char last[48]; /* id; "" : the stream has no more */
    struct fault *f;
};

/* [[id, [field, value]], ...] */
static enum err on_page(void *ctx, unsigned number, const struct redis_reply *r)
{
    struct page *p = ctx;
    enum err e = E_OK;

    (void)number;
    p->last[0] = '\0';
    if (redis_is_error(r))
        return fault_set(p->f, E_STORE_DOWN, "redis: %.100s", redis_text(r).p);
    for (size_t i = 0; !e && i < redis_items(r); i++) {
        const struct redis_reply *entry = redis_item(r, i), *fields;

        if (redis_items(entry) != 2 || redis_items(fields = redis_item(entry, 1)) != 2)
            continue;
        struct str id = redis_text(redis_item(entry, 0));
        snprintf(p->last, sizeof p->last, "(%.*s", (int)(id.len < 40 ? id.len : 40), id.p);
        e = p->row(p->ctx, redis_text(redis_item(fields, 1)));
    }
    return e;
}

static enum err scan_kind(struct uploads_store *s, struct str project, bool good, uploads_row row, void *ctx,
                          struct fault *f)
{
    char key[KEY], count[16];
    struct page p = {.row = row, .ctx = ctx, .last = "+", .f = f};
    enum err e = E_OK;

    key_of(s, project, good, key);
    snprintf(count, sizeof count, "%d", AT_ONCE);
    while (!e && p.last[0]) {
        char from[sizeof p.last];

        memcpy(from, p.last, sizeof from);
        REDIS_COMMAND(s->reader, STR("XREVRANGE"), str_of(key), str_of(from), STR("-"), STR("COUNT"), str_of(count));
        e = redis_run(s->reader, on_page, &p, f);
    }
    return e;
}

static enum err redis_scan(struct uploads_store *s, struct str project, uploads_row row, void *ctx, struct fault *f)
{
    enum err e;

    uv_mutex_lock(&s->lock);
    e = scan_kind(s, project, true, row, ctx, f);
    if (!e)
        e = scan_kind(s, project, false, row, ctx, f);
    uv_mutex_unlock(&s->lock);
    return e;
}

const struct uploads_ops uploads_redis_ops = {
    .scheme = "redis", .open = redis_open, .put = redis_put, .scan = redis_scan, .close = redis_close};
