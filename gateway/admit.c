/* Admission: queues by project, the list of those inside by age, and the invariant that keeps one maximum reachable. */
#include "gateway/admit.h"

#include <stdlib.h>

enum { SMALL_FIRSTS = 4 }; /* a small upload: up to so many first grants */

/* Those of one project that wait. Kept only while somebody waits. */
struct project {
    struct str name; /* borrowed from the first waiter, moved on when it leaves */
    struct ticket *head, *tail;
    struct project *next; /* a ring order: the served project goes to the end */
};

struct admit {
    size_t capacity, first, max;
    uint64_t patience_ms;
    const struct admit_events *ev;
    size_t granted, waiting;
    size_t n_inside;                  /* in the list of age */
    size_t inside;                    /* what those hold together */
    struct ticket *oldest, *youngest; /* by age: everyone inside who may still grow, and sealed ones that must wait */
    struct project *projects, **last;
    bool serving; /* guards against recursion: callbacks may leave or grow */
    bool again;
};

static void inside_push(struct admit *a, struct ticket *t)
{
    t->prev = a->youngest;
    t->next = NULL;
    if (a->youngest)
        a->youngest->next = t;
    else
        a->oldest = t;
    a->youngest = t;
    a->n_inside++;
    a->inside += t->granted;
}

static void inside_drop(struct admit *a, struct ticket *t)
{
    if (t->prev)
        t->prev->next = t->next;
    else
        a->oldest = t->next;
    if (t->next)
        t->next->prev = t->prev;
    else
        a->youngest = t->prev;
    t->prev = t->next = NULL;
    a->n_inside--;
    a->inside -= t->granted;
}

/* Whether t may hold `total` so that the oldest can still reach the maximum. */
static bool fits(const struct admit *a, const struct ticket *t, size_t total)
{
    const struct ticket *oldest = a->oldest ? a->oldest : t;
    size_t sum = a->granted - t->granted + total;
    size_t aside = a->max - (oldest == t ? total : oldest->granted);

    return sum + aside <= a->capacity;
}

/* Whether t may grow to `total`: the oldest whenever it fits; the others only while newcomers keep their half of the
 * rest, of which small ones may use half again, so that large ones that wait do not keep them waiting too. */
static bool may_grow(const struct admit *a, const struct ticket *t, size_t total)
{
    if (!fits(a, t, total))
        return false;
    if (t == a->oldest)
        return true;
    size_t others = a->inside - a->oldest->granted - t->granted + total, firsts = (a->n_inside - 1) * a->first;
    size_t room = (a->capacity - a->max) / 2;
    return others <= firsts + (total <= SMALL_FIRSTS * a->first ? room + room / 2 : room);
}

/* t is in the list of age. */
static void give(struct admit *a, struct ticket *t, size_t total)
{
    a->inside += total - t->granted;
    a->granted += total - t->granted;
    t->granted = total;
    t->wants = 0;
    t->state = TICKET_IN;
}

static struct project *project_find(struct admit *a, struct str name)
{
    for (struct project *p = a->projects; p; p = p->next)
        if (str_eq(p->name, name))
            return p;
    return NULL;
}

static struct project *project_add(struct admit *a, struct str name)
{
    struct project *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->name = name;
    *a->last = p;
    a->last = &p->next;
    return p;
}

static void project_unlink(struct admit *a, struct project *p)
{
    struct project **at = &a->projects;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    if (!p->next)
        a->last = at;
    p->next = NULL;
}

/* Takes t out of its project's queue; an empty queue is forgotten. */
static void waiter_drop(struct admit *a, struct ticket *t)
{
    struct project *p = project_find(a, t->project);

    ASSERT(p != NULL);
    if (t->prev)
        t->prev->next = t->next;
    else
        p->head = t->next;
    if (t->next)
        t->next->prev = t->prev;
    else
        p->tail = t->prev;
    t->prev = t->next = NULL;
    a->waiting--;
    if (p->head) {
        p->name = p->head->project;
        return;
    }
    project_unlink(a, p);
    free(p);
}

static struct ticket *next_grower(const struct admit *a)
{
    for (struct ticket *t = a->oldest; t; t = t->next)
        if (t->state == TICKET_GROWING && may_grow(a, t, t->wants))
            return t;
    return NULL;
}

/* A sealed oldest makes way once the next one could reach the maximum beside what it holds. */
static void make_way(struct admit *a)
{
    while (a->oldest && a->oldest->state == TICKET_SEALED) {
        struct ticket *t = a->oldest, *next = t->next;
        if (a->granted + a->max - (next ? next->granted : 0) > a->capacity)
            return;
        inside_drop(a, t);
        t->state = TICKET_ASIDE;
    }
}

/* Growers come before newcomers: what is inside must get out first. */
static bool serve_one(struct admit *a)
{
    make_way(a);
    struct ticket *t = next_grower(a);
    if (t) {
        give(a, t, t->wants);
        a->ev->granted(t);
        return true;
    }
    struct project *p = a->projects;
    if (!p || !fits(a, p->head, a->first))
        return false;
    t = p->head;
    if (p->next) {
        project_unlink(a, p);
        *a->last = p;
        a->last = &p->next;
    }
    waiter_drop(a, t);
    inside_push(a, t);
    give(a, t, a->first);
    a->ev->granted(t);
    return true;
}

static void serve(struct admit *a)
{
    a->again = true;
    if (a->serving)
        return;
    a->serving = true;
    while (a->again) {
        a->again = false;
        while (serve_one(a))
            ;
    }
    a->serving = false;
}

struct admit *admit_new(size_t capacity, size_t first, size_t max, uint64_t patience_ms, const struct admit_events *ev)
{
    struct admit *a = calloc(1, sizeof *a);

    ASSERT(first <= max && max <= capacity);
    if (!a)
        return NULL;
    a->capacity = capacity;
    a->first = first;
    a->max = max;
    a->patience_ms = patience_ms;
    a->ev = ev;
    a->last = &a->projects;
    return a;
}

void admit_free(struct admit *a)
{
    if (!a)
        return;
    ASSERT(a->granted == 0 && a->waiting == 0);
    free(a);
}

enum admit_answer admit_arrive(struct admit *a, struct ticket *t, struct str project, uint64_t now_ms)
{
    ASSERT(t->state == TICKET_NONE);
    *t = (struct ticket){.project = project, .deadline_ms = now_ms + a->patience_ms};
    if (!a->projects && fits(a, t, a->first)) {
        inside_push(a, t);
        give(a, t, a->first);
        return ADMIT_YES;
    }
    struct project *p = project_find(a, project);
    if (!p && !(p = project_add(a, project)))
        return ADMIT_NO;
    t->state = TICKET_WAITING;
    t->prev = p->tail;
    if (p->tail)
        p->tail->next = t;
    else
        p->head = t;
    p->tail = t;
    a->waiting++;
    return ADMIT_WAIT;
}

enum admit_answer admit_grow(struct admit *a, struct ticket *t, size_t total)
{
    ASSERT(t->state == TICKET_IN);
    if (total <= t->granted)
        return ADMIT_YES;
    if (total > a->max)
        return ADMIT_NO;
    if (may_grow(a, t, total)) {
        give(a, t, total);
        return ADMIT_YES;
    }
    t->wants = total;
    t->state = TICKET_GROWING;
    return ADMIT_WAIT;
}

void admit_seal(struct admit *a, struct ticket *t, size_t total)
{
    ASSERT(t->state == TICKET_IN);
    if (total < t->granted) {
        a->granted -= t->granted - total;
        a->inside -= t->granted - total;
        t->granted = total;
    }
    t->state = TICKET_SEALED;
    if (t != a->oldest) {
        inside_drop(a, t);
        t->state = TICKET_ASIDE;
    }
    serve(a);
}

void admit_leave(struct admit *a, struct ticket *t)
{
    if (t->state == TICKET_NONE)
        return;
    if (t->state == TICKET_WAITING) {
        waiter_drop(a, t);
    } else {
        if (t->state != TICKET_ASIDE)
            inside_drop(a, t);
        a->granted -= t->granted;
        t->granted = 0;
    }
    t->state = TICKET_NONE;
    serve(a);
}

/* One that has timed out, or NULL; *next gets the earliest deadline of the others. */
static struct ticket *overdue(struct admit *a, uint64_t now_ms, uint64_t *next)
{
    *next = 0;
    for (struct project *p = a->projects; p; p = p->next) {
        if (p->head->deadline_ms <= now_ms)
            return p->head;
        if (*next == 0 || p->head->deadline_ms < *next)
            *next = p->head->deadline_ms;
    }
    return NULL;
}

uint64_t admit_tick(struct admit *a, uint64_t now_ms)
{
    struct ticket *t;
    uint64_t next;

    while ((t = overdue(a, now_ms, &next))) {
        waiter_drop(a, t);
        t->state = TICKET_NONE;
        a->ev->timed_out(t);
    }
    return next;
}

size_t admit_granted(const struct admit *a)
{
    return a->granted;
}

size_t admit_waiting(const struct admit *a)
{
    return a->waiting;
}

size_t admit_max(const struct admit *a)
{
    return a->max;
}
