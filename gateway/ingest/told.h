/* The attempts that one answer acknowledged, until it is clear that the client got it (design.md 6, counting once). */
#ifndef GATEWAY_INGEST_TOLD_H
#define GATEWAY_INGEST_TOLD_H

#include "gateway/app.h"

struct told {
    struct app *app;
    uint32_t n, cap;
    struct attempt attempts[];
};
struct told *told_new(struct app *app, uint32_t cap) MUST_CHECK;
/* The answer was written (yes), or never will be. */
void told_written(struct told *t, bool yes);
/* A reset came after all, or an EOF with bytes unacknowledged. Frees. */
void told_untold(struct told *t);
/* Nothing can come any more. Frees; NULL is fine. */
void told_final(struct told *t);

#endif
