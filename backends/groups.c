/*
 * Rows wait in lines, one per project, and groups take from them by turns. A group that is put gets an entry in a ring,
 * indexed by its id, which stays while its mark may still change. Actions are not queued: groups_next reads them off
 * the state, so that no event but submit needs memory.
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

/* Those of one project, first come first served. Kept only while it has rows. */
struct line {
    struct line *next;
    struct row *head, **tail;
    struct row **at; /* while a group closes: where the next row is looked for; NULL: no more of this line */
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

    struct line *lines, **last; /* the one whose turn it is comes first */
    size_t n_lines, n_queued, n_waiting, waiting_bytes;

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

/* Moves the line's next row of the group's (class, day) into the group, if there is one and it fits. */
static bool take_row(struct groups *g, struct line *l, const struct entry *e, size_t *bytes)
{
    struct row *r;

    while (l->at && (r = *l->at) && (r->class_days != e->class_days || r->day != e->day))
        l->at = &r->next;
    if (!l->at || !*l->at || (g->put.n && *bytes + r->record->bytes > g->max_bytes)) {
        l->at = NULL;
        return false;
    }
    *bytes += r->record->bytes;
    g->put.records[g->put.n] = r->record;
    g->bytes[g->put.n] = r->record->bytes;
    g->owners[g->put.n++] = r->owner;
    *l->at = r->next;
    if (!*l->at)
        l->tail = l->at;
    g->n_queued--;
    free(r);
    return true;
}

/* The first line has had its turn; those without rows go. */
static void turn_lines(struct groups *g)
{
    struct line *first = g->lines, **at = &g->lines;

    *g->last = first;
    g->lines = first->next; /* itself, where it is the only one */
    first->next = NULL;
    while (*at) {
        struct line *l = *at;
        if (l->head) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        free(l);
        g->n_lines--;
    }
    g->last = at;
}

/* Rows of one (class, day), that of the first row of the line whose turn it is; one of each line in each round. */
static void close_group(struct groups *g)
{
    struct entry *e = new_entry(g, g->lines->head);
    size_t bytes = 0;
    bool more = true;

    g->put = (struct group){.id = e->id, .boot = g->boot, .class_days = e->class_days, .day = e->day};
    for (struct line *l = g->lines; l; l = l->next)
        l->at = &l->head;
    while (more) {
        more = false;
        for (struct line *l = g->lines; l && g->put.n < GROUP_MAX; l = l->next)
            more |= take_row(g, l, e, &bytes);
    }
    turn_lines(g);
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
    g->last = &g->lines;
    if (!reserve(g)) {
        free(g);
        return NULL;
    }
    return g;
}

static void line_free(struct line *l)
{
    for (struct row *r = l->head, *next; r; r = next) {
        next = r->next;
        record_free(r->record);
        free(r);
    }
    free(l);
}

void groups_free(struct groups *g)
{
    if (!g)
        return;
    ASSERT(!g->putting);
    for (; g->answering && g->answered < g->put.n; g->answered++)
        record_free(g->put.records[g->answered]);
    for (struct line *l = g->lines, *next; l; l = next) {
        next = l->next;
        line_free(l);
    }
    free(g->ring);
    free(g);
}

/* A new one is linked once it has a row. */
static struct line *line_of(struct groups *g, struct str project)
{
    struct line *l = g->lines;

    while (l && !str_eq(l->head->record->series.project, project))
        l = l->next;
    if (!l && (l = calloc(1, sizeof *l)))
        l->tail = &l->head;
    return l;
}

bool groups_submit(struct groups *g, struct record *r, uint16_t class_days, void *owner)
{
    struct row *row = reserve(g) ? malloc(sizeof *row) : NULL;
    struct line *l = row ? line_of(g, r->series.project) : NULL;

    if (!l) {
        free(row);
        return false;
    }
    if (!l->head) {
        *g->last = l;
        g->last = &l->next;
        g->n_lines++;
    }
    *row = (struct row){.record = r, .owner = owner, .day = day_of(r->time_ns), .class_days = class_days};
    *l->tail = row;
    l->tail = &row->next;
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
    if (g->putting || !g->lines)
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
    return sizeof *g + g->cap * sizeof *g->ring + g->n_queued * sizeof(struct row) + g->n_lines * sizeof(struct line);
}
