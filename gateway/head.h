/* The head of one request: pure data, in one allocation with the bytes that it points into. */
#ifndef GATEWAY_HEAD_H
#define GATEWAY_HEAD_H

#include "codecs/base.h"

struct header {
    struct str name, value; /* value without white space around it */
};

struct head {
    struct str method; /* static */
    struct str target; /* as sent */
    struct header *headers;
    uint32_t n_headers;
    uint8_t minor; /* of HTTP/1.x */
    bool chunked, has_length, keep_alive, has_body;
    uint64_t length; /* of the body, if has_length */
    size_t bytes;    /* all memory of it */
};
/* First header of that name in any case, or empty. */
struct str head_get(const struct head *h, struct str name);
/* Header number `from` or later with that name, or NULL; *from goes behind it. */
const struct header *head_next(const struct head *h, struct str name, uint32_t *from);
/* Whether a comma list (Connection, Accept-Encoding, ...) has this token, q=0 not counted. */
bool head_lists(const struct head *h, struct str name, struct str token);
/* Whether a proxy has passed it on: it says so, or writes names as only HAProxy, Envoy and few clients do, in lower
 * case. */
bool head_relayed(const struct head *h);
void head_free(struct head *h);

#endif
