/* Routes that answer at once: health, metrics, the front page, validation of a token, and formats that are not served
 * yet. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "gateway/conn.h"
#include "gateway/json.h"
#include "gateway/request.h"
#include "gateway/scrape.h"

static const char front_page[] =
    "Flamegate, a continuous profiling gateway.\n\n"
    "Send profiles to   POST /ingest  or  POST /push.v1.PusherService/Push  with a server key.\n"
    "Check a key at     GET /otlp/v1/validate\n"
    "Read with a reader key, for example\n"
    "                   GET /api/v1/services?format=text\n"
    "                   GET /api/v1/overview?service=NAME&format=text\n"
    "                   GET /api/v1/functions?service=NAME&format=text\n"
    "What became of it  GET /api/v1/uploads?service=NAME&format=text  with a server key, too\n"
    "Health             GET /healthz, GET /readyz\n";

static enum pump begin(struct request *r)
{
    conn_continue(r->conn);
    return PUMP_MORE;
}

/* Whatever comes with a GET is read over, up to the limit. */
static enum pump feed(struct request *r, struct str *in, uint32_t *budget)
{
    (void)budget;
    if (r->body_bytes + in->len > r->limits.body)
        request_refuse(r, E_BODY_TOO_LARGE, "request body too large: limits.body = %zu bytes, %zu have come",
                       r->limits.body, (size_t)r->body_bytes + in->len);
    in->p += in->len;
    in->len = 0;
    return PUMP_MORE;
}

static void ready(const struct app *app, struct reply *out)
{
    struct fault f = {.err = E_OK};

    if (app->draining)
        fault_set(&f, E_DRAINING, NULL);
    else if (!app->ready)
        fault_set(&f, E_OVERLOADED, "starting");
    else if (!app->write->healthy(app->sink))
        fault_set(&f, E_STORE_DOWN, NULL);
    if (f.err != E_OK)
        reply_fault(out, &f);
    else
        reply_text(out, 200, "ready\n");
}

static void add_expiry(struct json *j, int64_t expires_s)
{
    char text[32];
    time_t t = (time_t)expires_s;
    struct tm tm;

    json_key(j, "expires");
    if (expires_s == 0) {
        json_null(j);
        return;
    }
    gmtime_r(&t, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_str(j, str_of(text));
}

static void validate(const struct request *r, struct reply *out)
{
    struct json j = {.out = &out->body};

    out->status = 200;
    out->content_type = "application/json";
    json_open(&j, '{');
    json_key(&j, "valid");
    json_bool(&j, true);
    json_key(&j, "keyType");
    json_str(&j, str_of(key_type_titles[r->access.type]));
    json_key(&j, "project");
    json_str(&j, str_of(r->access.project));
    json_key(&j, "name");
    json_str(&j, str_of(r->access.name));
    add_expiry(&j, r->access.expires_s);
    if (r->access.type != KEY_BROWSER) {
        json_key(&j, "uploads"); /* where the last ones, and what became of them, are seen */
        json_str(&j, STR("/api/v1/uploads"));
    }
    json_close(&j, '}');
}

static enum pump end(struct request *r, uint32_t *budget)
{
    struct reply out = {0};

    (void)budget;
    out.head_only = str_eq(r->head->method, STR("HEAD"));
    switch (r->routed.route) {
    case ROUTE_HEALTHZ:
        reply_text(&out, 200, "ok\n");
        break;
    case ROUTE_READYZ:
    case ROUTE_READY:
        ready(r->app, &out);
        break;
    case ROUTE_METRICS:
        scrape(r->app, &out);
        break;
    case ROUTE_VALIDATE:
        validate(r, &out);
        break;
    case ROUTE_OTLP:
    case ROUTE_OTLP_GRPC:
        request_refuse(r, E_UNSUPPORTED_TYPE, "OTLP profiles are not taken yet; send pprof or folded text to /ingest");
        request_refusal(r, &out);
        break;
    default:
        reply_text(&out, 200, front_page);
        break;
    }
    conn_reply(r->conn, &out, false);
    return PUMP_WAIT;
}

static void refused(struct request *r)
{
    (void)r;
}

static bool gone(struct request *r)
{
    (void)r;
    return false;
}

static void written(struct request *r, int status, bool in_time)
{
    (void)r;
    (void)status;
    (void)in_time;
}

const struct handler handler_simple = {begin, feed, end, refused, gone, written};
