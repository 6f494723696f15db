/*
 * One name after the other through uv_getaddrinfo. A host with several addresses becomes several hosts, which libpq
 * tries in turn; one that is not known now is left out.
 */
#include "backends/pg_resolve.h"

#include <stdio.h>
#include <stdlib.h>

enum { ADDRESSES_MAX = 32 };

struct pg_resolve {
    uv_loop_t *loop;
    uv_getaddrinfo_t request;
    uv_timer_t later; /* an answer without a question must not come from inside the call */
    const struct pg_options *from;
    struct pg_options to;
    bool asking, closing;

    const char *rest, *ports; /* of the lists that are still to be looked at */
    char host[256], port[16];
    struct buf hosts, numbers, port_list;
    int n;

    void (*done)(void *ctx, bool ok, const struct pg_options *to);
    void *ctx;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

static void ask_next(struct pg_resolve *r);

/* The list's next piece, NUL-terminated in out. false: it is over. */
static bool cut(const char **list, char *out, size_t size)
{
    size_t len;

    if (!*list)
        return false;
    len = strcspn(*list, ",");
    snprintf(out, size, "%.*s", (int)len, *list);
    *list = (*list)[len] ? *list + len + 1 : NULL;
    return true;
}

static const char *host_list(const struct pg_options *o)
{
    const char *host = pg_options_get(o, "host");

    return host ? host : getenv("PGHOST");
}

static void add(struct pg_resolve *r, const char *number)
{
    if (r->n == ADDRESSES_MAX)
        return;
    buf_printf(&r->hosts, "%s%s", r->n ? "," : "", r->host);
    buf_printf(&r->numbers, "%s%s", r->n ? "," : "", number);
    buf_printf(&r->port_list, "%s%s", r->n ? "," : "", r->port);
    r->n++;
}

static bool copy_options(struct pg_options *to, const struct pg_options *from)
{
    pg_options_free(to);
    for (size_t i = 0; i < from->n; i++)
        if (!pg_options_set(to, from->names[i], from->values[i]))
            return false;
    return true;
}

static bool set_lists(struct pg_resolve *r)
{
    buf_char(&r->hosts, '\0');
    buf_char(&r->numbers, '\0');
    buf_char(&r->port_list, '\0');
    if (r->hosts.failed || r->numbers.failed || r->port_list.failed)
        return false;
    return pg_options_set(&r->to, "host", r->hosts.p) && pg_options_set(&r->to, "hostaddr", r->numbers.p) &&
           (!pg_options_get(r->from, "port") || pg_options_set(&r->to, "port", r->port_list.p));
}

static void finish(struct pg_resolve *r)
{
    bool ok = copy_options(&r->to, r->from);

    if (r->n || r->hosts.len)
        ok = ok && r->n && set_lists(r);
    else if (host_list(r->from) && !pg_options_get(r->from, "hostaddr"))
        ok = false; /* none of the names is known */
    buf_free(&r->hosts);
    buf_free(&r->numbers);
    buf_free(&r->port_list);
    r->done(r->ctx, ok, &r->to);
}

static void on_timer_closed(uv_handle_t *h)
{
    struct pg_resolve *r = h->data;
    void (*closed)(void *ctx) = r->closed;
    void *ctx = r->closed_ctx;

    pg_options_free(&r->to);
    buf_free(&r->hosts);
    buf_free(&r->numbers);
    buf_free(&r->port_list);
    free(r);
    closed(ctx);
}

static void on_addresses(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
    struct pg_resolve *r = request->data;
    char number[64];

    r->asking = false;
    for (const struct addrinfo *a = status ? NULL : list; a; a = a->ai_next)
        if ((a->ai_family == AF_INET && !uv_ip4_name((const void *)a->ai_addr, number, sizeof number)) ||
            (a->ai_family == AF_INET6 && !uv_ip6_name((const void *)a->ai_addr, number, sizeof number)))
            add(r, number);
    uv_freeaddrinfo(list);
    if (r->closing)
        uv_close((uv_handle_t *)&r->later, on_timer_closed);
    else
        ask_next(r);
}

static void ask_next(struct pg_resolve *r)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};

    while (cut(&r->rest, r->host, sizeof r->host)) {
        if (r->ports) /* one port may stand for all hosts */
            cut(&r->ports, r->port, sizeof r->port);
        if (r->host[0] == '/' || r->host[0] == '@' || !r->host[0]) {
            add(r, "");
            continue;
        }
        r->request.data = r;
        if (uv_getaddrinfo(r->loop, &r->request, on_addresses, r->host, NULL, &hints) == 0) {
            r->asking = true;
            return;
        }
    }
    finish(r);
}

static void on_later(uv_timer_t *t)
{
    struct pg_resolve *r = t->data;

    r->n = 0;
    r->port[0] = '\0';
    r->rest = pg_options_get(r->from, "hostaddr") ? NULL : host_list(r->from);
    r->ports = pg_options_get(r->from, "port");
    ask_next(r);
}

struct pg_resolve *pg_resolve_new(uv_loop_t *loop, const struct pg_options *o)
{
    struct pg_resolve *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->loop = loop;
    r->from = o;
    uv_timer_init(loop, &r->later);
    r->later.data = r;
    return r;
}

void pg_resolve_start(struct pg_resolve *r, void (*done)(void *ctx, bool ok, const struct pg_options *to), void *ctx)
{
    r->done = done;
    r->ctx = ctx;
    uv_timer_start(&r->later, on_later, 0, 0);
}

void pg_resolve_close(struct pg_resolve *r, void (*closed)(void *ctx), void *ctx)
{
    r->closing = true;
    r->closed = closed;
    r->closed_ctx = ctx;
    if (!r->asking)
        uv_close((uv_handle_t *)&r->later, on_timer_closed);
    else
        uv_cancel((uv_req_t *)&r->request);
}
