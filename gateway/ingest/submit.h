/*
 * Records on their way into the store: grouping, the put under way, answers to requests, marks. Carries out the actions
 * of backends/groups.h, which decides.
 */
#ifndef GATEWAY_INGEST_SUBMIT_H
#define GATEWAY_INGEST_SUBMIT_H

#include "gateway/app.h"

/* How one record ended: called once per record, on the loop. */
typedef void (*submit_done)(void *owner, struct attempt a, enum put_result result);

struct submit *submit_new(struct app *app, submit_done done) MUST_CHECK;
void submit_free(struct submit *s);
/* Takes the record over, unless it returns false (no memory). Call submit_run when all of a request are in. */
bool submit_record(struct submit *s, struct record *r, void *owner) MUST_CHECK;
void submit_run(struct submit *s);
void submit_told(struct submit *s, struct attempt a, bool yes);
void submit_untold(struct submit *s, struct attempt a);
void submit_final(struct submit *s, struct attempt a);
void submit_tick(struct submit *s);
size_t submit_waiting(const struct submit *s);
bool submit_idle(const struct submit *s);

#endif
