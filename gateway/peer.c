/* The peer of a connection, with or without a PROXY header in front of everything. */
#include "gateway/peer.h"

#include <stdlib.h>

bool peer_open(struct peer *x, const struct conf *c, const uv_tcp_t *tcp, bool proxy_protocol)
{
    struct sockaddr_storage ss;
    int len = sizeof ss;

    *x = (struct peer){.proxy = NULL};
    if (uv_tcp_getpeername(tcp, (struct sockaddr *)&ss, &len) == 0)
        address_of_socket(&x->address, (struct sockaddr *)&ss);
    if (!proxy_protocol)
        return true;
    if (c->n_trusted_proxies && !conf_trusts(c, x->address.ip))
        return false;
    x->proxy = calloc(1, sizeof *x->proxy);
    return x->proxy != NULL;
}

enum proxy_step peer_take(struct peer *x, char **p, size_t *n)
{
    size_t used;
    enum proxy_step step = proxy_feed(x->proxy, *p, *n, &used);

    *p += used;
    *n -= used;
    if (step != PROXY_DONE)
        return step;
    if (x->proxy->has_source)
        x->address = x->proxy->source;
    peer_free(x);
    return step;
}

void peer_free(struct peer *x)
{
    free(x->proxy);
    x->proxy = NULL;
}
