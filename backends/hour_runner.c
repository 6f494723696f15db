#include "backends/hour_runner.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/day.h"
#include "backends/hour_shares.h"

enum { NICE = 10, LIST_MAX = 65536, PATIENCE = 10 };
static const uint64_t PASS_NS = 60 * UINT64_C(1000000000), STEP_NS = 50 * UINT64_C(1000000);
static const size_t LIST_BYTES = (size_t)32 << 20;

/* An hour that failed; not tried again for some passes. */
struct put_off {
    struct str project, service;
    int64_t hour;
    uint64_t until_pass;
};
enum { PUT_OFF_MAX = 256 };

struct hour_runner {
    const struct backend *backend;
    struct sample_store *store;
    const struct store_host *host;
    struct hour_options options;
    uv_thread_t thread;
    uv_mutex_t lock; /* of stats, stop and the waiting */
    uv_cond_t wake;
    bool asked; /* to look again, maybe while it looks */
    bool stop;
    atomic_bool cancel;
    _Atomic uint32_t raw_days;
    struct hour_stats stats;

    /* the thread's own */
    struct arena *arena; /* of the pass */
    struct hour_todo *todos;
    uint32_t n, cap;
    struct put_off off[PUT_OFF_MAX];
    uint32_t n_off;
    uint64_t pass, emptied;
};

static const struct hour_todo no_hour = {.project = {"", 0}, .service = {"", 0}};

static void say(const struct hour_runner *r, int level, const char *event, const struct hour_todo *t, const char *why)
{
    store_log(r->host, level, "ev=%s project=%.*s service=%.*s hour=%lld why=\"%s\"", event, STR_ARG(t->project),
              STR_ARG(t->service), (long long)t->hour, why);
}

static bool is_off(struct hour_runner *r, const struct hour_todo *t)
{
    for (uint32_t i = 0; i < r->n_off; i++) {
        const struct put_off *o = &r->off[i];

        if (o->hour == t->hour && o->until_pass > r->pass && str_eq(o->project, t->project) &&
            str_eq(o->service, t->service))
            return true;
    }
    return false;
}

static void free_off(struct put_off *o)
{
    free((char *)(uintptr_t)o->project.p);
}

/* Forgets those whose time has come. */
static void clear_off(struct hour_runner *r)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < r->n_off; i++)
        if (r->off[i].until_pass > r->pass)
            r->off[kept++] = r->off[i];
        else
            free_off(&r->off[i]);
    r->n_off = kept;
}

static void put_off(struct hour_runner *r, const struct hour_todo *t)
{
    char *p = r->n_off < PUT_OFF_MAX ? malloc(t->project.len + t->service.len + 1) : NULL;

    if (!p)
        return;
    memcpy(p, t->project.p, t->project.len);
    memcpy(p + t->project.len, t->service.p, t->service.len);
    r->off[r->n_off++] = (struct put_off){
        .project = {p, t->project.len},
        .service = {p + t->project.len, t->service.len},
        .hour = t->hour,
        .until_pass = r->pass + PATIENCE,
    };
}

static enum err on_due(void *ctx, const struct hour_todo *t)
{
    struct hour_runner *r = ctx;
    struct hour_todo *to;

    if (r->n == LIST_MAX || is_off(r, t))
        return E_OK;
    if (r->n == r->cap) {
        uint32_t cap = r->cap ? r->cap * 2 : 64;
        struct hour_todo *todos = GROW(r->arena, r->todos, struct hour_todo, r->cap, cap);

        if (!todos)
            return E_NO_MEMORY;
        r->todos = todos;
        r->cap = cap;
    }
    to = &r->todos[r->n];
    to->hour = t->hour;
    if (!arena_str(r->arena, t->project, &to->project) || !arena_str(r->arena, t->service, &to->service) ||
        !arena_str(r->arena, t->tokens, &to->tokens))
        return E_NO_MEMORY;
    r->n++;
    return E_OK;
}

/* Newest first: what people look at. */
static int compare_todos(const void *pa, const void *pb)
{
    const struct hour_todo *a = pa, *b = pb;
    int c = (a->hour < b->hour) - (a->hour > b->hour);

    if (!c)
        c = str_cmp(a->project, b->project);
    return c ? c : str_cmp(a->service, b->service);
}

/* Readers do without, by merging the hour, so a failure does not matter much. */
static bool share(struct hour_runner *r, const struct hour_todo *t)
{
    const struct hour_options *o = &r->options;
    struct fault f = {0};

    if (!o->share_ops || !hour_shares_put(r->backend, r->store, r->host->key, t, o->share_ops, o->share_store, &f))
        return true;
    say(r, 2, "hour_not_shared", t, f.text);
    uv_mutex_lock(&r->lock);
    r->stats.unshared++;
    uv_mutex_unlock(&r->lock);
    return false;
}

static void count(struct hour_runner *r, bool ok, const struct hour_result *done, uint64_t pending)
{
    uv_mutex_lock(&r->lock);
    r->stats.compacted += ok && done->written;
    r->stats.failed += !ok;
    r->stats.pending = pending;
    if (ok && done->written) {
        r->stats.rows += done->rows;
        r->stats.profiles += done->profiles;
        r->stats.raw_bytes += done->raw_bytes;
        r->stats.bytes += done->bytes;
    }
    uv_mutex_unlock(&r->lock);
}

/* false: the store is away, the pass ends. */
static bool compact(struct hour_runner *r, const struct hour_todo *t, uint64_t pending)
{
    struct hour_result done;
    struct fault f = {0};
    enum err e;

    r->host->account(r->host->ctx, "queries", (int64_t)r->options.memory);
    e = hour_compact(r->backend, r->store, r->host->key, t, r->options.memory, &r->cancel, &done, &f);
    r->host->account(r->host->ctx, "queries", -(int64_t)r->options.memory);
    if (e == E_CANCELLED)
        return false;
    count(r, e == E_OK, &done, pending);
    if (e == E_OK && done.written)
        (void)share(r, t);
    if (e == E_OK)
        return true;
    say(r, 1, "hour_failed", t, f.text);
    if (e != E_STORE_DOWN)
        put_off(r, t);
    return e != E_STORE_DOWN;
}

/* Hours of which the store tells, newest first, each once, into the arena of a pass. last: INT64_MAX: those that are
 * done; else those that are due. */
static bool list(struct hour_runner *r, int64_t last)
{
    const struct hour_ops *ops = r->backend->hours;
    struct fault f = {0};
    enum err e = E_NO_MEMORY;
    uint32_t n = 0;

    r->todos = NULL;
    r->n = r->cap = 0;
    r->arena = arena_new(LIST_BYTES);
    if (r->arena)
        e = last == INT64_MAX ? ops->done(r->store, on_due, r, &f) : ops->due(r->store, last, on_due, r, &f);
    if (e)
        say(r, 1, "hours_not_listed", &no_hour, f.text);
    if (r->n)
        qsort(r->todos, r->n, sizeof *r->todos, compare_todos);
    for (uint32_t i = 0; i < r->n; i++)
        if (!n || compare_todos(&r->todos[n - 1], &r->todos[i]))
            r->todos[n++] = r->todos[i];
    r->n = n;
    return e == E_OK;
}

static void compact_due(struct hour_runner *r)
{
    (void)list(r, hour_of(day_now_ns() - HOUR_DUE_NS) - 1);
    uv_mutex_lock(&r->lock);
    r->stats.pending = r->n;
    uv_mutex_unlock(&r->lock);
    for (uint32_t i = 0; i < r->n && !atomic_load(&r->cancel); i++)
        if (!compact(r, &r->todos[i], r->n - i - 1))
            break;
    arena_free(r->arena);
}

/* A share store that has lost everything gets all hours again. Broken off, it begins anew at the next look. */
static void share_again(struct hour_runner *r)
{
    struct share_stats s = {0};
    bool ok;

    if (r->options.share_ops)
        r->options.share_ops->stats(r->options.share_store, &s);
    if (s.emptied == r->emptied)
        return;
    ok = list(r, INT64_MAX);
    for (uint32_t i = 0; ok && i < r->n; i++)
        ok = !atomic_load(&r->cancel) && share(r, &r->todos[i]);
    if (ok)
        r->emptied = s.emptied;
    arena_free(r->arena);
}

/* Waits up to ns. false: it is over. */
static bool rest(struct hour_runner *r, uint64_t ns)
{
    bool stop;

    uv_mutex_lock(&r->lock);
    if (!r->stop && !r->asked)
        uv_cond_timedwait(&r->wake, &r->lock, ns);
    stop = r->stop;
    uv_mutex_unlock(&r->lock);
    return !stop;
}

static void drop_raw(struct hour_runner *r)
{
    uint32_t days = atomic_load(&r->raw_days);
    bool more = days > 0;
    struct fault f = {0};

    while (more && !atomic_load(&r->cancel)) {
        if (r->backend->hours->drop_raw(r->store, day_of(day_now_ns()) - (int32_t)days, &more, &f)) {
            say(r, 1, "raw_not_dropped", &no_hour, f.text);
            return;
        }
        if (more && !rest(r, STEP_NS))
            return;
    }
}

static void run(void *arg)
{
    struct hour_runner *r = arg;

    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE);
    do {
        uv_mutex_lock(&r->lock);
        r->asked = false;
        uv_mutex_unlock(&r->lock);
        r->pass++;
        clear_off(r);
        compact_due(r);
        share_again(r);
        drop_raw(r);
        uv_mutex_lock(&r->lock);
        r->stats.looked_s = (uint64_t)(day_now_ns() / 1000000000);
        uv_mutex_unlock(&r->lock);
    } while (rest(r, PASS_NS));
}

struct hour_runner *hour_runner_start(const struct backend *b, struct sample_store *s, const struct store_host *h,
                                      const struct hour_options *o)
{
    struct hour_runner *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->backend = b;
    r->store = s;
    r->host = h;
    r->options = *o;
    atomic_init(&r->cancel, false);
    atomic_init(&r->raw_days, o->raw_days);
    if (uv_mutex_init(&r->lock)) {
        free(r);
        return NULL;
    }
    if (!uv_cond_init(&r->wake)) {
        if (!uv_thread_create(&r->thread, run, r))
            return r;
        uv_cond_destroy(&r->wake);
    }
    uv_mutex_destroy(&r->lock);
    free(r);
    return NULL;
}

void hour_runner_stop(struct hour_runner *r)
{
    if (!r)
        return;
    atomic_store(&r->cancel, true);
    uv_mutex_lock(&r->lock);
    r->stop = true;
    uv_cond_signal(&r->wake);
    uv_mutex_unlock(&r->lock);
    uv_thread_join(&r->thread);
    while (r->n_off)
        free_off(&r->off[--r->n_off]);
    uv_cond_destroy(&r->wake);
    uv_mutex_destroy(&r->lock);
    free(r);
}

void hour_runner_raw_days(struct hour_runner *r, uint32_t days)
{
    atomic_store(&r->raw_days, days);
    uv_mutex_lock(&r->lock);
    r->asked = true;
    uv_cond_signal(&r->wake);
    uv_mutex_unlock(&r->lock);
}

void hour_runner_stats(struct hour_runner *r, struct hour_stats *out)
{
    uv_mutex_lock(&r->lock);
    *out = r->stats;
    uv_mutex_unlock(&r->lock);
}
