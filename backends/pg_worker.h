/*
 * A thread beside the loop that does one job after another and tells the loop of each. The store has two: one packs
 * what is to be sent, one waits for changes of tables.
 */
#ifndef BACKENDS_PG_WORKER_H
#define BACKENDS_PG_WORKER_H

#include <uv.h>

#include "codecs/base.h"

/* Embedded in whatever the job is about; free for another use once done is called. */
struct pg_job {
    void (*run)(struct pg_job *j);  /* on the thread */
    void (*done)(struct pg_job *j); /* on the loop */
    struct pg_job *next;
};

struct pg_worker;
struct pg_worker *pg_worker_new(uv_loop_t *loop) MUST_CHECK; /* NULL: no memory, no thread */
void pg_worker_submit(struct pg_worker *w, struct pg_job *j);
/* After the jobs under way; then closed, once, on the loop. */
void pg_worker_close(struct pg_worker *w, void (*closed)(void *ctx), void *ctx);

#endif
