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
    unsigned n, arrivals, order[TICKETS]; /* order of arrival, from 1 */
    uint64_t now;
};

static struct world *the_world;

static unsigned index_of(const struct ticket *t)
{
    return (unsigned)(t - the_world->tickets);
}

/* Nobody of the same project who came later may be let in before one that still waits. */
static void on_granted(struct ticket *t)
{
    struct world *w = the_world;

    assert_int_equal(t->state, TICKET_IN);
    for (unsigned i = 0; i < w->n; i++)
        if (w->tickets[i].state == TICKET_WAITING && str_eq(w->tickets[i].project, t->project))
            assert_true(w->order[i] > w->order[index_of(t)]);
}

static void on_timed_out(struct ticket *t)
{
    assert_int_equal(t->state, TICKET_NONE);
    the_world->done[index_of(t)] = true;
}

static const struct admit_events events = {on_granted, on_timed_out};

static struct str project_of(unsigned i)
{
    return i % 2 ? STR("odd") : STR("even");
}

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
    for (const struct project *p = w->admit->projects; p; p = p->next)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_requests),
        cmocka_unit_test(test_four_requests),
        cmocka_unit_test(test_by_turns),
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_more_than_the_maximum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
