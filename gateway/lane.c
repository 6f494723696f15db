/* Lanes: threads, a queue under a mutex, and one uv_async that brings finished jobs back to the loop. */
#include "gateway/lane.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Lanes give way: a loop that has something to do gets the core from a lane that computes. */
enum { THREADS_MAX = 8, NICENESS = 10 };

struct queue {
    struct job *head, **tail;
};

struct lane {
    uv_mutex_t lock;
    uv_cond_t wake;
    uv_async_t async;
    uv_thread_t threads[THREADS_MAX];
    unsigned n_threads;
    size_t waiting, capacity;
    struct queue todo, finished; /* todo: by turns */
    uint64_t turn, last_turn;    /* of the job that was taken last, of the last one there */
    bool stopping;
    char name[16];
};

static void queue_init(struct queue *q)
{
    q->head = NULL;
    q->tail = &q->head;
}

static void queue_push(struct queue *q, struct job *j)
{
    j->next = NULL;
    *q->tail = j;
    q->tail = &j->next;
}

static struct job *queue_pop(struct queue *q)
{
    struct job *j = q->head;

    if (j && !(q->head = j->next))
        q->tail = &q->head;
    return j;
}

static void lane_main(void *arg)
{
    struct lane *l = arg;

    pthread_setname_np(pthread_self(), l->name);
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICENESS); /* of this thread alone, on Linux */
    uv_mutex_lock(&l->lock);
    for (;;) {
        struct job *j = queue_pop(&l->todo);
        if (!j && l->stopping)
            break;
        if (!j) {
            uv_cond_wait(&l->wake, &l->lock);
            continue;
        }
        l->turn = j->turn;
        l->waiting--;
        uv_mutex_unlock(&l->lock);
        j->work(j);
        uv_mutex_lock(&l->lock);
        queue_push(&l->finished, j);
        uv_async_send(&l->async);
    }
    uv_mutex_unlock(&l->lock);
}

/* Takes all that has finished at once: done may submit again. */
static void deliver(struct lane *l)
{
    uv_mutex_lock(&l->lock);
    struct job *j = l->finished.head;
    queue_init(&l->finished);
    uv_mutex_unlock(&l->lock);
    while (j) {
        struct job *next = j->next;
        j->done(j);
        j = next;
    }
}

static void on_finished(uv_async_t *a)
{
    deliver(a->data);
}

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

static bool start_threads(struct lane *l, unsigned threads)
{
    for (; l->n_threads < threads; l->n_threads++)
        if (uv_thread_create(&l->threads[l->n_threads], lane_main, l) != 0)
            return false;
    return true;
}

struct lane *lane_new(uv_loop_t *loop, const char *name, unsigned threads, size_t capacity)
{
    struct lane *l = calloc(1, sizeof *l);

    ASSERT(threads > 0 && threads <= THREADS_MAX);
    if (!l)
        return NULL;
    l->capacity = capacity;
    memcpy(l->name, name, strnlen(name, sizeof l->name - 1));
    queue_init(&l->todo);
    queue_init(&l->finished);
    uv_mutex_init(&l->lock);
    uv_cond_init(&l->wake);
    if (uv_async_init(loop, &l->async, on_finished) != 0) {
        free(l);
        return NULL;
    }
    l->async.data = l;
    uv_unref((uv_handle_t *)&l->async);
    if (!start_threads(l, threads)) {
        lane_close(l);
        return NULL;
    }
    return l;
}

/* Into the first turn still to come in which its party has no job yet; behind all, where it has no party. */
static void todo_add(struct lane *l, struct job *j)
{
    struct job **at = &l->todo.head;

    j->turn = l->turn + 1;
    if (!j->party) {
        j->turn = l->last_turn > j->turn ? l->last_turn : j->turn;
        at = l->todo.tail;
    }
    for (const struct job *k = *at; k; k = k->next)
        if (k->party == j->party)
            j->turn = k->turn + 1;
    while (*at && (*at)->turn <= j->turn)
        at = &(*at)->next;
    j->next = *at;
    *at = j;
    if (j->next)
        return;
    l->todo.tail = &j->next;
    l->last_turn = j->turn;
}

bool lane_submit(struct lane *l, struct job *j)
{
    uv_mutex_lock(&l->lock);
    bool room = l->waiting < l->capacity && !l->stopping;
    if (room) {
        todo_add(l, j);
        l->waiting++;
        uv_cond_signal(&l->wake);
    }
    uv_mutex_unlock(&l->lock);
    return room;
}

size_t lane_waiting(struct lane *l)
{
    uv_mutex_lock(&l->lock);
    size_t n = l->waiting;
    uv_mutex_unlock(&l->lock);
    return n;
}

size_t lane_capacity(const struct lane *l)
{
    return l->capacity;
}

void lane_close(struct lane *l)
{
    uv_mutex_lock(&l->lock);
    l->stopping = true;
    uv_cond_broadcast(&l->wake);
    uv_mutex_unlock(&l->lock);
    for (unsigned i = 0; i < l->n_threads; i++)
        uv_thread_join(&l->threads[i]);
    deliver(l);
    uv_mutex_destroy(&l->lock);
    uv_cond_destroy(&l->wake);
    uv_close((uv_handle_t *)&l->async, on_closed);
}
