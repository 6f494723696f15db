/* What goes back: status, headers, body; and the one shape that every error has (design.md 5). */
#ifndef GATEWAY_REPLY_H
#define GATEWAY_REPLY_H

#include "codecs/base.h"

struct reply {
    int status;
    const char *content_type; /* static; NULL: none */
    struct buf headers;       /* further ones, each "Name: value\r\n" */
    struct buf body;
    bool head_only; /* to HEAD: the length, but no body */
};
void reply_free(struct reply *r);
void reply_header(struct reply *r, const char *name, const char *value); /* value: no client bytes */
/* {"code","message"} with what the status asks for besides: Retry-After, WWW-Authenticate, Accept-Post,
 * Accept-Encoding. */
void reply_fault(struct reply *r, const struct fault *f);
void reply_text(struct reply *r, int status, const char *text);
/* The head in wire form. false: no memory. */
bool reply_render(const struct reply *r, int64_t now_s, bool close, struct buf *out) MUST_CHECK;
const char *reply_reason(int status);

#endif
