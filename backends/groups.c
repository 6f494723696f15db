/*
 * Rows wait in a list. A group that is put gets an entry in a ring, indexed by its id, which stays while its mark may
 * still change. Actions are not queued: groups_next reads them off the state, so that no event but submit needs memory.
 */
#include "backends/groups.h"

#include <stdlib.h>

#include "backends/day.h"

enum { RING_MIN = 64, RING_MAX = 1 << 16 };

struct row {
    struct row *next;
    struct record *record;
    void *owner;
    int32_t day;
    uint16_t class_days;
};

enum entry_state {
    ENTRY_PUT,     /* with the store */
    ENTRY_OPEN,    /* committed; some rows are not decided */
    ENTRY_DECIDED, /* marked, or about to be, or nobody was told */
    ENTRY_STATES
};

/* What is remembered of a group behind its put. */
struct entry {
    uint64_t id;
    uint64_t told, decided, final; /* a bit per row */
    uint64_t due_next;             /* list of marks to send; id, 0 ends it */
    int64_t decided_ns;
    int32_t day;
    uint16_t class_days, n;
    enum entry_state state;
    bool due, marked;
};

struct groups {
    uint64_t boot, next_id;
    size_t max_bytes;
    int64_t remember_ns;

    struct row *head, **tail;
    size_t n_queued, n_waiting, waiting_bytes;

    /* The group under way; rows answered up to `answered`. */
    struct group put;
    void *owners[GROUP_MAX];
    size_t bytes[GROUP_MAX]; /* of the records that were submitted: the store may have given copies back */
    bool putting, answering;
    uint16_t answered;

    /* Entries of ids first..next_id - 1, at id modulo cap. */
    struct entry *ring;
    size_t cap;
    uint64_t first;
    size_t n_undecided;
    uint64_t due_head, due_tail;
    struct group mark; /* lent to the action */
};

static struct entry *entry_at(struct groups *g, uint64_t id)
{
    return &g->ring[id & (g->cap - 1)];
}

static struct entry *find_entry(struct groups *g, struct attempt a)
{
    struct entry *e;

    if (a.boot != g->boot || a.group < g->first || a.group >= g->next_id)
        return NULL;
    e = entry_at(g, a.group);
    return a.place < e->n ? e : NULL;
}

static void set_state(struct groups *g, struct entry *e, enum entry_state to)
{
    static const unsigned may[ENTRY_STATES] = {
        [ENTRY_PUT] = 1u << ENTRY_OPEN,
        [ENTRY_OPEN] = 1u << ENTRY_DECIDED,
    };

    ASSERT(may[e->state] & 1u << to);
    e->state = to;
    if (to == ENTRY_DECIDED)
        g->n_undecided--;
}

static uint64_t all_rows(const struct entry *e)
{
    return e->n == 64 ? UINT64_MAX : (UINT64_C(1) << e->n) - 1;
}

static void make_due(struct groups *g, struct entry *e)
{
    if (e->due)
        return;
    e->due = true;
    e->due_next = 0;
    if (g->due_head)
        entry_at(g, g->due_tail)->due_next = e->id;
    else
        g->due_head = e->id;
    g->due_tail = e->id;
}

/* The front of the due list, off it. */
static struct entry *take_due(struct groups *g)
{
    struct entry *e = entry_at(g, g->due_head);

    g->due_head = e->due_next;
    if (!g->due_head)
        g->due_tail = 0;
    e->due = false;
    return e;
}

static void decide(struct groups *g, struct entry *e, uint64_t bit, bool told, int64_t now_ns)
{
    if (e->state != ENTRY_OPEN || e->decided & bit)
        return;
    e->decided |= bit;
    if (told)
        e->told |= bit;
    e->decided_ns = now_ns > e->decided_ns ? now_ns : e->decided_ns;
    if (e->decided != all_rows(e))
        return;
    set_state(g, e, ENTRY_DECIDED);
    if (e->told)
        make_due(g, e);
}

static bool forgettable(const struct groups *g, const struct entry *e, int64_t now_ns)
{
    if (e->state != ENTRY_DECIDED || e->due)
        return false;
    return !e->told || e->final == all_rows(e) || now_ns - e->decided_ns >= g->remember_ns;
}

/* Room for one more entry, made when a row comes in, so that closing a group cannot fail. */
static bool reserve(struct groups *g)
{
    size_t need = (size_t)(g->next_id - g->first) + g->n_queued + 1;
    size_t cap = g->cap ? g->cap : RING_MIN;
    struct entry *ring;

    if (need > RING_MAX)
        need = RING_MAX;
    while (cap < need)
        cap *= 2;
    if (cap == g->cap)
        return true;
    ring = calloc(cap, sizeof *ring);
    if (!ring)
        return false;
    for (uint64_t id = g->first; id < g->next_id; id++)
        ring[id & (cap - 1)] = *entry_at(g, id);
    free(g->ring);
    g->ring = ring;
    g->cap = cap;
    return true;
}

/* A full ring forgets its oldest group: its mark, if still to come, is lost, as in a crash. */
static void forget_oldest(struct groups *g)
{
    struct entry *e = entry_at(g, g->first);

    ASSERT(e->state != ENTRY_PUT);
    if (e->state != ENTRY_DECIDED)
        g->n_undecided--;
    ASSERT(!e->due); /* groups_next sends marks before it closes a group */
    g->first++;
}

static struct entry *new_entry(struct groups *g, const struct row *r)
{
    struct entry *e;

    if (g->next_id - g->first == g->cap)
        forget_oldest(g);
    e = entry_at(g, g->next_id);
    *e = (struct entry){.id = g->next_id++, .day = r->day, .class_days = r->class_days, .state = ENTRY_PUT};
    g->n_undecided++;
    return e;
}

/* Moves rows of the first row's (class, day) from the list into the group. */
static void close_group(struct groups *g)
{
    struct entry *e = new_entry(g, g->head);
    struct row **at = &g->head;
    size_t bytes = 0;

    g->put = (struct group){.id = e->id, .boot = g->boot, .class_days = e->class_days, .day = e->day};
    while (*at && g->put.n < GROUP_MAX) {
        struct row *r = *at;

        if (r->class_days != e->class_days || r->day != e->day) {
            at = &r->next;
            continue;
        }
        bytes += r->record->bytes;
        if (g->put.n && bytes > g->max_bytes)
            break;
        g->put.records[g->put.n] = r->record;
        g->bytes[g->put.n] = r->record->bytes;
        g->owners[g->put.n++] = r->owner;
        *at = r->next;
        if (!*at)
            g->tail = at;
        g->n_queued--;
        free(r);
    }
    e->n = g->put.n;
    g->putting = true;
}

static void answer(struct groups *g, struct groups_action *out)
{
    uint16_t i = g->answered++;
    struct entry *e = entry_at(g, g->put.id);
    struct record *r = g->put.records[i];

    *out = (struct groups_action){
        .kind = GROUPS_ANSWER,
        .attempt = {.boot = g->boot, .group = g->put.id, .place = i},
        .result = g->put.results[i],
        .record = r,
        .owner = g->owners[i],
    };
    g->n_waiting--;
    g->waiting_bytes -= g->bytes[i];
    if (out->result != PUT_STORED)
        decide(g, e, UINT64_C(1) << i, false, INT64_MIN);
    if (g->answered == g->put.n)
        g->answering = false;
}

static bool send_mark(struct groups *g, struct groups_action *out)
{
    while (g->due_head) {
        struct entry *e = take_due(g);

        if (!e->told && !e->marked) /* taken back before it was sent: no mark says the same */
            continue;
        e->marked = true;
        g->mark = (struct group){.id = e->id, .boot = g->boot, .class_days = e->class_days, .day = e->day, .n = e->n};
        *out = (struct groups_action){.kind = GROUPS_MARK, .group = &g->mark, .told = e->told};
        return true;
    }
    return false;
}

struct groups *groups_new(uint64_t boot, size_t max_bytes, int64_t remember_ns)
{
    struct groups *g = calloc(1, sizeof *g);

    if (!g)
        return NULL;
    g->boot = boot;
    g->next_id = g->first = 1;
    g->max_bytes = max_bytes;
    g->remember_ns = remember_ns;
    g->tail = &g->head;
    if (!reserve(g)) {
        free(g);
        return NULL;
    }
    return g;
}

void groups_free(struct groups *g)
{
    if (!g)
        return;
    ASSERT(!g->putting);
    for (; g->answering && g->answered < g->put.n; g->answered++)
        record_free(g->put.records[g->answered]);
    for (struct row *r = g->head, *next; r; r = next) {
        next = r->next;
        record_free(r->record);
        free(r);
    }
    free(g->ring);
    free(g);
}

bool groups_submit(struct groups *g, struct record *r, uint16_t class_days, void *owner)
{
    struct row *row = reserve(g) ? malloc(sizeof *row) : NULL;

    if (!row)
        return false;
    *row = (struct row){.record = r, .owner = owner, .day = day_of(r->time_ns), .class_days = class_days};
    *g->tail = row;
    g->tail = &row->next;
    g->n_queued++;
    g->n_waiting++;
    g->waiting_bytes += r->bytes;
    return true;
}

void groups_committed(struct groups *g)
{
    ASSERT(g->putting);
    g->putting = false;
    g->answering = true;
    g->answered = 0;
    set_state(g, entry_at(g, g->put.id), ENTRY_OPEN);
}

void groups_told(struct groups *g, struct attempt a, bool yes, int64_t now_ns)
{
    struct entry *e = find_entry(g, a);

    if (e)
        decide(g, e, UINT64_C(1) << a.place, yes, now_ns);
}

void groups_untold(struct groups *g, struct attempt a, int64_t now_ns)
{
    struct entry *e = find_entry(g, a);
    uint64_t bit = UINT64_C(1) << a.place;

    if (!e)
        return;
    decide(g, e, bit, false, now_ns);
    if (!(e->told & bit))
        return;
    e->told &= ~bit;
    if (e->marked)
        make_due(g, e);
}

void groups_final(struct groups *g, struct attempt a)
{
    struct entry *e = find_entry(g, a);

    if (e)
        e->final |= UINT64_C(1) << a.place;
}

void groups_tick(struct groups *g, int64_t now_ns)
{
    while (g->first < g->next_id && forgettable(g, entry_at(g, g->first), now_ns))
        g->first++;
}

bool groups_next(struct groups *g, struct groups_action *out)
{
    if (g->answering) {
        answer(g, out);
        return true;
    }
    if (send_mark(g, out))
        return true;
    if (g->putting || !g->head)
        return false;
    close_group(g);
    *out = (struct groups_action){.kind = GROUPS_PUT, .group = &g->put};
    return true;
}

size_t groups_waiting(const struct groups *g)
{
    return g->n_waiting;
}

size_t groups_waiting_bytes(const struct groups *g)
{
    return g->waiting_bytes;
}

bool groups_idle(const struct groups *g)
{
    return !g->n_waiting && !g->n_undecided && !g->due_head;
}

size_t groups_memory(const struct groups *g)
{
    return sizeof *g + g->cap * sizeof *g->ring + g->n_queued * sizeof(struct row);
}
