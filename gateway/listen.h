/* Listening sockets, and the accept brake: at limits.connections nobody is accepted until somebody leaves. */
#ifndef GATEWAY_LISTEN_H
#define GATEWAY_LISTEN_H

#include "gateway/app.h"

enum { LISTENERS_MAX = 17 };
struct listener {
    struct app *app;
    uv_tcp_t tcp;
    enum route_where where;
    bool proxy_protocol;
    size_t nth;              /* in the configuration's list */
    struct tls_context *tls; /* NULL: in the clear */
    struct tls_row *row;     /* its metrics */
    bool open, held;         /* held: a connection waits in the backlog */
    uint64_t told_ms;        /* when it last logged that */
    char address[80];        /* host:port, with the port that it got */
};
struct listeners {
    struct listener all[LISTENERS_MAX];
    size_t n;
};
/* Binds everything of the configuration. false: logged. */
bool listen_start(struct listeners *l, struct app *app) MUST_CHECK;
void listen_resume(struct listeners *l); /* a connection has closed, or some time has passed */
void listen_stop(struct listeners *l);
/* Writes the first address of clients and that of `admin` to a file, a line each, whole or not at all. */
bool listen_write_ports(const struct listeners *l, const char *path) MUST_CHECK;

#endif
