/* /ingest and Push: from the body to the answer. Its events from admission and the store come in through these. */
#ifndef GATEWAY_INGEST_INGEST_H
#define GATEWAY_INGEST_INGEST_H

#include "gateway/admit.h"
#include "gateway/app.h"

enum { INGEST_FIRST_BYTES = 256 << 10 };

extern const struct admit_events ingest_admit_events;
void ingest_stored(void *owner, struct attempt a, enum put_result result);
/* The most that one upload may hold: decoded and on the wire. Known to fit into its share of `memory`. */
size_t ingest_max_bytes(const struct conf *c);

#endif
