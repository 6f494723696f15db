/* The client of a request behind proxies. */
#ifndef GATEWAY_FORWARDED_H
#define GATEWAY_FORWARDED_H

#include "conf/conf.h"
#include "gateway/address.h"
#include "gateway/head.h"

/*
 * The connection's peer, or, while that is one of trusted_proxies, the hop that it names at the right end of
 * X-Forwarded-For, and so on to the left: the first that is not trusted, or the last before one that is no address.
 * Several lines of that header are one list. Forwarded is not read: a proxy that appends to the one header hands the
 * other through as its client sent it.
 */
void forwarded_client(const struct conf *c, const struct head *h, const struct address *peer, struct address *client);

#endif
