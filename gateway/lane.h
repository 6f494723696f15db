/*
 * Lanes: named threads with a bounded queue beside the loop. Jobs run in order of submission, but parties (projects)
 * take turns; `done` runs on the loop. A lane of its own per kind of work, because on a shared pool one query would
 * delay every upload (design.md 2).
 */
#ifndef GATEWAY_LANE_H
#define GATEWAY_LANE_H

#include <uv.h>

#include "codecs/base.h"

/* Embedded in its owner; lives until done. */
struct job {
    void (*work)(struct job *j); /* on a thread of the lane */
    void (*done)(struct job *j); /* on the loop, once */
    uint64_t party;              /* whose it is; 0: nobody's, behind all that are there */
    uint64_t turn;               /* the lane's own, as is the next one */
    struct job *next;
};

struct lane;
struct lane *lane_new(uv_loop_t *loop, const char *name, unsigned threads, size_t capacity) MUST_CHECK;
bool lane_submit(struct lane *l, struct job *j) MUST_CHECK; /* false: the queue is full; the job was not taken */
size_t lane_waiting(struct lane *l);                        /* jobs that no thread has taken yet */
size_t lane_capacity(const struct lane *l);
/* Runs what is queued, joins the threads and frees; every done has run before. Call on the loop with no job expected to
 * come. */
void lane_close(struct lane *l);

#endif
