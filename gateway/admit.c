/* Admission: parties with their queues, the list of those inside by age, and the invariant that keeps one maximum
 * reachable. */
#include "gateway/admit.h"

#include <stdlib.h>

enum {
    SMALL_FIRSTS = 4, /* a small upload: up to so many first grants */
    SHARE = 3         /* one project alone gets three quarters, of two that want all each gets three sevenths */
};

/* Tickets in the list of age, and what they hold together. */
struct crew {
    size_t n, bytes;
};

/* Those of one project. Kept while there are any. */
struct party {
    struct party *next;         /* all of them, in no order */
    struct party *next_waiting; /* a ring order: the served one goes to the end */
    struct ticket *head, *tail; /* waiting to get in */
    size_t tickets, granted;    /* of all, and what they hold together */
    struct crew inside;
    size_t name_len;
    char name[];
};

struct admit {
    size_t capacity, first, max;
    uint64_t patience_ms;
    const struct admit_events *ev;
    size_t granted, waiting;
    struct crew inside;
    struct ticket *oldest, *youngest; /* by age: everyone inside who may still grow, and sealed ones that must wait */
    struct party *parties, *waiters, **last;
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
    a->inside.n++;
    t->party->inside.n++;
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
    a->inside.n--;
    a->inside.bytes -= t->granted;
    t->party->inside.n--;
    t->party->inside.bytes -= t->granted;
}

/* What nobody holds if t holds `total`, beside what is set aside for the oldest; below 0: it does not fit. */
static int64_t rest(const struct admit *a, const struct ticket *t, size_t total)
{
    const struct ticket *oldest = a->oldest ? a->oldest : t;
    size_t sum = a->granted - t->granted + total;
    size_t aside = a->max - (oldest == t ? total : oldest->granted);

    return (int64_t)a->capacity - (int64_t)(sum + aside);
}

/* What p holds beside the oldest, whose memory is set aside. */
static size_t party_holds(const struct admit *a, const struct party *p)
{
    return p->granted - (a->oldest && a->oldest->party == p ? a->oldest->granted : 0);
}

/* A newcomer that is not alone keeps off what others may need: its project holds at most SHARE times what is free. */
static bool may_enter(const struct admit *a, const struct ticket *t)
{
    size_t holds = party_holds(a, t->party);

    return rest(a, t, a->first) >= 0 && (holds == 0 || holds < SHARE * (size_t)rest(a, t, 0));
}

/* What these hold above their first bytes, the oldest and t left out. */
static int64_t growth(const struct admit *a, struct crew c, const struct ticket *t, bool with_oldest)
{
    size_t out = 1 + with_oldest, bytes = t->granted + (with_oldest ? a->oldest->granted : 0);

    return (int64_t)(c.bytes - bytes) - (int64_t)((c.n - out) * a->first);
}

/* Whether the growers' part of the rest has room for `more` of t: half of it, the other half is for newcomers; small
 * ones may use half of that again, so that large ones that wait do not keep them waiting too. A project keeps to its
 * share of it, and a little it always gets, whatever the others have. */
static bool growers_have_room(const struct admit *a, const struct ticket *t, int64_t more, bool small)
{
    int64_t half = (int64_t)(a->capacity - a->max) / 2, room = small ? half + half / 2 : half;
    int64_t theirs = growth(a, t->party->inside, t, a->oldest->party == t->party);

    if (theirs + more <= half / (SHARE + 1))
        return true;
    room -= growth(a, a->inside, t, true) + more;
    return room >= 0 && (theirs <= 0 || theirs + more <= SHARE * room);
}

/* Whether t may grow to `total`: the oldest whenever it fits; the others only while their project keeps to its share.
 */
static bool may_grow(const struct admit *a, const struct ticket *t, size_t total)
{
    int64_t left = rest(a, t, total);

    if (left < 0 || t == a->oldest)
        return left >= 0;
    int64_t holds = (int64_t)(party_holds(a, t->party) - t->granted);
    return growers_have_room(a, t, (int64_t)total - (int64_t)a->first, total <= SMALL_FIRSTS * a->first) &&
           (holds == 0 || holds + (int64_t)total <= SHARE * left);
}

/* t is in the list of age. */
static void give(struct admit *a, struct ticket *t, size_t total)
{
    a->inside.bytes += total - t->granted;
    t->party->inside.bytes += total - t->granted;
    a->granted += total - t->granted;
    t->party->granted += total - t->granted;
    t->granted = total;
    t->wants = 0;
    t->state = TICKET_IN;
}

/* The party of this name, made where there is none. NULL: no memory. */
static struct party *party_of(struct admit *a, struct str name)
{
    struct party *p = a->parties;

    while (p && !str_eq((struct str){p->name, p->name_len}, name))
        p = p->next;
    if (p || !(p = calloc(1, sizeof *p + name.len)))
        return p;
    memcpy(p->name, name.p, name.len);
    p->name_len = name.len;
    p->next = a->parties;
    a->parties = p;
    return p;
}

/* t is nobody's from now on. */
static void party_leave(struct admit *a, struct ticket *t)
{
    struct party *p = t->party, **at = &a->parties;

    t->party = NULL;
    p->granted -= t->granted;
    if (--p->tickets)
        return;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    free(p);
}

static void waiters_push(struct admit *a, struct party *p)
{
    p->next_waiting = NULL;
    *a->last = p;
    a->last = &p->next_waiting;
}

static void waiters_drop(struct admit *a, struct party *p)
{
    struct party **at = &a->waiters;

    while (*at != p)
        at = &(*at)->next_waiting;
    *at = p->next_waiting;
    if (!p->next_waiting)
        a->last = at;
}

/* Takes t out of its party's queue. */
static void waiter_drop(struct admit *a, struct ticket *t)
{
    struct party *p = t->party;

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
    if (!p->head)
        waiters_drop(a, p);
}

static struct ticket *next_grower(const struct admit *a)
{
    struct ticket *best = NULL;

    for (struct ticket *t = a->oldest; t; t = t->next) {
        if (t->state != TICKET_GROWING || !may_grow(a, t, t->wants))
            continue;
        if (t == a->oldest)
            return t;
        if (!best || party_holds(a, t->party) < party_holds(a, best->party))
            best = t;
    }
    return best;
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
    struct party *p = a->waiters;
    while (p && !may_enter(a, p->head))
        p = p->next_waiting;
    if (!p)
        return false;
    t = p->head;
    waiters_drop(a, p);
    waiters_push(a, p);
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
    a->last = &a->waiters;
    return a;
}

void admit_free(struct admit *a)
{
    if (!a)
        return;
    ASSERT(a->granted == 0 && a->waiting == 0 && !a->parties);
    free(a);
}

enum admit_answer admit_arrive(struct admit *a, struct ticket *t, struct str project, uint64_t now_ms)
{
    ASSERT(t->state == TICKET_NONE);
    *t = (struct ticket){.party = party_of(a, project), .deadline_ms = now_ms + a->patience_ms};
    struct party *p = t->party;
    if (!p)
        return ADMIT_NO;
    p->tickets++;
    if (!p->head && may_enter(a, t)) { /* so all others wait for their own share */
        inside_push(a, t);
        give(a, t, a->first);
        return ADMIT_YES;
    }
    if (!p->head)
        waiters_push(a, p);
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
        a->inside.bytes -= t->granted - total;
        t->party->inside.bytes -= t->granted - total;
        t->party->granted -= t->granted - total;
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
    }
    party_leave(a, t);
    t->granted = 0;
    t->state = TICKET_NONE;
    serve(a);
}

/* One that has timed out, or NULL; *next gets the earliest deadline of the others. */
static struct ticket *overdue(struct admit *a, uint64_t now_ms, uint64_t *next)
{
    *next = 0;
    for (struct party *p = a->waiters; p; p = p->next_waiting) {
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
        party_leave(a, t);
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
