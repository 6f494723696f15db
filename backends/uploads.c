/*
 * The queue between the loop and the store of the ledger, and the thread that empties it. The thread sleeps a little
 * before it writes, so that a crowd of uploads costs one wake-up and one transaction.
 */
#include "backends/uploads_store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

enum {
    GATHER_MS = 200,
    BATCH = 2000,
    RETRY_MS = 1000,
    LIST_WAIT_MS = 1000,
    CLOSE_MS = 3000,
    CLOSING_RETRY_MS = 20,
    NICENESS = 10
};

struct uploads {
    const struct uploads_ops *ops; /* NULL: nothing is kept */
    struct uploads_store *store;
    uint32_t keep;
    uint64_t writer;
    size_t max_bytes;
    void (*log)(void *ctx, int level, const char *text);
    void *ctx;
    uint64_t added;     /* the loop's */
    struct buf scratch; /* the loop's */

    uv_thread_t thread;
    uv_mutex_t lock; /* of what follows */
    uv_cond_t wake, moved;
    struct upload_item *first, **last;
    size_t bytes;
    uint64_t newest, finished; /* numbers of the last entry that came, and that was written or given up */
    bool hurry, closing;
    uint64_t close_by_ns;
    struct uploads_stats stats;
    bool tried; /* the thread's */
};

static const struct uploads_ops *const all[] = {&uploads_sqlite_ops, &uploads_redis_ops};

static const struct uploads_ops *find(struct str address, struct str *rest)
{
    for (size_t i = 0; i < COUNTOF(all); i++) {
        struct str scheme = str_of(all[i]->scheme);

        if (!str_starts(address, scheme) || address.len == scheme.len || address.p[scheme.len] != ':')
            continue;
        *rest = (struct str){address.p + scheme.len + 1, address.len - scheme.len - 1};
        return all[i];
    }
    return NULL;
}

static size_t size_of(const struct upload_item *i)
{
    return sizeof *i + i->project_len + i->body_len;
}

static struct upload_item *pop(struct uploads *u)
{
    struct upload_item *i = u->first;

    u->first = i->next;
    if (!u->first)
        u->last = &u->first;
    u->bytes -= size_of(i);
    u->stats.waiting--;
    return i;
}

/* With the lock. The oldest make room. */
static void push(struct uploads *u, struct upload_item *i)
{
    while (u->first && u->bytes + size_of(i) > u->max_bytes) {
        free(pop(u));
        u->stats.dropped++;
    }
    bool idle = !u->first;
    *u->last = i;
    u->last = &i->next;
    u->newest = i->number;
    u->bytes += size_of(i);
    u->stats.waiting++;
    if (idle || (u->bytes > u->max_bytes / 2 && !u->hurry)) {
        u->hurry = !idle;
        uv_cond_signal(&u->wake);
    }
}

static void count_dropped(struct uploads *u)
{
    uv_mutex_lock(&u->lock);
    u->stats.dropped++;
    uv_mutex_unlock(&u->lock);
}

void uploads_add(struct uploads *u, struct str project, struct upload_entry *e)
{
    struct upload_item *i = NULL;

    if (!u->ops)
        return;
    e->writer = u->writer;
    e->number = ++u->added;
    u->scratch.len = 0;
    u->scratch.failed = false;
    upload_entry_pack(e, &u->scratch);
    if (!u->scratch.failed && u->scratch.len <= UPLOAD_BODY_MAX)
        i = malloc(sizeof *i + project.len + u->scratch.len);
    if (!i) {
        count_dropped(u);
        return;
    }
    *i = (struct upload_item){.number = e->number,
                              .good = e->verdict == VERDICT_ACCEPTED,
                              .project_len = (uint32_t)project.len,
                              .body_len = (uint32_t)u->scratch.len};
    memcpy(i->bytes, project.p, project.len);
    memcpy(i->bytes + project.len, u->scratch.p, u->scratch.len);
    uv_mutex_lock(&u->lock);
    push(u, i);
    uv_mutex_unlock(&u->lock);
}

/* With the lock: some of what waits, once there is something and it had time to gather. NULL: closing, and empty. */
static struct upload_item *take(struct uploads *u)
{
    struct upload_item *list = NULL, **at = &list;

    while (!u->first && !u->closing)
        uv_cond_wait(&u->wake, &u->lock);
    if (!u->hurry && !u->closing)
        uv_cond_timedwait(&u->wake, &u->lock, GATHER_MS * UINT64_C(1000000));
    for (int n = 0; u->first && n < BATCH; n++) {
        *at = pop(u);
        at = &(*at)->next;
    }
    *at = NULL;
    return list;
}

static uint64_t free_all(struct upload_item *list, uint64_t *last)
{
    uint64_t n = 0;

    for (struct upload_item *next; list; list = next, n++) {
        next = list->next;
        *last = list->number;
        free(list);
    }
    return n;
}

/* With the lock: they come again, before all others. */
static void put_back(struct uploads *u, struct upload_item *list)
{
    struct upload_item **at = &list;

    for (; *at; at = &(*at)->next) {
        u->bytes += size_of(*at);
        u->stats.waiting++;
    }
    *at = u->first;
    if (!u->first)
        u->last = at;
    u->first = list;
}

static void say(struct uploads *u, enum err e, const struct fault *f)
{
    char text[320];

    if (u->tried && u->stats.healthy == !e)
        return;
    u->tried = true;
    snprintf(text, sizeof text, "uploads=%s ev=%s%s%s%s", u->ops->scheme, e ? "away" : "connected", e ? " why=\"" : "",
             e ? f->text : "", e ? "\"" : "");
    u->log(u->ctx, e ? 1 : 2, text);
}

static void wait_for_store(struct uploads *u)
{
    uint64_t now = uv_hrtime(), until = now + RETRY_MS * UINT64_C(1000000);

    for (; now < until && !u->closing; now = uv_hrtime())
        uv_cond_timedwait(&u->wake, &u->lock, until - now);
    if (u->closing)
        uv_cond_timedwait(&u->wake, &u->lock, CLOSING_RETRY_MS * UINT64_C(1000000));
}

static void write_some(struct uploads *u, struct upload_item *list)
{
    struct fault f = {.err = E_OK};
    uint64_t last = u->finished, n;
    enum err e;

    uv_mutex_unlock(&u->lock);
    e = u->ops->put(u->store, list, &f);
    say(u, e, &f);
    uv_mutex_lock(&u->lock);
    u->stats.healthy = !e;
    bool passing = e == E_STORE_DOWN || e == E_NO_MEMORY,
         again = passing && (!u->closing || uv_hrtime() < u->close_by_ns);
    if (again) {
        put_back(u, list);
        u->hurry = false;
        uv_cond_broadcast(&u->moved);
        wait_for_store(u);
        return;
    }
    n = free_all(list, &last);
    *(e == E_OK ? &u->stats.kept : passing ? &u->stats.dropped : &u->stats.failed) += n;
    u->finished = last;
    if (!u->first)
        u->hurry = false;
    uv_cond_broadcast(&u->moved);
}

static void run(void *arg)
{
    struct uploads *u = arg;
    struct upload_item *list;

    pthread_setname_np(pthread_self(), "fg-uploads");
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICENESS); /* of this thread alone, on Linux */
    uv_mutex_lock(&u->lock);
    while ((list = take(u)))
        write_some(u, list);
    uv_mutex_unlock(&u->lock);
}

static bool start(struct uploads *u)
{
    if (uv_mutex_init(&u->lock))
        return false;
    if (uv_cond_init(&u->wake) == 0) {
        if (uv_cond_init(&u->moved) == 0) {
            if (uv_thread_create(&u->thread, run, u) == 0)
                return true;
            uv_cond_destroy(&u->moved);
        }
        uv_cond_destroy(&u->wake);
    }
    uv_mutex_destroy(&u->lock);
    return false;
}

struct uploads *uploads_open(const struct uploads_options *o, struct str shares, struct fault *f)
{
    struct uploads *u = calloc(1, sizeof *u);
    struct str rest;

    if (!u) {
        fault_set(f, E_NO_MEMORY, NULL);
        return NULL;
    }
    u->keep = o->keep;
    u->writer = o->writer;
    u->max_bytes = o->queue_bytes;
    u->log = o->log;
    u->ctx = o->ctx;
    u->last = &u->first;
    u->stats.healthy = true;
    const struct uploads_ops *ops = o->keep ? find(shares, &rest) : NULL;
    if (!ops)
        return u;
    u->store = ops->open(o, rest, f);
    if (u->store && start(u)) {
        u->ops = ops;
        return u;
    }
    if (u->store)
        ops->close(u->store);
    fault_set(f, E_NO_MEMORY, NULL);
    free(u);
    return NULL;
}

const char *uploads_scheme(const struct uploads *u)
{
    return u->ops ? u->ops->scheme : "null";
}

uint32_t uploads_keep(const struct uploads *u)
{
    return u->ops ? u->keep : 0;
}

/* Until what was added before is written, or that seems not to be possible for now. */
static void wait_for_written(struct uploads *u)
{
    uint64_t now = uv_hrtime(), until, target;

    uv_mutex_lock(&u->lock);
    target = u->newest;
    until = now + (u->stats.healthy ? LIST_WAIT_MS : LIST_WAIT_MS / 10) * UINT64_C(1000000);
    for (; u->finished < target && now < until; now = uv_hrtime()) {
        u->hurry = true;
        uv_cond_signal(&u->wake);
        uv_cond_timedwait(&u->moved, &u->lock, until - now);
    }
    uv_mutex_unlock(&u->lock);
}

struct listing {
    uploads_visit visit;
    void *ctx;
};

static enum err on_row(void *ctx, struct str body)
{
    struct listing *l = ctx;
    struct upload_entry e;

    return upload_entry_unpack(body, &e) ? l->visit(l->ctx, &e, body) : E_OK;
}

enum err uploads_list(struct uploads *u, struct str project, uploads_visit visit, void *ctx, struct fault *f)
{
    struct listing l = {visit, ctx};

    if (!u->ops)
        return E_OK;
    wait_for_written(u);
    return u->ops->scan(u->store, project, on_row, &l, f);
}

void uploads_stats(struct uploads *u, struct uploads_stats *out)
{
    if (!u->ops) {
        *out = u->stats;
        return;
    }
    uv_mutex_lock(&u->lock);
    *out = u->stats;
    uv_mutex_unlock(&u->lock);
}

void uploads_close(struct uploads *u)
{
    if (!u)
        return;
    if (u->ops) {
        uv_mutex_lock(&u->lock);
        u->closing = true;
        u->close_by_ns = uv_hrtime() + CLOSE_MS * UINT64_C(1000000);
        uv_cond_signal(&u->wake);
        uv_mutex_unlock(&u->lock);
        uv_thread_join(&u->thread);
        uv_mutex_destroy(&u->lock);
        uv_cond_destroy(&u->wake);
        uv_cond_destroy(&u->moved);
        u->ops->close(u->store);
    }
    buf_free(&u->scratch);
    free(u);
}
