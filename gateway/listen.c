/* Listening sockets. */
#include "gateway/listen.h"

#include <netdb.h>
#include <stdio.h>
#include <unistd.h>

#include "gateway/certs.h"
#include "gateway/conn.h"
#include "gateway/log.h"

enum { BACKLOG = 1024 };

static void take(struct listener *l)
{
    struct app *app = l->app;

    /* Whoever looks after the process gets in even then. */
    l->held = l->where == ROUTE_PUBLIC && app->n_conns >= app->conf->max_connections;
    if (!l->held && !conn_accept(l))
        log_at(LOG_WARN, "accept failed", LOG_TEXT("address", l->address));
}

/* libuv stops polling a listener whose connection was not accepted: that is the brake. */
static void on_connection(uv_stream_t *s, int status)
{
    struct listener *l = s->data;

    if (status == 0)
        take(l);
    else
        log_at(LOG_WARN, "accept failed", LOG_TEXT("address", l->address), LOG_TEXT("why", uv_strerror(status)));
}

void listen_resume(struct listeners *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->all[i].open && l->all[i].held)
            take(&l->all[i]);
}

static int resolve(const struct conf_address *a, struct sockaddr_storage *out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
    char port[8];

    snprintf(port, sizeof port, "%u", a->port);
    if (getaddrinfo(a->host && *a->host ? a->host : NULL, port, &hints, &found) != 0)
        return UV_EINVAL;
    memcpy(out, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

/* What the socket got, for logs and the port file. */
static void name(struct listener *l)
{
    struct sockaddr_storage ss;
    int len = sizeof ss;
    char host[64] = "?";
    unsigned port = 0;

    if (uv_tcp_getsockname(&l->tcp, (struct sockaddr *)&ss, &len) == 0) {
        if (ss.ss_family == AF_INET6)
            uv_ip6_name((struct sockaddr_in6 *)&ss, host, sizeof host);
        else
            uv_ip4_name((struct sockaddr_in *)&ss, host, sizeof host);
        port = ntohs(ss.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&ss)->sin6_port
                                              : ((struct sockaddr_in *)&ss)->sin_port);
    }
    snprintf(l->address, sizeof l->address, ss.ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host, port);
}

/* nth: of the list, for clients. */
static bool start_one(struct listeners *all, struct app *app, const struct conf_address *a, enum route_where where,
                      size_t nth)
{
    struct listener *l = &all->all[all->n];
    struct sockaddr_storage ss;

    if (all->n == LISTENERS_MAX) {
        log_at(LOG_ERROR, "too many listen addresses", LOG_NUM("most", LISTENERS_MAX - 1));
        return false;
    }
    *l = (struct listener){.app = app, .where = where, .nth = nth, .proxy_protocol = a->proxy_protocol};
    int e = resolve(a, &ss);
    if (e == 0)
        e = uv_tcp_init(app->loop, &l->tcp);
    if (e == 0) {
        all->n++;
        l->open = true;
        l->tcp.data = l;
        e = uv_tcp_bind(&l->tcp, (struct sockaddr *)&ss, 0);
    }
    if (e == 0)
        e = uv_listen((uv_stream_t *)&l->tcp, BACKLOG, on_connection);
    if (e != 0) {
        log_at(LOG_ERROR, "cannot listen", LOG_TEXT("host", a->host), LOG_NUM("port", a->port),
               LOG_TEXT("why", uv_strerror(e)));
        return false;
    }
    name(l);
    log_at(LOG_INFO, "listening", LOG_TEXT("address", l->address),
           LOG_TEXT("for", where == ROUTE_ADMIN ? "admin" : "clients"));
    return certs_open(l);
}

bool listen_start(struct listeners *l, struct app *app)
{
    const struct conf *c = app->conf;

    for (size_t i = 0; i < c->n_listen; i++)
        if (!start_one(l, app, &c->listen[i], ROUTE_PUBLIC, i))
            return false;
    return !c->admin_on || start_one(l, app, &c->admin, ROUTE_ADMIN, 0);
}

void listen_stop(struct listeners *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->all[i].open)
            uv_close((uv_handle_t *)&l->all[i].tcp, NULL);
    for (size_t i = 0; i < l->n; i++)
        l->all[i].open = false;
}

const char *listen_address(const struct listeners *l, enum route_where where)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->all[i].where == where)
            return l->all[i].address;
    return "";
}

bool listen_write_ports(const struct listeners *l, const char *path)
{
    char temp[4096];
    int n = snprintf(temp, sizeof temp, "%s.%ld", path, (long)getpid());
    FILE *f = n > 0 && (size_t)n < sizeof temp ? fopen(temp, "we") : NULL;

    if (!f)
        return false;
    fprintf(f, "%s\n%s\n", listen_address(l, ROUTE_PUBLIC), listen_address(l, ROUTE_ADMIN));
    if (fclose(f) == 0 && rename(temp, path) == 0)
        return true;
    unlink(temp);
    return false;
}
