/* What became of the profiles of one request, and the answer that follows (design.md 5). */
#ifndef GATEWAY_INGEST_VERDICT_H
#define GATEWAY_INGEST_VERDICT_H

#include "backends/backend.h"
#include "codecs/upload.h"
#include "gateway/metrics.h"
#include "gateway/reply.h"

enum { REASONS_MAX = 5 };
struct verdict {
    uint32_t profiles, stored, empty, refused, failed;
    enum err failure;                  /* of a failed one */
    bool mixed;                        /* refused for different errors */
    struct fault reasons[REASONS_MAX]; /* the first ones */
};
void verdict_refused(struct verdict *v, const struct fault *f);
void verdict_failed(struct verdict *v, enum err e);
/* 200, or the one error that stands for all. success_type NULL: an empty answer without a type (/ingest). */
void verdict_reply(const struct verdict *v, const char *success_type, struct reply *out);

#endif
