/* Who is at the other end of a connection: the peer of its socket, or whom the PROXY header of its listener names. */
#ifndef GATEWAY_PEER_H
#define GATEWAY_PEER_H

#include <uv.h>

#include "conf/conf.h"
#include "gateway/proxy.h"

struct peer {
    struct address address;
    struct proxy *proxy; /* a PROXY header is due, and nothing else; NULL: no (more) */
};
/* The socket has been accepted. false: nobody may say here who its client is but trusted_proxies; or out of memory. */
bool peer_open(struct peer *x, const struct conf *c, const uv_tcp_t *tcp, bool proxy_protocol) MUST_CHECK;
/* While `proxy`: takes what belongs to the header off the front of the bytes *p, *n. */
enum proxy_step peer_take(struct peer *x, char **p, size_t *n) MUST_CHECK;
void peer_free(struct peer *x);

#endif
