/* The share store in Redis, its reading side, and the hours. On threads that may wait. */
#include <stdio.h>

#include "backends/redis_store.h"

enum { KEYS_PER_RUN = 60 };

/* Answers of one run: that of number i belongs to `first` + i. */
struct reading {
    int64_t first;
    share_row row;
    void *ctx;
    struct fault *f;
    enum err err; /* of the row, or of what Redis said */
};

static enum err refuse(struct reading *r, const struct redis_reply *reply)
{
    r->err = fault_set(r->f, E_STORE_DOWN, "redis: %.*s", (int)redis_text(reply).len, redis_text(reply).p);
    return r->err;
}

static enum err on_minute(void *ctx, unsigned number, const struct redis_reply *reply)
{
    struct reading *r = ctx;

    if (redis_is_error(reply))
        return refuse(r, reply);
    for (size_t i = 1; !r->err && i < redis_items(reply); i += 2) /* field, value, field, value, ... */
        r->err = r->row(r->ctx, r->first + number, redis_text(redis_item(reply, i)));
    return r->err;
}

static enum err on_hour(void *ctx, unsigned number, const struct redis_reply *reply)
{
    struct reading *r = ctx;

    if (redis_is_error(reply))
        return refuse(r, reply);
    if (!redis_is_nil(reply))
        r->err = r->row(r->ctx, r->first + number, redis_text(reply));
    return r->err;
}

typedef void (*key_maker)(const struct hash_key *k, const struct share_of *of, int64_t at, char out[REDIS_KEY]);

static enum err read_all(struct share_store *s, const struct share_of *of, int64_t first, int64_t last,
                         const char *command, key_maker key_of, redis_answer answer, struct reading *r)
{
    struct redis_link *l;
    enum err e;

    if (!redis_healthy(s))
        return fault_set(r->f, E_STORE_DOWN, "redis: away");
    l = redis_take(s);
    e = l ? E_OK : fault_set(r->f, E_NO_MEMORY, NULL);
    for (int64_t at = first; !e && at <= last;) {
        r->first = at;
        for (int i = 0; i < KEYS_PER_RUN && at <= last; i++, at++) {
            char key[REDIS_KEY];

            key_of(s->host->key, of, at, key);
            REDIS_COMMAND(l, str_of(command), str_of(key));
        }
        e = redis_run(l, answer, r, r->f);
    }
    if (l)
        redis_give(s, l);
    return r->err ? r->err : e;
}

static enum err redis_minutes(struct share_store *s, const struct share_of *of, int64_t first, int64_t last,
                              share_row row, void *ctx, struct fault *f)
{
    struct reading r = {.row = row, .ctx = ctx, .f = f};

    return read_all(s, of, first, last, "HGETALL", redis_key_minute, on_minute, &r);
}

static enum err redis_hours(struct share_store *s, const struct share_of *of, int64_t first, int64_t last,
                            share_row row, void *ctx, struct fault *f)
{
    struct reading r = {.row = row, .ctx = ctx, .f = f};

    return read_all(s, of, first, last, "GET", redis_key_hour, on_hour, &r);
}

const struct share_reader_ops redis_read_ops = {.minutes = redis_minutes, .hours = redis_hours};

enum err redis_put_hour(struct share_store *s, const struct share_of *of, int64_t hour, const struct shares *shares,
                        uint32_t days, struct fault *f)
{
    struct redis_link *l = redis_take(s);
    struct buf packed = {0};
    char key[REDIS_KEY], ttl[24];
    enum err e;

    if (!l)
        return fault_set(f, E_NO_MEMORY, NULL);
    shares_pack(shares, &packed);
    redis_key_hour(s->host->key, of, hour, key);
    snprintf(ttl, sizeof ttl, "%llu", (unsigned long long)days * 86400);
    if (packed.failed) {
        e = fault_set(f, E_NO_MEMORY, NULL);
    } else {
        REDIS_COMMAND(l, STR("SET"), str_of(key), buf_view(&packed), STR("EX"), str_of(ttl));
        e = redis_run(l, NULL, NULL, f);
    }
    buf_free(&packed);
    redis_give(s, l);
    return e;
}
