/* Two lists under a lock: what is to be done, and what has been. */
#include "backends/pg_worker.h"

#include <stdlib.h>

struct job_list {
    struct pg_job *first, **last;
};

struct pg_worker {
    uv_thread_t thread;
    uv_mutex_t lock;
    uv_cond_t wake;
    uv_async_t async;
    struct job_list waiting, done;
    bool quit, ended;
    void (*closed)(void *ctx);
    void *ctx;
};

static void append(struct job_list *l, struct pg_job *j)
{
    j->next = NULL;
    if (!l->first)
        l->last = &l->first;
    *l->last = j;
    l->last = &j->next;
}

static struct pg_job *take_first(struct job_list *l)
{
    struct pg_job *j = l->first;

    if (j)
        l->first = j->next;
    return j;
}

static void run_jobs(void *arg)
{
    struct pg_worker *w = arg;

    uv_mutex_lock(&w->lock);
    for (;;) {
        struct pg_job *j = take_first(&w->waiting);

        if (j) {
            uv_mutex_unlock(&w->lock);
            j->run(j);
            uv_mutex_lock(&w->lock);
            append(&w->done, j);
            uv_async_send(&w->async);
        } else if (w->quit) {
            break;
        } else {
            uv_cond_wait(&w->wake, &w->lock);
        }
    }
    w->ended = true;
    uv_async_send(&w->async);
    uv_mutex_unlock(&w->lock);
}

static void on_async_closed(uv_handle_t *h)
{
    struct pg_worker *w = h->data;
    void (*closed)(void *ctx) = w->closed;
    void *ctx = w->ctx;

    free(w);
    if (closed)
        closed(ctx);
}

static void on_done(uv_async_t *h)
{
    struct pg_worker *w = h->data;
    struct pg_job *j;
    bool ended;

    do {
        uv_mutex_lock(&w->lock);
        j = take_first(&w->done);
        ended = w->ended && !w->done.first;
        uv_mutex_unlock(&w->lock);
        if (j)
            j->done(j);
    } while (j);
    if (!ended || uv_is_closing((uv_handle_t *)&w->async))
        return;
    uv_thread_join(&w->thread);
    uv_cond_destroy(&w->wake);
    uv_mutex_destroy(&w->lock);
    uv_close((uv_handle_t *)&w->async, on_async_closed);
}

static bool start_thread(struct pg_worker *w)
{
    if (uv_mutex_init(&w->lock))
        return false;
    if (!uv_cond_init(&w->wake)) {
        if (!uv_thread_create(&w->thread, run_jobs, w))
            return true;
        uv_cond_destroy(&w->wake);
    }
    uv_mutex_destroy(&w->lock);
    return false;
}

struct pg_worker *pg_worker_new(uv_loop_t *loop)
{
    struct pg_worker *w = calloc(1, sizeof *w);

    if (!w || uv_async_init(loop, &w->async, on_done)) {
        free(w);
        return NULL;
    }
    w->async.data = w;
    if (start_thread(w))
        return w;
    uv_close((uv_handle_t *)&w->async, on_async_closed);
    return NULL;
}

void pg_worker_submit(struct pg_worker *w, struct pg_job *j)
{
    uv_mutex_lock(&w->lock);
    ASSERT(!w->quit);
    append(&w->waiting, j);
    uv_cond_signal(&w->wake);
    uv_mutex_unlock(&w->lock);
}

void pg_worker_close(struct pg_worker *w, void (*closed)(void *ctx), void *ctx)
{
    uv_mutex_lock(&w->lock);
    w->closed = closed;
    w->ctx = ctx;
    w->quit = true;
    uv_cond_signal(&w->wake);
    uv_mutex_unlock(&w->lock);
}
