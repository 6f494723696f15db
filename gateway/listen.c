/* Listening sockets. */
#include "gateway/listen.h"

#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <unistd.h>

#include "gateway/certs.h"
#include "gateway/conn.h"
#include "gateway/log.h"
#include "gateway/notify.h"

enum {
    BACKLOG = 1024,
    DESCRIPTORS_KEPT = 48, /* for the stores' files, the admin listener, reloading */
    TELL_MS = 30000,
    FIRST_SOCKET = 3, /* of systemd's */
};

/* Whether so few descriptors are left that stores and whoever looks after the process need them. */
static bool descriptors_short(const struct app *app)
{
    if (app->n_conns < app->descriptors / 2)
        return false;
    int lowest = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (lowest >= 0)
        close(lowest);
    return lowest < 0 || (size_t)lowest + DESCRIPTORS_KEPT >= app->descriptors;
}

/* The events that come in crowds are counted each, and logged now and then. */
static bool tell(struct listener *l)
{
    uint64_t now = uv_now(l->app->loop);
    bool due = !l->told_ms || now - l->told_ms > TELL_MS;

    if (due)
        l->told_ms = now;
    return due;
}

static void hold(struct listener *l, const char *why)
{
    l->app->metrics.plain[M_accept_held] += !l->held;
    l->held = true;
    if (tell(l))
        log_at(LOG_WARN, "new connections wait", LOG_TEXT("address", l->address), LOG_TEXT("why", why),
               LOG_NUM("connections", l->app->n_conns));
}

static void take(struct listener *l)
{
    struct app *app = l->app;
    bool client = l->where == ROUTE_PUBLIC; /* whoever looks after the process gets in always */

    if (client && app->n_conns >= app->conf->max_connections)
        hold(l, "limits.connections");
    else if (client && descriptors_short(app))
        hold(l, "file descriptors");
    else if (!conn_accept(l))
        hold(l, "memory");
    else
        l->held = false;
}

/* libuv stops polling a listener whose connection was not accepted: that is the brake. */
static void on_connection(uv_stream_t *s, int status)
{
    struct listener *l = s->data;

    if (status == 0) {
        take(l);
        return;
    }
    l->app->metrics.plain[M_accept_errors]++;
    if (tell(l))
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

/* systemd's sockets are taken in the order of the configuration, the admin listener's last. */
static int bind_or_inherit(struct listener *l, size_t nth, const struct sockaddr_storage *ss)
{
    if (nth < (size_t)notify_sockets())
        return uv_tcp_open(&l->tcp, FIRST_SOCKET + (int)nth);
    return uv_tcp_bind(&l->tcp, (const struct sockaddr *)ss, 0);
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
        e = bind_or_inherit(l, all->n - 1, &ss);
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

static const char *first_address(const struct listeners *l, enum route_where where)
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
    fprintf(f, "%s\n%s\n", first_address(l, ROUTE_PUBLIC), first_address(l, ROUTE_ADMIN));
    if (fclose(f) == 0 && rename(temp, path) == 0)
        return true;
    unlink(temp);
    return false;
}
