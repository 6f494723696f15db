/* `flamegate healthcheck`: a client of our own, so that an image needs no other. */
#include "gateway/probe.h"

#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "gateway/tls.h"

/* A connection to a listener of this machine; one that listens on every address is asked on loopback. -1: none. */
static int dial(const struct conf_address *a)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    struct timeval patience = {.tv_sec = 3};
    const char *host = a->host && strcmp(a->host, "0.0.0.0") != 0 && strcmp(a->host, "::") != 0 ? a->host : NULL;
    char port[8];
    int fd = -1;

    snprintf(port, sizeof port, "%u", a->port);
    if (getaddrinfo(host, port, &hints, &list) != 0)
        return -1;
    for (const struct addrinfo *i = list; i && fd < 0; i = i->ai_next) {
        fd = socket(i->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        if (connect(fd, i->ai_addr, i->ai_addrlen) == 0)
            continue;
        close(fd);
        fd = -1;
    }
    freeaddrinfo(list);
    return fd;
}

static bool ask(const struct conf_address *a)
{
    static const char text[] = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    static const char local[] = "PROXY UNKNOWN\r\n";
    char answer[64] = "";
    int fd = dial(a);

    if (fd < 0)
        return false;
    bool ok = !a->proxy_protocol || write(fd, local, sizeof local - 1) > 0;
    if (ok && a->cert_file)
        ok = tls_ask(fd, (struct str){text, sizeof text - 1}, answer, sizeof answer - 1);
    else
        ok = ok && write(fd, text, sizeof text - 1) > 0 && read(fd, answer, sizeof answer - 1) > 0;
    close(fd);
    return ok && strncmp(answer, "HTTP/1.1 200 ", 13) == 0;
}

/* The more, the less likely that we get in: we have no certificate to show, and may not be a trusted proxy. */
static int bother(const struct conf_address *a)
{
    return 4 * (a->client_ca_file && !a->client_optional) + 2 * a->proxy_protocol + (a->cert_file != NULL);
}

static const struct conf_address *choose(const struct conf *c)
{
    const struct conf_address *best = &c->listen[0];

    for (size_t i = 1; i < c->n_listen; i++)
        if (bother(&c->listen[i]) < bother(best))
            best = &c->listen[i];
    return c->admin_on ? &c->admin : best;
}

bool probe_ready(const struct conf *c)
{
    return ask(choose(c));
}
