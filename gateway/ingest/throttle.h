/*
 * Rates of a project (rates.*), as token buckets: requests, bytes on the wire, and stacks that the project has not sent
 * lately. A bucket fills by its rate and holds rates.burst of it, bytes never less than limits.body and stacks never
 * less than limits.samples, so that one upload always fits. What is known only later (a body without a length, stacks)
 * is taken when it is known, and the next upload waits until that is made up for. By this process alone: behind a
 * balancer a project gets so much from each replica.
 */
#ifndef GATEWAY_INGEST_THROTTLE_H
#define GATEWAY_INGEST_THROTTLE_H

#include "codecs/record.h"
#include "conf/conf.h"

struct throttle;
struct throttle *throttle_new(void) MUST_CHECK; /* NULL: no memory */
void throttle_free(struct throttle *t);         /* NULL is fine */

/* One upload of so many bytes (0: not known yet), before its body. E_RATE_LIMITED: f names the rate, and when there is
 * enough. now_ns: monotonic. */
enum err throttle_enter(struct throttle *t, struct str project, const struct conf_bounds *b, uint64_t bytes,
                        int64_t now_ns, struct fault *f) MUST_CHECK;
/* Bytes that throttle_enter was not told of. */
void throttle_bytes(struct throttle *t, struct str project, const struct conf_bounds *b, uint64_t bytes,
                    int64_t now_ns);
/* Takes the stacks of a record that are new. */
void throttle_stacks(struct throttle *t, const struct record *r, const struct conf_bounds *b, int64_t now_ns);
size_t throttle_bytes_held(const struct throttle *t);

#endif
