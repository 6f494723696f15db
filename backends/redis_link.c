/* The connection: made, authenticated and given a database before the first command; gone after any failure, since what
 * is still to come over it would be taken for other answers. */
#include "backends/redis_link.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

enum { BACKOFF_FIRST_MS = 100, BACKOFF_MAX_MS = 3000 };

struct redis_link {
    const struct redis_address *address;
    struct timeval deadline;
    redisContext *context; /* NULL: not connected */
    struct buf waiting;    /* commands of the next run, as they are sent */
    unsigned n;
    int64_t retry_ms; /* no attempt before */
    uint32_t backoff_ms;
    unsigned seed;
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct redis_link *redis_link_new(const struct redis_address *address, uint32_t deadline_ms)
{
    struct redis_link *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->address = address;
    l->deadline = (struct timeval){deadline_ms / 1000, (suseconds_t)(deadline_ms % 1000) * 1000};
    l->seed = (unsigned)(uintptr_t)l ^ (unsigned)now_ms();
    return l;
}

static void drop(struct redis_link *l)
{
    if (l->context)
        redisFree(l->context);
    l->context = NULL;
}

void redis_link_free(struct redis_link *l)
{
    if (!l)
        return;
    drop(l);
    buf_free(&l->waiting);
    free(l);
}

void redis_command(struct redis_link *l, const struct str *arguments, unsigned n)
{
    buf_printf(&l->waiting, "*%u\r\n", n);
    for (unsigned i = 0; i < n; i++) {
        buf_printf(&l->waiting, "$%zu\r\n", arguments[i].len);
        buf_str(&l->waiting, arguments[i]);
        buf_add(&l->waiting, "\r\n", 2);
    }
    l->n++;
}

void redis_forget(struct redis_link *l)
{
    buf_free(&l->waiting);
    l->n = 0;
}

static enum err down(struct redis_link *l, struct fault *f, const char *why)
{
    fault_set(f, E_STORE_DOWN, "redis: %s", why);
    drop(l);
    return E_STORE_DOWN;
}

static const char *why_of(const redisContext *c)
{
    if (!c)
        return "no memory";
    return c->errstr[0] ? c->errstr : "did not answer in time";
}

/* One command of the greeting. NULL: it went well. */
static enum err greet(struct redis_link *l, int n, const char **words, struct fault *f)
{
    redisReply *r = redisCommandArgv(l->context, n, words, NULL);
    char text[128];

    if (!r)
        return down(l, f, why_of(l->context));
    snprintf(text, sizeof text, "%.100s", r->type == REDIS_REPLY_ERROR ? r->str : "");
    freeReplyObject(r);
    return text[0] ? down(l, f, text) : E_OK;
}

static enum err greet_all(struct redis_link *l, struct fault *f)
{
    const struct redis_address *a = l->address;
    const char *words[3] = {"AUTH"};
    char db[16];
    enum err e = E_OK;
    int n = 1;

    if (a->user[0])
        words[n++] = a->user;
    if (a->password[0])
        words[n++] = a->password;
    if (n > 1)
        e = greet(l, n, words, f);
    if (e || a->db == 0)
        return e;
    snprintf(db, sizeof db, "%u", (unsigned)a->db);
    return greet(l, 2, (const char *[]){"SELECT", db}, f);
}

static enum err make(struct redis_link *l, struct fault *f)
{
    const struct redis_address *a = l->address;

    l->context = a->host[0] == '/' ? redisConnectUnixWithTimeout(a->host, l->deadline)
                                   : redisConnectWithTimeout(a->host, a->port, l->deadline);
    if (!l->context || l->context->err || redisSetTimeout(l->context, l->deadline) != REDIS_OK)
        return down(l, f, why_of(l->context));
    return greet_all(l, f);
}

/* Attempts come apart more and more, and not all replicas at once. */
static enum err connect_now(struct redis_link *l, struct fault *f)
{
    int64_t now = now_ms();
    enum err e;

    if (l->context)
        return E_OK;
    if (now < l->retry_ms)
        return fault_set(f, E_STORE_DOWN, "redis: away");
    e = make(l, f);
    if (!e) {
        l->backoff_ms = 0;
        return E_OK;
    }
    l->backoff_ms = l->backoff_ms ? l->backoff_ms * 2 : BACKOFF_FIRST_MS;
    if (l->backoff_ms > BACKOFF_MAX_MS)
        l->backoff_ms = BACKOFF_MAX_MS;
    l->retry_ms = now_ms() + l->backoff_ms / 2 + rand_r(&l->seed) % (l->backoff_ms / 2 + 1);
    return e;
}

static enum err hear(struct redis_link *l, unsigned number, redis_answer answer, void *ctx, struct fault *f)
{
    void *reply = NULL;
    enum err e = E_OK;

    if (redisGetReply(l->context, &reply) != REDIS_OK || !reply)
        return down(l, f, why_of(l->context));
    if (answer)
        e = answer(ctx, number, reply);
    else if (redis_is_error(reply))
        e = fault_set(f, E_STORE_DOWN, "redis: %.100s", ((redisReply *)reply)->str);
    freeReplyObject(reply);
    if (e)
        drop(l);
    return e;
}

enum err redis_run(struct redis_link *l, redis_answer answer, void *ctx, struct fault *f)
{
    unsigned n = l->n;
    enum err e = connect_now(l, f);

    if (!e && l->waiting.failed)
        e = fault_set(f, E_NO_MEMORY, NULL);
    if (!e && n && redisAppendFormattedCommand(l->context, l->waiting.p, l->waiting.len) != REDIS_OK)
        e = down(l, f, why_of(l->context));
    redis_forget(l);
    for (unsigned i = 0; !e && i < n; i++)
        e = hear(l, i, answer, ctx, f);
    return e;
}

static const redisReply *of(const struct redis_reply *r)
{
    return (const redisReply *)(const void *)r;
}

bool redis_is_nil(const struct redis_reply *r)
{
    return of(r)->type == REDIS_REPLY_NIL;
}

bool redis_is_error(const struct redis_reply *r)
{
    return of(r)->type == REDIS_REPLY_ERROR;
}

struct str redis_text(const struct redis_reply *r)
{
    int type = of(r)->type;
    bool text = type == REDIS_REPLY_STRING || type == REDIS_REPLY_STATUS || type == REDIS_REPLY_ERROR;

    return text ? (struct str){of(r)->str, (size_t)of(r)->len} : (struct str){"", 0};
}

size_t redis_items(const struct redis_reply *r)
{
    return of(r)->type == REDIS_REPLY_ARRAY ? of(r)->elements : 0;
}

const struct redis_reply *redis_item(const struct redis_reply *r, size_t i)
{
    return (const struct redis_reply *)(const void *)of(r)->element[i];
}
