/*
 * Admission, walked through exhaustively: three and four requests of two projects in every order of {arrive, grow,
 * seal, finish, client gone, time-out}. Every reachable state is visited once, by replaying the events that lead to it.
 */
#include "gateway/admit.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { CAPACITY = 11, FIRST = 1, MAX = 6, STEP = 2, TICKETS = 4, PATH_MAX_EVENTS = 40, STATES_MAX = 1 << 20 };

enum event { EV_ARRIVE, EV_GROW, EV_SEAL, EV_LEAVE, EV_TIMEOUT, EVENTS };

struct world {
    struct admit *admit;
    struct ticket tickets[TICKETS];
    bool done[TICKETS];
    size_t had[TICKETS];                  /* granted, before the event that is being looked at */
    unsigned n, arrivals, order[TICKETS]; /* order of arrival, from 1 */
    uint64_t now;
};

static struct world *the_world;

static unsigned index_of(const struct ticket *t)
{
    return (unsigned)(t - the_world->tickets);
}

static struct str project_of(unsigned i)
{
    return i % 2 ? STR("odd") : STR("even");
}

/* No grower is passed over for one of a project that holds more, unless that one is the oldest or asks for less. */
static void check_growers(const struct world *w, unsigned at)
{
    const struct ticket *t = &w->tickets[at];
    const struct admit *a = w->admit;
    size_t more = t->granted - w->had[at], before = party_holds(a, t->party) - more;

    if (t == a->oldest)
        return;
    for (unsigned i = 0; i < w->n; i++) {
        const struct ticket *o = &w->tickets[i];
        if (o->state == TICKET_GROWING && o->party != t->party && o->wants - o->granted <= more &&
            may_grow(a, o, o->wants))
            assert_true(party_holds(a, o->party) >= before);
    }
}

/* Nobody of the same project who came later may be let in before one that still waits. */
static void on_granted(struct ticket *t)
{
    struct world *w = the_world;
    unsigned at = index_of(t);

    assert_int_equal(t->state, TICKET_IN);
    if (w->had[at])
        check_growers(w, at);
    w->had[at] = t->granted;
    for (unsigned i = 0; i < w->n; i++)
        if (w->tickets[i].state == TICKET_WAITING && w->tickets[i].party == t->party)
            assert_true(w->order[i] > w->order[at]);
}

static void on_timed_out(struct ticket *t)
{
    assert_int_equal(t->state, TICKET_NONE);
    the_world->done[index_of(t)] = true;
}

static const struct admit_events events = {on_granted, on_timed_out};

static bool possible(const struct world *w, unsigned i, enum event e)
{
    enum ticket_state s = w->tickets[i].state;

    switch (e) {
    case EV_ARRIVE:
        return s == TICKET_NONE && !w->done[i];
    case EV_GROW:
        return s == TICKET_IN && w->tickets[i].granted < MAX;
    case EV_SEAL:
        return s == TICKET_IN;
    case EV_LEAVE:
        return s != TICKET_NONE;
    default:
        return i == 0 && admit_waiting(w->admit) > 0;
    }
}

/* What is known of projects is what their tickets say. */
static void check_parties(const struct world *w)
{
    for (const struct party *p = w->admit->parties; p; p = p->next) {
        size_t tickets = 0, granted = 0;
        for (unsigned i = 0; i < w->n; i++) {
            tickets += w->tickets[i].party == p;
            granted += w->tickets[i].party == p ? w->tickets[i].granted : 0;
        }
        assert_true(tickets > 0);
        assert_int_equal(tickets, p->tickets);
        assert_int_equal(granted, p->granted);
    }
}

static void check(const struct world *w)
{
    size_t sum = 0;
    unsigned stuck = 0, moving = 0;

    for (unsigned i = 0; i < w->n; i++) {
        enum ticket_state s = w->tickets[i].state;
        sum += w->tickets[i].granted;
        assert_true(w->tickets[i].granted <= MAX);
        stuck += s == TICKET_WAITING || s == TICKET_GROWING;
        moving += s == TICKET_IN || s == TICKET_SEALED || s == TICKET_ASIDE;
    }
    check_parties(w);
    assert_int_equal(sum, admit_granted(w->admit));
    assert_true(sum <= CAPACITY);
    assert_true(stuck == 0 || moving > 0); /* somebody always finishes */
    if (w->admit->oldest) {
        assert_int_not_equal(w->admit->oldest->state, TICKET_GROWING);
        assert_true(sum + MAX - w->admit->oldest->granted <= CAPACITY);
    }
}

static void apply(struct world *w, unsigned i, enum event e)
{
    struct ticket *t = &w->tickets[i];

    switch (e) {
    case EV_ARRIVE:
        w->order[i] = ++w->arrivals;
        (void)!admit_arrive(w->admit, t, project_of(i), w->now++);
        break;
    case EV_GROW:
        (void)!admit_grow(w->admit, t, t->granted + STEP < MAX ? t->granted + STEP : MAX);
        break;
    case EV_SEAL:
        admit_seal(w->admit, t, 1);
        break;
    case EV_LEAVE:
        admit_leave(w->admit, t);
        w->done[i] = true;
        break;
    default:
        admit_tick(w->admit, w->now + 1000000);
        break;
    }
    for (unsigned k = 0; k < w->n; k++)
        w->had[k] = w->tickets[k].granted;
    check(w);
}

static void world_open(struct world *w, unsigned n)
{
    *w = (struct world){.n = n};
    the_world = w;
    w->admit = admit_new(CAPACITY, FIRST, MAX, 1000, &events);
    assert_non_null(w->admit);
}

/* Everybody leaves; nothing may be left granted. */
static void world_close(struct world *w)
{
    for (unsigned i = 0; i < w->n; i++)
        admit_leave(w->admit, &w->tickets[i]);
    assert_int_equal(admit_granted(w->admit), 0);
    assert_int_equal(admit_waiting(w->admit), 0);
    admit_free(w->admit);
}

/* Everything that the future depends on, as text: each ticket, and the order of ages and of queues. */
static uint64_t fingerprint(const struct world *w)
{
    uint64_t h = 1469598103934665603u;
#define MIX(v) (h = (h ^ (uint64_t)(v)) * 1099511628211u)
    for (unsigned i = 0; i < w->n; i++) {
        const struct ticket *t = &w->tickets[i];
        MIX(t->state);
        MIX(t->granted);
        MIX(t->wants);
        MIX(w->done[i]);
    }
    for (const struct ticket *t = w->admit->oldest; t; t = t->next)
        MIX(10 + index_of(t));
    for (const struct party *p = w->admit->waiters; p; p = p->next_waiting)
        for (const struct ticket *t = p->head; t; t = t->next)
            MIX(20 + index_of(t));
#undef MIX
    return h ? h : 1;
}

struct node {
    uint32_t parent;
    uint8_t ticket, event;
};
struct walk {
    uint64_t *seen; /* open addressing, STATES_MAX cells */
    struct node *nodes;
    uint32_t n;
};

static bool seen_before(struct walk *k, uint64_t h)
{
    size_t at = h & (STATES_MAX - 1);

    while (k->seen[at] && k->seen[at] != h)
        at = (at + 1) & (STATES_MAX - 1);
    bool was = k->seen[at] == h;
    k->seen[at] = h;
    return was;
}

static void replay(struct walk *k, uint32_t node, struct world *w)
{
    uint32_t path[PATH_MAX_EVENTS], n = 0;

    for (; node; node = k->nodes[node].parent) {
        assert_true(n < PATH_MAX_EVENTS);
        path[n++] = node;
    }
    while (n--)
        apply(w, k->nodes[path[n]].ticket, (enum event)k->nodes[path[n]].event);
}

static void expand(struct walk *k, uint32_t from, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        for (unsigned e = 0; e < EVENTS; e++) {
            struct world w;
            world_open(&w, n);
            replay(k, from, &w);
            if (possible(&w, i, (enum event)e)) {
                apply(&w, i, (enum event)e);
                if (!seen_before(k, fingerprint(&w))) {
                    assert_true(k->n < STATES_MAX / 2);
                    k->nodes[k->n++] = (struct node){from, (uint8_t)i, (uint8_t)e};
                }
            }
            world_close(&w);
        }
    }
}

static uint32_t walk(unsigned n)
{
    struct walk k = {calloc(STATES_MAX, sizeof *k.seen), calloc(STATES_MAX, sizeof *k.nodes), 1};

    assert_non_null(k.seen);
    assert_non_null(k.nodes);
    for (uint32_t at = 0; at < k.n; at++)
        expand(&k, at, n);
    free(k.seen);
    free(k.nodes);
    return k.n;
}

static void test_three_requests(void **state)
{
    (void)state;
    uint32_t states = walk(3);
    print_message("three requests: %u states\n", states);
    assert_true(states > 500);
}

static void test_four_requests(void **state)
{
    (void)state;
    uint32_t states = walk(4);
    print_message("four requests: %u states\n", states);
    assert_true(states > 5000);
}

static void test_by_turns(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, 4);
    for (unsigned i = 0; i < 4; i++)
        w.order[i] = i + 1;
    assert_int_equal(admit_arrive(w.admit, &w.tickets[0], STR("a"), 0), ADMIT_YES);
    assert_int_equal(admit_grow(w.admit, &w.tickets[0], MAX), ADMIT_YES);
    admit_free(NULL);
    /* Fill the rest: CAPACITY - MAX = 5 tickets of FIRST would fit; shrink it by hand to make them wait. */
    w.admit->capacity = MAX;
    assert_int_equal(admit_arrive(w.admit, &w.tickets[1], STR("a"), 0), ADMIT_WAIT);
    assert_int_equal(admit_arrive(w.admit, &w.tickets[2], STR("a"), 0), ADMIT_WAIT);
    assert_int_equal(admit_arrive(w.admit, &w.tickets[3], STR("b"), 0), ADMIT_WAIT);
    w.admit->capacity = MAX + FIRST;
    admit_leave(w.admit, &w.tickets[0]);
    assert_int_equal(w.tickets[1].state, TICKET_IN);
    assert_int_equal(w.tickets[3].state, TICKET_IN); /* b's turn, though a's second came before it */
    assert_int_equal(w.tickets[2].state, TICKET_WAITING);
    world_close(&w);
}

static void test_deadlines(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, 3);
    w.admit->capacity = MAX;
    assert_int_equal(admit_arrive(w.admit, &w.tickets[0], STR("a"), 0), ADMIT_YES);
    assert_int_equal(admit_arrive(w.admit, &w.tickets[1], STR("a"), 100), ADMIT_WAIT);
    assert_int_equal(admit_arrive(w.admit, &w.tickets[2], STR("b"), 200), ADMIT_WAIT);
    assert_int_equal(admit_tick(w.admit, 1099), 1100);
    assert_int_equal(admit_tick(w.admit, 1100), 1200);
    assert_true(w.done[1] && !w.done[2]);
    assert_int_equal(admit_tick(w.admit, 1200), 0);
    assert_true(w.done[2]);
    world_close(&w);
}

static void test_more_than_the_maximum(void **state)
{
    struct world w;

    (void)state;
    world_open(&w, 1);
    assert_int_equal(admit_arrive(w.admit, &w.tickets[0], STR("a"), 0), ADMIT_YES);
    assert_int_equal(admit_grow(w.admit, &w.tickets[0], MAX + 1), ADMIT_NO);
    assert_int_equal(w.tickets[0].state, TICKET_IN);
    world_close(&w);
}

static void quietly(struct ticket *t)
{
    (void)t;
}

static const struct admit_events quiet = {quietly, quietly};

static void arrive(struct admit *a, struct ticket *t, struct str project, size_t total, enum ticket_state then)
{
    if (admit_arrive(a, t, project, 0) == ADMIT_YES && total > 1)
        (void)!admit_grow(a, t, total);
    assert_int_equal(t->state, then);
}

/* b came last and asks for more, but a holds more. */
static void test_growers_of_the_poorer_first(void **state)
{
    struct admit *a = admit_new(20, 1, 6, 1000, &quiet);
    struct ticket t[5] = {{0}};

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        arrive(a, &t[i], STR("a"), i ? 4 : 6, TICKET_IN);
    arrive(a, &t[3], STR("a"), 4, TICKET_GROWING);
    arrive(a, &t[4], STR("b"), 5, TICKET_GROWING);
    admit_leave(a, &t[1]);
    assert_int_equal(t[4].state, TICKET_IN);
    assert_int_equal(t[3].state, TICKET_GROWING);
    for (unsigned i = 0; i < 5; i++)
        admit_leave(a, &t[i]);
    admit_free(a);
}

/* a has its share and waits; that keeps neither b, who is new, nor those behind it who waited for room. */
static void test_who_has_its_share_keeps_nobody_out(void **state)
{
    struct admit *a = admit_new(10, 1, 6, 1000, &quiet);
    struct ticket t[8] = {{0}};

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        arrive(a, &t[i], STR("a"), 1, TICKET_IN);
    arrive(a, &t[4], STR("a"), 1, TICKET_WAITING);
    arrive(a, &t[5], STR("b"), 1, TICKET_IN);
    arrive(a, &t[6], STR("b"), 1, TICKET_WAITING); /* now there is no room */
    arrive(a, &t[7], STR("c"), 1, TICKET_WAITING);
    admit_leave(a, &t[5]);
    assert_int_equal(t[4].state, TICKET_WAITING);
    assert_int_equal(t[6].state, TICKET_IN);
    assert_int_equal(t[7].state, TICKET_WAITING);
    admit_leave(a, &t[1]);
    assert_int_equal(t[4].state, TICKET_IN); /* a's turn, now that it holds less */
    assert_int_equal(t[7].state, TICKET_WAITING);
    admit_leave(a, &t[6]);
    assert_int_equal(t[7].state, TICKET_IN);
    for (unsigned i = 0; i < 8; i++)
        admit_leave(a, &t[i]);
    admit_free(a);
}

/*
 * A flood by numbers: project "a" keeps FLOOD uploads at the door, each of 8 MiB in steps, which take 40 ticks inside
 * once they have it all; project "b" sends one of 512 KiB every tenth tick, which takes two. How long b's waited, from
 * arrival to all of their memory.
 */
enum { MIB = 1 << 20, UNIT = 256 << 10, FLOOD = 200, STEADY = 400, TICKS = 4000, A_TICKS = 40, B_TICKS = 2 };

struct upload {
    struct ticket ticket;
    size_t needs;
    unsigned came, inside; /* ticks; inside: with all of its memory */
    bool whole;
};
static struct upload flood[FLOOD], steady[STEADY];
static unsigned n_timed_out_b;

static void flood_timed_out(struct ticket *t)
{
    n_timed_out_b += (struct upload *)(void *)t >= steady && (struct upload *)(void *)t < steady + STEADY;
}

static void step(struct admit *a, struct upload *u, unsigned lasts)
{
    struct ticket *t = &u->ticket;

    if (t->state == TICKET_IN && t->granted < u->needs)
        (void)!admit_grow(a, t, t->granted + MIB < u->needs ? t->granted + MIB : u->needs);
    if (t->state != TICKET_IN || t->granted < u->needs)
        return;
    u->whole = true;
    if (++u->inside > lasts)
        admit_leave(a, t);
}

static int by_size(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

    return (x > y) - (x < y);
}

/* Ticks that the slowest of 100 of b's waited. */
static unsigned wait_of_b(bool flooded)
{
    static const struct admit_events ev = {quietly, flood_timed_out};
    struct admit *a = admit_new(64 * MIB, UNIT, 32 * MIB, 500, &ev);
    static unsigned waits[STEADY];
    unsigned n = 0;

    assert_non_null(a);
    memset(flood, 0, sizeof flood);
    memset(steady, 0, sizeof steady);
    n_timed_out_b = 0;
    for (unsigned now = 0; now < TICKS; now++) {
        (void)admit_tick(a, now);
        for (unsigned i = 0; flooded && i < FLOOD; i++) {
            if (flood[i].ticket.state == TICKET_NONE) {
                flood[i] = (struct upload){.needs = 8 * MIB, .came = now};
                assert_int_not_equal(admit_arrive(a, &flood[i].ticket, STR("a"), now), ADMIT_NO);
            }
            step(a, &flood[i], A_TICKS);
        }
        if (now % 10 == 0) {
            steady[now / 10] = (struct upload){.needs = 2 * UNIT, .came = now};
            assert_int_not_equal(admit_arrive(a, &steady[now / 10].ticket, STR("b"), now), ADMIT_NO);
        }
        for (unsigned i = 0; i <= now / 10; i++) {
            bool was = steady[i].whole;
            step(a, &steady[i], B_TICKS);
            if (!was && steady[i].whole)
                waits[n++] = now - steady[i].came;
        }
    }
    for (unsigned i = 0; i < FLOOD; i++)
        admit_leave(a, &flood[i].ticket);
    for (unsigned i = 0; i < STEADY; i++)
        admit_leave(a, &steady[i].ticket);
    admit_free(a);
    assert_true(n >= STEADY - 20);
    qsort(waits, n, sizeof *waits, by_size);
    return waits[n * 99 / 100];
}

static void test_a_flood_by_numbers(void **state)
{
    (void)state;
    unsigned alone = wait_of_b(false), flooded = wait_of_b(true);
    print_message("b's p99: %u ticks alone, %u beside the flood, %u timed out\n", alone, flooded, n_timed_out_b);
    assert_int_equal(n_timed_out_b, 0);
    assert_true(flooded <= 2 * alone + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_requests),
        cmocka_unit_test(test_four_requests),
        cmocka_unit_test(test_by_turns),
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_more_than_the_maximum),
        cmocka_unit_test(test_growers_of_the_poorer_first),
        cmocka_unit_test(test_who_has_its_share_keeps_nobody_out),
        cmocka_unit_test(test_a_flood_by_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
