/* The loop's turn: a budget of time and a queue. */
#include "gateway/turn.h"

/* Those in the queue get half of it, so that what the sockets bring is looked at in every turn too. */
enum { TURN_NS = 4000000, QUEUE_NS = TURN_NS / 2 };

static bool left(struct turn *t, uint64_t budget_ns)
{
    uint64_t now = uv_hrtime();

    if (t->started_ns == 0)
        t->started_ns = now;
    return now - t->started_ns < budget_ns;
}

static void on_idle(uv_idle_t *h)
{
    struct turn *t = h->data;
    struct turn_entry *last = t->tail; /* who comes back now waits for the next turn */

    while (t->head && left(t, QUEUE_NS)) {
        struct turn_entry *e = t->head;
        turn_drop(t, e);
        e->run(e);
        if (e == last)
            break;
    }
    if (!t->head)
        uv_idle_stop(&t->idle);
}

static void on_check(uv_check_t *h)
{
    struct turn *t = h->data;

    t->started_ns = 0;
}

void turn_init(struct turn *t, uv_loop_t *loop)
{
    *t = (struct turn){0};
    uv_check_init(loop, &t->check);
    uv_idle_init(loop, &t->idle);
    t->check.data = t->idle.data = t;
    uv_check_start(&t->check, on_check);
    uv_unref((uv_handle_t *)&t->check);
}

bool turn_left(struct turn *t)
{
    return left(t, TURN_NS);
}

void turn_push(struct turn *t, struct turn_entry *e)
{
    if (e->queued)
        return;
    e->queued = true;
    e->prev = t->tail;
    e->next = NULL;
    if (t->tail)
        t->tail->next = e;
    else
        t->head = e;
    t->tail = e;
    uv_idle_start(&t->idle, on_idle);
}

void turn_drop(struct turn *t, struct turn_entry *e)
{
    if (!e->queued)
        return;
    e->queued = false;
    if (e->prev)
        e->prev->next = e->next;
    else
        t->head = e->next;
    if (e->next)
        e->next->prev = e->prev;
    else
        t->tail = e->prev;
    e->prev = e->next = NULL;
}

void turn_close(struct turn *t)
{
    uv_close((uv_handle_t *)&t->check, NULL);
    uv_close((uv_handle_t *)&t->idle, NULL);
}
