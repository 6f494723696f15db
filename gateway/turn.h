/*
 * The loop's turn: 4 ms of work over all connections, whoever has more to do comes back next turn, in order. So a large
 * upload delays nobody by more than a turn (design.md 3).
 */
#ifndef GATEWAY_TURN_H
#define GATEWAY_TURN_H

#include <uv.h>

#include "codecs/base.h"

/* Embedded in a connection; zeroed at first. */
struct turn_entry {
    void (*run)(struct turn_entry *e);
    struct turn_entry *prev, *next;
    bool queued;
};

struct turn {
    uv_check_t check; /* starts a new turn */
    uv_idle_t idle;   /* active only while somebody is queued */
    struct turn_entry *head, *tail;
    uint64_t started_ns; /* 0: nobody has worked yet */
};
void turn_init(struct turn *t, uv_loop_t *loop);
bool turn_left(struct turn *t); /* whether there is still time in this turn */
void turn_push(struct turn *t,
               struct turn_entry *e); /* once is enough; e->run is called in a later turn, or later in this one */
void turn_drop(struct turn *t, struct turn_entry *e);
void turn_close(struct turn *t);

#endif
