/*
 * The share store in Redis, its writing side: a queue from the loop, and one thread that adds shares up and puts them,
 * about once a second. While Redis is away minutes wait, for a bounded while and in bounded memory; when it comes back
 * empty, they are put again, which is told by its epoch.
 */
#include "backends/redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backends/redis_store.h"

enum { ROUND_MS = 1000, TAKE_MAX = 64 };
static const uint64_t PENDING_MAX_BYTES = (uint64_t)16 << 20;
/* An hour that is open, and what comes until it is compacted. */
static const int64_t KEEP_NS = INT64_C(80) * 60 * 1000000000;
/* Minutes so old are left to the hours. */
static const int64_t LATE_NS = INT64_C(2) * 3600 * 1000000000;

static int64_t wall_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void charge(struct share_store *s)
{
    uint64_t now;

    uv_mutex_lock(&s->lock);
    now = s->pending_bytes + s->minutes.bytes;
    s->stats.memory = now;
    uv_mutex_unlock(&s->lock);
    s->host->account(s->host->ctx, "minutes", (int64_t)now - (int64_t)s->charged);
    s->charged = now;
}

static void drop(struct share_store *s, struct record *r)
{
    record_free(r);
    uv_mutex_lock(&s->lock);
    s->stats.dropped++;
    uv_mutex_unlock(&s->lock);
}

static void redis_add(struct share_store *s, struct record *r, struct attempt a)
{
    struct pending_shares *p = malloc(sizeof *p);
    bool taken = false;

    if (p) {
        *p = (struct pending_shares){.record = r, .attempt = a};
        uv_mutex_lock(&s->lock);
        taken = s->pending_bytes + r->bytes <= PENDING_MAX_BYTES;
        if (taken) {
            *s->last = p;
            s->last = &p->next;
            s->pending_bytes += r->bytes;
            uv_cond_signal(&s->wake);
        }
        uv_mutex_unlock(&s->lock);
    }
    if (taken)
        return;
    free(p);
    drop(s, r);
}

/* Some of what has come; waits for it no longer than `ms`. *closing: nothing will come any more. */
static struct pending_shares *take(struct share_store *s, uint64_t ms, bool *closing)
{
    struct pending_shares *list, **at;
    uint64_t bytes = 0;
    int n = 0;

    uv_mutex_lock(&s->lock);
    if (!s->first && !s->closing && ms)
        uv_cond_timedwait(&s->wake, &s->lock, ms * 1000000);
    list = s->first;
    for (at = &list; *at && n < TAKE_MAX; at = &(*at)->next, n++)
        bytes += (*at)->record->bytes;
    s->first = *at;
    *at = NULL;
    if (!s->first)
        s->last = &s->first;
    s->pending_bytes -= bytes;
    *closing = s->closing && !s->first;
    uv_mutex_unlock(&s->lock);
    return list;
}

static void add_all(struct share_store *s, struct pending_shares *list)
{
    int64_t now = wall_ns();

    for (struct pending_shares *next; list; list = next) {
        bool late = list->record->time_ns < now - LATE_NS;

        next = list->next;
        if (late || !redis_minutes_add(&s->minutes, list->record, list->attempt, now))
            drop(s, list->record);
        else
            record_free(list->record);
        free(list);
    }
}

static void say(struct share_store *s, int level, const char *what, const char *why)
{
    store_log(s->host, level, "shares=redis ev=%s%s%s%s", what, why[0] ? " why=\"" : "", why, why[0] ? "\"" : "");
}

static enum err on_epoch(void *ctx, unsigned number, const struct redis_reply *r)
{
    char *epoch = ctx;
    struct str text = redis_text(r);

    if (redis_is_error(r))
        return E_STORE_DOWN;
    if (number == 1)
        snprintf(epoch, EPOCH_TEXT, "%.*s", (int)(text.len < EPOCH_TEXT ? text.len : EPOCH_TEXT - 1), text.p);
    return E_OK;
}

/* Whoever finds no epoch makes one; whoever finds another one than before knows that all was lost. */
static enum err look_at_epoch(struct share_store *s, struct fault *f)
{
    char fresh[EPOCH_TEXT], found[EPOCH_TEXT] = "";
    uint64_t random = 0;
    enum err e;

    uv_random(NULL, NULL, &random, sizeof random, 0, NULL);
    snprintf(fresh, sizeof fresh, "%016llx", (unsigned long long)random);
    REDIS_COMMAND(s->link, STR("SET"), STR("fs:epoch"), str_of(fresh), STR("NX"));
    REDIS_COMMAND(s->link, STR("GET"), STR("fs:epoch"));
    e = redis_run(s->link, on_epoch, found, f);
    if (e)
        return f->err ? e : fault_set(f, e, "redis: refuses SET or GET of fs:epoch");
    if (strcmp(found, s->epoch) != 0) {
        bool emptied = s->epoch[0] != '\0';

        memcpy(s->epoch, found, sizeof found);
        redis_minutes_spread(&s->minutes);
        uv_mutex_lock(&s->lock);
        s->stats.emptied += emptied;
        uv_mutex_unlock(&s->lock);
        if (emptied)
            say(s, 1, "emptied", "");
    }
    return E_OK;
}

/* Puts what has changed. */
static void flush(struct share_store *s)
{
    struct fault f = {0};
    uint64_t flushed = 0;
    bool left = true, healthy;
    enum err e = look_at_epoch(s, &f);

    while (!e && left)
        e = redis_minutes_flush(&s->minutes, s->link, &flushed, &left, &f);
    uv_mutex_lock(&s->lock);
    healthy = s->stats.healthy;
    s->stats.healthy = !e;
    s->stats.flushed += flushed;
    s->stats.failed += e != E_OK;
    uv_mutex_unlock(&s->lock);
    if (healthy != !e || !s->tried)
        say(s, e ? 1 : 2, e ? "away" : "connected", f.text);
    s->tried = true;
    redis_minutes_trim(&s->minutes, wall_ns() - KEEP_NS, s->max_bytes);
}

static void run(void *arg)
{
    struct share_store *s = arg;
    uint64_t next = uv_hrtime();
    bool closing = false;

    while (!closing) {
        uint64_t now = uv_hrtime();

        add_all(s, take(s, now < next ? (next - now) / 1000000 + 1 : 0, &closing));
        charge(s);
        if (!closing && uv_hrtime() < next)
            continue;
        flush(s);
        charge(s);
        next = uv_hrtime() + ROUND_MS * UINT64_C(1000000);
    }
}

static void free_store(struct share_store *s)
{
    if (!s)
        return;
    for (unsigned i = 0; i < s->n_readers; i++)
        redis_link_free(s->readers[i]);
    redis_link_free(s->link);
    redis_minutes_free(&s->minutes);
    free(s);
}

static bool start(struct share_store *s)
{
    if (uv_mutex_init(&s->lock))
        return false;
    if (uv_cond_init(&s->wake)) {
        uv_mutex_destroy(&s->lock);
        return false;
    }
    if (uv_thread_create(&s->thread, run, s) == 0)
        return true;
    uv_cond_destroy(&s->wake);
    uv_mutex_destroy(&s->lock);
    return false;
}

static struct share_store *redis_open(const struct store_host *h, struct str address, struct fault *f)
{
    struct share_store *s = calloc(1, sizeof *s);

    if (!s) {
        fault_set(f, E_NO_MEMORY, NULL);
        return NULL;
    }
    s->host = h;
    s->last = &s->first;
    s->max_bytes = h->minutes_memory;
    if (redis_address_parse(&s->address, address, f)) {
        free_store(s);
        return NULL;
    }
    s->link = redis_link_new(&s->address, REDIS_DEADLINE_MS);
    if (s->link && redis_minutes_init(&s->minutes, h->key) && start(s))
        return s;
    fault_set(f, E_NO_MEMORY, NULL);
    free_store(s);
    return NULL;
}

static enum err redis_check(struct str address, struct fault *f)
{
    struct redis_address a;

    return redis_address_parse(&a, address, f);
}

static void redis_stats(struct share_store *s, struct share_stats *out)
{
    uv_mutex_lock(&s->lock);
    *out = s->stats;
    uv_mutex_unlock(&s->lock);
}

bool redis_healthy(struct share_store *s)
{
    struct share_stats now;

    redis_stats(s, &now);
    return now.healthy;
}

static void redis_close(struct share_store *s)
{
    uv_mutex_lock(&s->lock);
    s->closing = true;
    uv_cond_signal(&s->wake);
    uv_mutex_unlock(&s->lock);
    uv_thread_join(&s->thread);
    s->host->account(s->host->ctx, "minutes", -(int64_t)s->charged);
    uv_cond_destroy(&s->wake);
    uv_mutex_destroy(&s->lock);
    free_store(s);
}

struct redis_link *redis_take(struct share_store *s)
{
    struct redis_link *l = NULL;

    uv_mutex_lock(&s->lock);
    if (s->n_readers)
        l = s->readers[--s->n_readers];
    uv_mutex_unlock(&s->lock);
    return l ? l : redis_link_new(&s->address, REDIS_DEADLINE_MS);
}

void redis_give(struct share_store *s, struct redis_link *l)
{
    uv_mutex_lock(&s->lock);
    if (s->n_readers < REDIS_READERS) {
        s->readers[s->n_readers++] = l;
        l = NULL;
    }
    uv_mutex_unlock(&s->lock);
    redis_link_free(l);
}

const struct share_store_ops share_store_redis = {
    .scheme = "redis",
    .read = &redis_read_ops,
    .open = redis_open,
    .check = redis_check,
    .add = redis_add,
    .put_hour = redis_put_hour,
    .stats = redis_stats,
    .close = redis_close,
};
