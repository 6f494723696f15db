/*
 * Grouping and marking (design.md 6), as a state machine without I/O: the gateway feeds it events, pulls actions with
 * groups_next and carries them out, in that order, against any store. One thread.
 *
 * A row is one record on its way into the store; its name is its attempt, given when its group closes. Groups close as
 * soon as the writer is free: one (class, day), at most GROUP_MAX rows and max_bytes of records (at least one row);
 * first come first served within a project, and projects take turns, a row each.
 *
 *   submit -> [waiting] -> PUT -> committed -> ANSWER per row -> told(yes or no) per row -> MARK -> untold -> MARK ...
 * -> forgotten
 *
 * Invariants:
 *   - at most one PUT is under way; the next one comes after every ANSWER of the last.
 *   - every row submitted is answered exactly once, unless groups_free comes first; its record goes back with the
 * answer.
 *   - a group is marked once all its rows are decided, if any was told; a bit of a later mark of it is never set where
 * the earlier one had it clear. Rows that were not stored are decided, as not told, with their answer.
 *   - so a row that a mark calls told is committed, and has been told: with once.h, acknowledged <= counted <= sent.
 */
#ifndef BACKENDS_GROUPS_H
#define BACKENDS_GROUPS_H

#include "backends/backend.h"

struct groups;

/* boot: random, this process's. remember_ns: for how long a reset after the reply is still heard of (30 s). NULL: no
 * memory. */
struct groups *groups_new(uint64_t boot, size_t max_bytes, int64_t remember_ns) MUST_CHECK;
void groups_free(struct groups *g); /* with the records that wait; no put may be under way */

/* Takes the record over unless it returns false (no memory). owner comes back with the answer. */
bool groups_submit(struct groups *g, struct record *r, uint16_t class_days, void *owner) MUST_CHECK;
/* The group of the last PUT is done: its results are set. */
void groups_committed(struct groups *g);
/* The 200 of this row was written in time (yes), or never will be (no): 'told' in the sense of design.md 6. Only the
 * first call counts. */
void groups_told(struct groups *g, struct attempt a, bool yes, int64_t now_ns);
/* A reset, or an EOF with bytes unacknowledged, came after the 200 was written. Also legal after the group was
 * forgotten. */
void groups_untold(struct groups *g, struct attempt a, int64_t now_ns);
/* No untold can follow any more for this row: its connection ended well. Lets the group be forgotten early. */
void groups_final(struct groups *g, struct attempt a);
/* Forgets what is old. Call it now and then. */
void groups_tick(struct groups *g, int64_t now_ns);

enum groups_action_kind { GROUPS_PUT, GROUPS_ANSWER, GROUPS_MARK };
struct groups_action {
    enum groups_action_kind kind;
    struct group *group; /* PUT: set done and owner, hand it to the store. MARK: for the store's mark; valid until the
                            next call */
    uint64_t told;       /* MARK */
    struct attempt attempt; /* ANSWER: from here on; call groups_told with it if result is PUT_STORED */
    enum put_result result;
    struct record *record; /* the caller's again */
    void *owner;
};
/* The next thing to do; false: nothing. Submit all rows of a request before asking, so that they may share a group. */
bool groups_next(struct groups *g, struct groups_action *out);

size_t groups_waiting(const struct groups *g); /* rows submitted and not yet answered */
size_t groups_waiting_bytes(const struct groups *g);
bool groups_idle(const struct groups *g);     /* nothing waits, nothing is under way, every mark is out */
size_t groups_memory(const struct groups *g); /* bytes held, records excluded */

#endif
