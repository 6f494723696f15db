/*
 * The PROXY protocol's header, versions 1 and 2, out of a byte stream: who the client of a proxy is. Pure: no socket,
 * no clock. What is not exactly such a header is BAD, since on its listener nothing else may come first.
 */
#ifndef GATEWAY_PROXY_H
#define GATEWAY_PROXY_H

#include "gateway/address.h"

/* All of a version 2 header with its TLVs; the longest of version 1 has 107 bytes. */
enum { PROXY_BYTES_MAX = 4096 };

enum proxy_step {
    PROXY_NEED_MORE, /* took everything */
    PROXY_DONE,      /* what was not taken belongs to the stream behind it */
    PROXY_BAD,
};

/* All zero at first. */
struct proxy {
    uint8_t head[108];
    uint16_t n;       /* of head */
    uint16_t skipped; /* bytes of addresses and TLVs that are not kept */
    bool has_source;  /* PROXY_DONE: else (LOCAL, UNKNOWN, UNSPEC, AF_UNIX) the connection speaks for itself */
    struct address source;
};
/* *used: how much of p[0..n) was taken. Not again after DONE or BAD. */
enum proxy_step proxy_feed(struct proxy *x, const char *p, size_t n, size_t *used) MUST_CHECK;

#endif
