/* From bytes to a request and its end: one slice at a time through the parser, into the handler, until somebody has to
 * wait. */
#include "gateway/conn_parts.h"

enum {
    SLICE_BYTES = 16 << 10,
    FEED_BUDGET = 64 << 10, /* units of upload_feed between two looks at the clock */
};

static void answer_refusal(struct conn *c)
{
    struct reply r = {0};

    request_refusal(c->request, &r);
    conn_reply(c, &r, false);
}

/* The stream is no HTTP: an answer, and the end. */
static void refuse_stream(struct conn *c)
{
    struct reply r = {0};

    if (c->request && !c->request->refused)
        request_refuse_with(c->request, http_fault(c->http));
    else if (!c->request)
        c->app->metrics.refused[http_fault(c->http)->err]++;
    reply_fault(&r, http_fault(c->http));
    input_free(&c->input, &c->app->ledger);
    conn_reply(c, &r, true);
}

static void wait_if(struct conn *c, enum pump p)
{
    if (p != PUMP_WAIT || c->state != CONN_BODY)
        return;
    if (!input_keep(&c->input, &c->app->ledger))
        conn_close(c, CLOSE_ERROR, false);
    else
        conn_set_state(c, CONN_WAIT);
}

static void start_request(struct conn *c)
{
    struct head *h = http_take_head(c->http);
    struct request *r = h ? request_new(c->app, c, c->where, h, c->request_ns) : NULL;

    if (!r) {
        conn_close(c, CLOSE_ERROR, false);
        return;
    }
    c->request = r;
    c->relayed = head_relayed(h) || conf_trusts(c->app->conf, conn_address(c)->ip);
    c->body_left_ms = c->app->conf->body_ms;
    c->pace_left_ms = PACE_MS;
    c->pace_bytes = 0;
    conn_set_state(c, CONN_BODY);
    if (!r->refused)
        wait_if(c, r->handler->begin(r));
}

/* One slice through the parser. */
static void parse(struct conn *c)
{
    struct input *in = &c->input;
    size_t n = in->raw_len < SLICE_BYTES ? in->raw_len : SLICE_BYTES, used, body;

    if (c->state == CONN_IDLE)
        conn_set_state(c, CONN_HEAD);
    enum http_step step = http_feed(c->http, in->raw, n, &used, &body);
    if (!c->counted && (http_begun(c->http) || step != HTTP_NEED_MORE)) { /* empty lines alone are no request */
        c->counted = true;
        c->app->metrics.plain[M_requests_received]++;
        c->request_ns = uv_hrtime();
        conn_forget_told(c, false);
    }
    in->body = in->raw;
    in->body_len = body;
    in->raw += used;
    in->raw_len -= used;
    c->app->metrics.received_wire[c->request ? c->request->routed.route : ROUTE_NONE] += body;
    if (step == HTTP_REFUSED)
        refuse_stream(c);
    else if (step == HTTP_HEAD_DONE)
        start_request(c);
    else if (step == HTTP_ALL_DONE)
        c->body_ended = true;
}

/* Gives the request what it can take. Returns whether there is more to do now. */
static bool feed(struct conn *c)
{
    struct request *r = c->request;
    struct str s = {c->input.body, c->input.body_len};
    uint32_t budget = FEED_BUDGET;

    if (r->refused) {
        c->input.body_len = 0;
        return true;
    }
    enum pump p = s.len ? r->handler->feed(r, &s, &budget) : r->handler->end(r, &budget);
    if (c->request != r) /* answered, and the connection died of it */
        return false;
    r->body_bytes += c->input.body_len - s.len;
    c->pace_bytes += c->input.body_len - s.len;
    c->input.body = c->input.body + (c->input.body_len - s.len);
    c->input.body_len = s.len;
    wait_if(c, p);
    return c->state == CONN_BODY;
}

static bool advance_body(struct conn *c)
{
    if (c->input.body_len)
        return feed(c);
    if (c->body_ended && c->request->refused)
        answer_refusal(c);
    else if (c->body_ended)
        return feed(c);
    else if (c->input.raw_len || !c->request->head->has_body)
        parse(c);
    else if (c->request->refused)
        answer_refusal(c);
    else
        return false;
    return true;
}

bool exchange_advance(struct conn *c)
{
    if (c->state == CONN_BODY)
        return advance_body(c);
    if (c->state > CONN_BODY || c->input.raw_len == 0)
        return false;
    parse(c);
    return true;
}
