/*
 * Admission: who may use how much of the memory for uploads. A pure state machine: events and a clock in, actions out
 * through two callbacks; no I/O. Rules (design.md 3):
 *
 *  - a request is let in with `first` bytes, FIFO inside its project and by turns between projects;
 *  - a project holds at most three times what is free then (the oldest aside), so one alone never holds all;
 *  - it grows in steps; when a step does not fit, it pauses; of those paused the oldest of all comes first, then those
 * of the project that holds least, oldest first;
 *  - always: granted + (max - the oldest's grant) <= capacity. So the oldest can grow to `max` without asking anybody,
 * finishes, gives back, and the next one is the oldest: somebody always finishes;
 *  - who has not been let in by its deadline is timed out; who goes away unlinks itself.
 */
#ifndef GATEWAY_ADMIT_H
#define GATEWAY_ADMIT_H

#include "codecs/base.h"

enum ticket_state {
    TICKET_NONE,    /* not known here */
    TICKET_WAITING, /* for its first bytes */
    TICKET_IN,      /* may use `granted` */
    TICKET_GROWING, /* in, paused until `wants` is granted */
    TICKET_SEALED,  /* holds `granted` to the end, still in the order of age */
    TICKET_ASIDE,   /* the same, no longer in it */
};

struct party;
/* Embedded in a request, zeroed at first. */
struct ticket {
    enum ticket_state state;
    struct party *party; /* those of its project; NULL: not known here */
    size_t granted, wants;
    uint64_t deadline_ms;
    struct ticket *prev, *next; /* in its project's queue while waiting, else in order of age */
};

struct admit_events {
    void (*granted)(struct ticket *t);   /* was waiting or growing, is in now */
    void (*timed_out)(struct ticket *t); /* is unknown now */
};

struct admit;
/* max: the most that one ticket may ever hold; first <= max <= capacity. NULL: no memory. */
struct admit *admit_new(size_t capacity, size_t first, size_t max, uint64_t patience_ms,
                        const struct admit_events *ev) MUST_CHECK;
void admit_free(struct admit *a);

enum admit_answer { ADMIT_YES, ADMIT_WAIT, ADMIT_NO };
/* A new request. YES: in at once. WAIT: granted or timed_out follows. NO: no memory for the project. */
enum admit_answer admit_arrive(struct admit *a, struct ticket *t, struct str project, uint64_t now_ms) MUST_CHECK;
/* It needs `total` bytes in all. YES: has them. WAIT: granted follows. NO: more than max, it can never have them. */
enum admit_answer admit_grow(struct admit *a, struct ticket *t, size_t total) MUST_CHECK;
/* It has sealed its records and freed the rest: gives back what is above `total`, and never grows again. */
void admit_seal(struct admit *a, struct ticket *t, size_t total);
/* Finished or gone, in any state; TICKET_NONE is fine. */
void admit_leave(struct admit *a, struct ticket *t);
/* Times out those whose deadline has come. Returns the next deadline, 0 if nobody waits. */
uint64_t admit_tick(struct admit *a, uint64_t now_ms);

size_t admit_granted(const struct admit *a); /* sum of grants, never above the capacity */
size_t admit_waiting(const struct admit *a); /* tickets waiting to get in */
size_t admit_max(const struct admit *a);

#endif
