/*
 * HTTP/1.x requests out of a byte stream, strictly: the only user of llhttp. No socket, no clock.
 *
 * Feed it slices of writable memory. De-chunked body bytes are moved to the front of the slice that they came in, so
 * that whatever the chunking was there is one contiguous run to pump.
 */
#ifndef GATEWAY_HTTP_H
#define GATEWAY_HTTP_H

#include "gateway/head.h"

struct http_limits {
    uint32_t head_bytes, target_bytes, headers;
};

enum http_step {
    HTTP_NEED_MORE, /* took the whole slice */
    HTTP_HEAD_DONE, /* a head is complete: http_take_head; feed the rest of the slice afterwards */
    HTTP_ALL_DONE,  /* the message is complete; what was not taken belongs to the next one */
    HTTP_REFUSED,   /* see http_fault; the stream is dead */
};

struct http;
struct http *http_new(const struct http_limits *limits) MUST_CHECK; /* limits are copied */
void http_free(struct http *h);
/* *used: how much of p[0..n) was taken; *body: length of the run of body bytes now at p[0]. n may be 0. */
enum http_step http_feed(struct http *h, char *p, size_t n, size_t *used, size_t *body) MUST_CHECK;
/* After HTTP_HEAD_DONE, once. The caller frees it. NULL: no memory. */
struct head *http_take_head(struct http *h) MUST_CHECK;
const struct fault *http_fault(const struct http *h);
/* Bytes of a request have come since the last END. */
bool http_begun(const struct http *h);

#endif
