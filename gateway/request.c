/* Requests: what is decided from the head alone - route, credentials, lengths - and errors. */
#include "gateway/request.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/conn.h"
#include "gateway/forwarded.h"
#include "gateway/ingest/note.h"
#include "gateway/log.h"
#include "gateway/query/query.h"

enum { PATIENCE_MS = 10000 };

static const struct handler *handler_of(enum route r)
{
    if (r == ROUTE_INGEST || r == ROUTE_PUSH)
        return &handler_ingest;
    return r == ROUTE_QUERY || r == ROUTE_UPLOADS ? &handler_query : &handler_simple;
}

void request_refuse_with(struct request *r, const struct fault *f)
{
    if (r->refused)
        return;
    r->fault = *f;
    r->refused = true;
    r->app->metrics.refused[f->err]++;
    r->handler->refused(r);
    f = &r->fault; /* the caller's may have gone with the upload */
    char client[ADDRESS_TEXT];
    log_at(LOG_DEBUG, "refused", LOG_TEXT("route", route_names[r->routed.route]), LOG_NUM("status", err_status(f->err)),
           LOG_TEXT("why", f->text[0] ? f->text : err_text(f->err)), LOG_TEXT("project", r->access.project),
           LOG_TEXT("client", address_text(&r->client, client)));
}

void request_refuse(struct request *r, enum err e, const char *fmt, ...)
{
    struct fault f = {.err = e};
    va_list args;

    va_start(args, fmt);
    vsnprintf(f.text, sizeof f.text, fmt, args);
    va_end(args);
    request_refuse_with(r, &f);
}

/* Who asks whether its token is good gets the answer in that form too. */
static void add_invalid(struct reply *out)
{
    out->body.len--; /* reopens the object */
    buf_str(&out->body, STR(",\"valid\":false}"));
}

void request_refusal(struct request *r, struct reply *out)
{
    reply_fault(out, &r->fault);
    if (r->routed.route == ROUTE_VALIDATE && out->status == 401)
        add_invalid(out);
    if (r->fault.err == E_BAD_METHOD)
        reply_header(out, "Allow", r->routed.allow);
    out->head_only = str_eq(r->head->method, STR("HEAD"));
}

/* Connect-Timeout-Ms, at most ten digits; absent: what SDKs wait. false: it is something else. */
static bool read_patience(const struct head *h, uint64_t *ms)
{
    struct str v = head_get(h, STR("connect-timeout-ms"));

    *ms = PATIENCE_MS;
    if (v.len == 0)
        return true;
    uint64_t n = 0;
    for (size_t i = 0; i < v.len; i++) {
        if (v.p[i] < '0' || v.p[i] > '9' || i == 10)
            return false;
        n = n * 10 + (uint64_t)(v.p[i] - '0');
    }
    *ms = n;
    return true;
}

static enum err check_headers(struct request *r, struct fault *f)
{
    const struct head *h = r->head;
    const struct header *x;
    uint32_t from = 0, types = 0;

    while ((x = head_next(h, STR("expect"), &from)))
        if (x->value.len && !str_eq_nocase(x->value, STR("100-continue")))
            return fault_set(f, E_EXPECTATION_FAILED, NULL);
    for (from = 0; head_next(h, STR("content-type"), &from);)
        if (++types > 1)
            return fault_set(f, E_BAD_REQUEST, "more than one Content-Type");
    if (!read_patience(h, &r->patience_ms))
        return fault_set(f, E_BAD_REQUEST, "Connect-Timeout-Ms must be a number of at most ten digits");
    if (h->length > r->limits.body)
        return fault_set(f, E_BODY_TOO_LARGE,
                         "request body too large: limits.body = %zu bytes, Content-Length is %" PRIu64, r->limits.body,
                         h->length);
    return E_OK;
}

/* A process may have just one of the roles. */
static bool served_here(const struct conf *c, enum route_who who)
{
    if (who == ROUTE_SEND)
        return (c->roles & ROLE_INGEST) != 0;
    return who != ROUTE_READ || (c->roles & ROLE_QUERY) != 0;
}

static enum err decide(struct request *r, enum route_where where, struct fault *f)
{
    struct app *app = r->app;
    enum err e = target_parse(&r->target, r->head->target, f);

    if (e == E_OK)
        e = route_find(app->conf, where, r->head->method, r->target.path, &r->routed, f);
    if (e == E_BAD_METHOD && r->routed.route == ROUTE_QUERY && !query_known(r->routed.rest)) {
        *f = (struct fault){.err = E_OK};
        e = fault_set(f, E_NO_ROUTE, "no such path under /api/v1");
    }
    if (e == E_OK && !served_here(app->conf, r->routed.who))
        e = fault_set(f, E_NO_ROUTE, "not one of the roles of this process");
    if (e == E_OK)
        e = access_check(&r->access, app->conf, app->keys, r->head, r->routed.who, r->arrival_ns / 1000000000, f);
    if (e == E_OK && r->access.project) {
        conf_bounds(app->conf, str_of(r->access.project), &r->bounds);
        r->limits = r->bounds.limits;
    }
    r->handler = handler_of(r->routed.route);
    return e == E_OK ? check_headers(r, f) : e;
}

struct request *request_new(struct app *app, struct conn *conn, enum route_where where, struct head *head,
                            uint64_t start_ns)
{
    struct request *r = calloc(1, sizeof *r);
    struct fault f = {.err = E_OK};

    if (!r) {
        head_free(head);
        return NULL;
    }
    r->app = app;
    app->n_requests++;
    r->conn = conn;
    r->head = head;
    forwarded_client(app->conf, head, conn_address(conn), &r->client);
    r->limits = app->conf->limits;
    r->start_ns = start_ns;
    r->arrival_ns = app_now_ns();
    r->routed.route = ROUTE_NONE;
    r->handler = &handler_simple;
    ledger_charge(&app->ledger, LEDGER_connections, (int64_t)(head->bytes + sizeof *r));
    if (decide(r, where, &f) != E_OK)
        request_refuse_with(r, &f);
    return r;
}

void request_free(struct request *r)
{
    ASSERT(r->state == NULL);
    note_ended(r);
    ledger_charge(&r->app->ledger, LEDGER_connections, -(int64_t)(r->head->bytes + sizeof *r));
    r->app->n_requests--;
    target_free(&r->target);
    access_free(&r->access);
    head_free(r->head);
    free(r);
}
