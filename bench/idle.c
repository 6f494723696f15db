/*
 * idle: what a kept connection costs the server in memory; prints one line of JSON.
 *
 *   idle PORT CONNECTIONS SERVER_PID plain|tls [LABEL]
 *
 * A tenth of the connections comes and goes first, so that what the process keeps for any traffic is there. Then all
 * are opened, one request each is answered on them, and they stay. Kernel memory is not counted, the server's resident
 * memory is.
 */
#include "bench/server.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <openssl/ssl.h>

static SSL_CTX *ctx; /* NULL: in the clear */

struct link {
    int fd;
    SSL *ssl;
};

static bool ask(struct link *l)
{
    static const char request[] = "GET /readyz HTTP/1.1\r\nHost: bench\r\n\r\n";
    char answer[1024];
    int n;

    if (l->ssl)
        n = SSL_write(l->ssl, request, sizeof request - 1) > 0 ? SSL_read(l->ssl, answer, sizeof answer - 1) : -1;
    else
        n = write(l->fd, request, sizeof request - 1) > 0 ? (int)read(l->fd, answer, sizeof answer - 1) : -1;
    return n > 12 && memcmp(answer, "HTTP/1.1 200", 12) == 0;
}

static bool open_link(struct link *l, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    *l = (struct link){.fd = socket(AF_INET, SOCK_STREAM, 0)};
    if (l->fd < 0 || connect(l->fd, (struct sockaddr *)&to, sizeof to) != 0)
        return false;
    if (ctx) {
        l->ssl = SSL_new(ctx);
        if (!l->ssl || SSL_set_fd(l->ssl, l->fd) != 1 || SSL_connect(l->ssl) != 1)
            return false;
    }
    return ask(l);
}

static void close_link(struct link *l)
{
    SSL_free(l->ssl);
    close(l->fd);
}

static size_t open_links(struct link *links, size_t n, uint16_t port)
{
    size_t i = 0;

    while (i < n && open_link(&links[i], port))
        i++;
    return i;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: idle PORT CONNECTIONS SERVER_PID plain|tls [LABEL]\n");
        return 2;
    }
    uint16_t port = (uint16_t)strtoul(argv[1], NULL, 10);
    size_t wanted = strtoul(argv[2], NULL, 10), warm = wanted / 10;
    int pid = (int)strtol(argv[3], NULL, 10);
    struct rlimit limit;
    struct link *links = calloc(wanted, sizeof *links);

    signal(SIGPIPE, SIG_IGN);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (strcmp(argv[4], "tls") == 0) {
        ctx = SSL_CTX_new(TLS_client_method()); /* whoever answers: it is ours */
        SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    }
    warm = open_links(links, warm, port);
    for (size_t i = 0; i < warm; i++)
        close_link(&links[i]);
    usleep(500000);
    long before = server_use(pid).rss_kb;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    size_t n = open_links(links, wanted, port);
    clock_gettime(CLOCK_MONOTONIC, &b);
    usleep(500000);
    long after = server_use(pid).rss_kb;
    printf("{\"label\":\"%s\",\"connections\":%zu,\"value\":%.0f,\"per_second\":%.0f}\n", argc > 5 ? argv[5] : "idle",
           n, n ? (double)(after - before) * 1024 / (double)n : 0.0,
           (double)n / ((double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9));
    return n == wanted ? 0 : 1;
}
