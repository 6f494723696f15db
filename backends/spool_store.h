/*
 * Inside of the spool. The loop decides (spool.c: the caller's group and the store's put; spool_replay.c: what is put
 * again); a thread of its own writes and reads files (spool_work.c).
 *
 * The caller's group:
 *   NONE -> ASKING (the inner store has it) -> NONE                                     the ordinary way
 *   NONE -> WAITING (the inner store has another put under way) -> ASKING | SPOOLING
 *   ASKING -> SPOOLING   `after` is over, or the inner store turned it away
 *   NONE -> SPOOLING     the inner store is known to be away
 *   SPOOLING -> NONE     durable: answered as stored; or there is no room: turned away
 *   SPOOLING -> HELD     no room, or no memory for copies, and the inner store still has it: its answer decides
 *
 * The inner store's one put: FREE, CALLER (the caller's group), LEFT (the caller's, answered out of the spool in the
 * meantime: its records are ours and the caller has copies), REPLAY.
 */
#ifndef BACKENDS_SPOOL_STORE_H
#define BACKENDS_SPOOL_STORE_H

#include "backends/spool_work.h"

enum { SPOOL_TICK_MS = 200 };
enum spool_caller { CALLER_NONE, CALLER_WAITING, CALLER_ASKING, CALLER_SPOOLING, CALLER_HELD };
enum spool_inner { INNER_FREE, INNER_CALLER, INNER_LEFT, INNER_REPLAY };
enum spool_replay { REPLAY_IDLE, REPLAY_READING, REPLAY_READY, REPLAY_PUTTING };

struct spool {
    const struct store_host *host;
    const struct sample_store_ops *inner_ops;
    struct sample_store *inner;
    uint64_t after_ms;
    uint64_t opened_ms;
    struct spool_log *log; /* the thread's */
    uint64_t corrupt_told; /* the thread's */
    struct pg_worker *worker;
    uv_timer_t after, tick;

    enum spool_caller caller;
    struct group *group; /* the caller's */
    bool alone;          /* it goes to the inner store, or nowhere */

    enum spool_inner inner_state;
    struct group put; /* what the inner store has; its results until they are the caller's */
    uint64_t put_ms;  /* since when */
    bool put_over;    /* done while the group was being spooled */
    bool suspect;     /* the last put failed, or is late */

    struct spool_append append;
    struct spool_marks marks; /* that wait for the job */
    struct spool_mark_job mark;
    struct spool_tend_job tend;
    bool looked_over; /* what was left from before */

    enum spool_replay replay;
    struct spool_read_job read;
    enum spool_move move; /* before the next one is read */
    bool asked_well;      /* the store called itself healthy when it was given the group */
    unsigned refused;     /* how often it turned this group away all the same */
    uint64_t n_put_off;   /* groups put off since the beginning was last read */
    uint64_t again_ms;    /* when they have their turn; 0: there are none, or the end is still to come */
    uint64_t again_after_ms;
    bool clients;         /* have sent something since the last group was put again */
    uint64_t next_ms;     /* not before */
    uint64_t replayed_ms; /* when something was last put again or marked */
    bool empty;           /* nothing to be read, as far as is known */

    uint64_t own_boot, own_first, own_last, own_n; /* this process's groups that wait here */
    struct spool_stats stats;
    uint64_t outcomes[SPOOL_OUTCOMES_N];

    bool closing, shut;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

void spool_run(struct spool *s);               /* whatever can be done now */
void spool_wake(struct spool *s, uint64_t ms); /* spool_run by then */
void spool_put_inner(struct spool *s, enum spool_inner as, const struct group *g);
void spool_look(struct spool *s, const struct spool_job *j); /* at what a job says */

/* spool_replay.c */
void spool_replay_run(struct spool *s);
void spool_replay_done(struct spool *s); /* of the put */
void spool_replay_drop(struct spool *s); /* what has been read and is not under way */

#endif
