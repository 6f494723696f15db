/*
 * Connections. Callbacks note what happened and call conn_pump; exchange.c moves bytes through the parser into the
 * request until the input or the turn is used up, or the request waits; intake_watch alone decides whether the socket
 * is read.
 */
#include "gateway/conn.h"

#include <stdlib.h>

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "gateway/conn_parts.h"
#include "gateway/crowd.h"
#include "gateway/ingest/note.h"
#include "gateway/ingest/told.h"
#include "gateway/listen.h"

enum {
    LINGER_MS = 2000,
    JITTER = 200, /* per mille, in all */
    PACE_BYTES = 640 << 10,
    SEND_BYTES = 128 << 10, /* that the kernel takes of an answer before anybody reads; by itself, some MiB */
    WRITE_BYTES = 16 << 10, /* of an answer, in each timeouts.write */
    ACK_MS = 500,           /* kernels acknowledge sooner */
};

const char *const conn_state_names[CONN_STATES] = {
#define X(id, name) name,
    CONN_STATE_MAP(X)
#undef X
};

static void on_timer(uv_timer_t *t);

void conn_forget_told(struct conn *c, bool reset)
{
    if (reset && c->told)
        told_untold(c->told);
    else
        told_final(c->told);
    c->told = NULL;
}

void conn_arm_body(struct conn *c)
{
    c->armed_ms = uv_now(c->app->loop);
    uint64_t ms = c->body_left_ms < c->pace_left_ms ? c->body_left_ms : c->pace_left_ms;
    uv_timer_start(&c->timer, on_timer, ms, 0);
}

void conn_disarm_body(struct conn *c)
{
    uint64_t ran = uv_now(c->app->loop) - c->armed_ms;

    c->body_left_ms -= ran < c->body_left_ms ? ran : c->body_left_ms;
    c->pace_left_ms -= ran < c->pace_left_ms ? ran : c->pace_left_ms;
    uv_timer_stop(&c->timer);
}

void conn_set_state(struct conn *c, enum conn_state to)
{
    static const unsigned may[CONN_STATES] = {
        [CONN_IDLE] = 1u << CONN_HEAD | 1u << CONN_CLOSING,
        [CONN_HEAD] = 1u << CONN_BODY | 1u << CONN_REPLY | 1u << CONN_LINGER | 1u << CONN_CLOSING,
        [CONN_BODY] = 1u << CONN_WAIT | 1u << CONN_REPLY | 1u << CONN_CLOSING,
        [CONN_WAIT] = 1u << CONN_BODY | 1u << CONN_REPLY | 1u << CONN_CLOSING,
        [CONN_REPLY] = 1u << CONN_IDLE | 1u << CONN_HEAD | 1u << CONN_LINGER | 1u << CONN_CLOSING,
        [CONN_LINGER] = 1u << CONN_CLOSING,
    };
    const struct conf *k = c->app->conf;
    uint64_t ms[CONN_STATES] = {
        [CONN_IDLE] = k->idle_ms, [CONN_HEAD] = k->head_ms, [CONN_REPLY] = k->write_ms, [CONN_LINGER] = LINGER_MS};

    ASSERT(may[c->state] & 1u << to);
    if (c->state == CONN_BODY && c->reading)
        conn_disarm_body(c);
    c->app->metrics.connections[c->state]--;
    c->state = to;
    c->app->metrics.connections[to]++;
    if (ms[to])
        uv_timer_start(&c->timer, on_timer, ms[to], 0);
    else
        uv_timer_stop(&c->timer);
    if (to == CONN_BODY && c->reading)
        conn_arm_body(c);
}

/* Its last answer: new replicas get no connections as long as old ones are kept. */
static bool aged(const struct conn *c)
{
    const struct conf *k = c->app->conf;
    uint64_t age = k->max_age_ms * (1000 - JITTER / 2 + c->jitter) / 1000;

    return (age && uv_now(c->app->loop) - c->accepted_ms >= age) || (k->max_requests && c->answers >= k->max_requests);
}

static void conn_free(struct conn *c)
{
    struct app *app = c->app;

    if (c->prev)
        c->prev->next = c->next;
    else
        app->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
    app->n_conns--;
    app->metrics.connections[CONN_CLOSING]--;
    http_free(c->http);
    peer_free(&c->peer);
    input_free(&c->input, &app->ledger);
    answers_end(c);
    reply_free(&c->reply);
    buf_free(&c->reply_head);
    free(c);
    app_conn_closed(app);
}

static void on_handle_closed(uv_handle_t *h)
{
    struct conn *c = h->data;

    if (--c->open_handles == 0)
        conn_free(c);
}

/* Lets go of a request that gets no answer. */
static void drop_request(struct conn *c, enum close_reason why)
{
    struct request *r = c->request;

    if (c->counted)
        c->app->metrics.cut[why]++;
    c->counted = false;
    c->request = NULL;
    if (!r)
        return;
    r->conn = NULL;
    r->cut = why;
    if (r->refused || !r->handler->gone(r))
        request_free(r);
}

void conn_close(struct conn *c, enum close_reason why, bool reset)
{
    if (c->state == CONN_CLOSING)
        return;
    drop_request(c, why);
    conn_forget_told(c, reset);
    turn_drop(&c->app->turn, &c->entry);
    if (c->in_crowd)
        crowd_leave(c->app->crowd, conn_address(c));
    c->in_crowd = false;
    if (c->secure)
        secure_close(c->secure, (int)why, !reset);
    c->secure = NULL;
    c->app->metrics.closed[why]++;
    conn_set_state(c, CONN_CLOSING);
    /* What nobody reads would stay in the kernel for minutes behind an ordinary close. */
    bool left = why == CLOSE_WRITE || why == CLOSE_UNREAD;
    if (!left || uv_tcp_close_reset(&c->tcp, on_handle_closed) != 0)
        uv_close((uv_handle_t *)&c->tcp, on_handle_closed);
    uv_close((uv_handle_t *)&c->timer, on_handle_closed);
}

/* Bytes that the other side has not acknowledged. */
static size_t unacknowledged(struct conn *c)
{
    uv_os_fd_t fd;
    int left = 0;

    return uv_fileno((uv_handle_t *)&c->tcp, &fd) == 0 && ioctl(fd, SIOCOUTQ, &left) == 0 && left > 0 ? (size_t)left
                                                                                                      : 0;
}

/* Of the answer under way. The kernel takes much at once: only what is acknowledged shows how fast it is read. */
size_t conn_unread(struct conn *c)
{
    return c->tcp.write_queue_size + unacknowledged(c);
}

/*
 * Whether an end means that the last answer may not have been read. A reset does, from a client. HAProxy ends every
 * connection to a server so, right behind an answer or seconds later, when it keeps no more idle ones; what it has read
 * need not have been acknowledged yet.
 */
static bool answer_lost(struct conn *c, bool reset)
{
    if (reset && !c->relayed)
        return true;
    return unacknowledged(c) > 0 && (!reset || (uv_hrtime() - c->request_ns) / 1000000 > ACK_MS);
}

void conn_ended(struct conn *c, bool reset)
{
    bool whole = c->state == CONN_WAIT && c->body_ended && c->request->routed.who == ROUTE_SEND;

    c->eof = true;
    if (!reset && (whole || c->state == CONN_REPLY))
        return;
    conn_close(c, CLOSE_PEER, answer_lost(c, reset));
}

static void on_shutdown(uv_shutdown_t *s, int status)
{
    struct conn *c = s->handle->data;

    if (status != 0 && status != UV_ECANCELED)
        conn_close(c, CLOSE_PEER, true);
}

void conn_linger(struct conn *c)
{
    if (c->secure)
        secure_end(c->secure);
    if (c->state == CONN_CLOSING)
        return;
    if (c->eof || uv_shutdown(&c->shutdown, (uv_stream_t *)&c->tcp, on_shutdown) != 0) {
        conn_close(c, c->eof ? CLOSE_PEER : CLOSE_REPLIED, unacknowledged(c) > 0);
        return;
    }
    conn_set_state(c, CONN_LINGER);
    input_free(&c->input, &c->app->ledger);
    intake_watch(c);
}

/* The next request, or the end. */
void conn_replied(struct conn *c)
{
    struct request *r = c->request;
    bool close = c->close_after || c->eof;
    uint64_t ms = (uv_hrtime() - c->request_ns) / 1000000;

    metrics_answered(&c->app->metrics, r ? r->routed.route : ROUTE_NONE, r ? r->head->method : STR("other"),
                     c->reply.status, (double)ms / 1000);
    c->counted = false;
    if (r && !r->refused)
        r->handler->written(r, c->reply.status, !c->eof && (uv_hrtime() - r->start_ns) / 1000000 <= r->patience_ms);
    if (r)
        request_free(r);
    c->request = NULL;
    answers_end(c);
    reply_free(&c->reply);
    buf_free(&c->reply_head);
    c->reply = (struct reply){0};
    if (close) {
        conn_linger(c);
        return;
    }
    c->body_ended = false;
    c->request_ns = uv_hrtime();
    conn_set_state(c, input_len(&c->input) ? CONN_HEAD : CONN_IDLE);
    if (input_len(&c->input))
        turn_push(&c->app->turn, &c->entry);
    intake_watch(c);
}

static void on_written(uv_write_t *w, int status)
{
    struct conn *c = w->handle->data;

    if (c->state == CONN_CLOSING)
        return;
    if (status != 0)
        conn_close(c, CLOSE_PEER, true);
    else
        conn_replied(c);
}

void conn_reply(struct conn *c, struct reply *r, bool close)
{
    uv_buf_t bufs[2];
    bool whole = c->body_ended;

    ASSERT(c->state != CONN_REPLY);
    c->reply = *r;
    *r = (struct reply){0};
    answers_begin(c);
    c->answers++;
    if (c->request)
        note_answered(c->request, c->reply.status);
    c->close_after = close || !whole || !c->request || !c->request->head->keep_alive || c->request->head->minor == 0 ||
                     c->app->draining || aged(c);
    if (!reply_render(&c->reply, app_now_ns() / 1000000000, c->close_after, &c->reply_head)) {
        conn_close(c, CLOSE_ERROR, false);
        return;
    }
    bufs[0] = uv_buf_init(c->reply_head.p, (unsigned)c->reply_head.len);
    bufs[1] = uv_buf_init(c->reply.body.p, (unsigned)c->reply.body.len);
    unsigned n = c->reply.body.len && !c->reply.head_only ? 2 : 1;
    c->reply_left = c->reply_head.len + (n == 2 ? c->reply.body.len : 0);
    if (!input_keep(&c->input, &c->app->ledger)) {
        conn_close(c, CLOSE_ERROR, false);
        return;
    }
    conn_set_state(c, CONN_REPLY);
    if (c->secure)
        secure_reply(c->secure);
    else if (uv_write(&c->write, (uv_stream_t *)&c->tcp, bufs, n, on_written) != 0)
        conn_close(c, CLOSE_PEER, true);
    intake_watch(c);
}

void conn_reply_moved(struct conn *c)
{
    c->reply_left = conn_unread(c);
    uv_timer_start(&c->timer, on_timer, c->app->conf->write_ms, 0);
}

void conn_refuse_plain(struct conn *c)
{
    struct fault f = {.err = E_BAD_FRAMING, .text = "this port speaks TLS: use https://"};
    struct reply r = {0};

    c->counted = true;
    c->app->metrics.plain[M_requests_received]++;
    c->app->metrics.refused[f.err]++;
    reply_fault(&r, &f);
    conn_reply(c, &r, true);
}

void conn_continue(struct conn *c)
{
    static char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    uv_buf_t b = uv_buf_init(text, sizeof text - 1);

    if (c->request->head->minor == 0 || input_len(&c->input) || c->body_ended)
        return;
    if (head_get(c->request->head, STR("expect")).len == 0)
        return;
    if (c->secure)
        secure_say(c->secure, (struct str){text, sizeof text - 1});
    else
        (void)uv_try_write((uv_stream_t *)&c->tcp, &b, 1); /* lost: the client sends its body a little later */
}

void conn_remember(struct conn *c, struct told *t)
{
    conn_forget_told(c, false);
    c->told = t;
}

void conn_resume(struct conn *c)
{
    if (c->state != CONN_WAIT)
        return;
    conn_set_state(c, CONN_BODY);
    turn_push(&c->app->turn, &c->entry);
    intake_watch(c);
}

void conn_pump(struct conn *c)
{
    bool more = true;

    while (c->state <= CONN_BODY && more && turn_left(&c->app->turn))
        more = exchange_advance(c);
    if (c->state == CONN_CLOSING)
        return;
    if (!input_keep(&c->input, &c->app->ledger)) {
        conn_close(c, CLOSE_ERROR, false);
        return;
    }
    input_trim(&c->input, &c->app->ledger);
    if (c->state <= CONN_BODY && more)
        turn_push(&c->app->turn, &c->entry);
    intake_watch(c);
}

static void on_turn(struct turn_entry *e)
{
    struct conn *c = (struct conn *)((char *)e - offsetof(struct conn, entry));

    conn_pump(c);
}

/* A body's timer: the whole of it, or the pace of one that holds memory. */
static void on_body_timer(struct conn *c)
{
    conn_disarm_body(c);
    if (c->body_left_ms == 0) {
        conn_close(c, CLOSE_BODY, false);
        return;
    }
    if (c->pace_left_ms == 0) {
        bool slow = c->pace_bytes < PACE_BYTES && (c->request->slow_matters || admit_waiting(c->app->admit));
        c->pace_left_ms = PACE_MS;
        c->pace_bytes = 0;
        if (slow) {
            conn_close(c, CLOSE_SLOW, false);
            return;
        }
    }
    conn_arm_body(c);
}

static void on_timer(uv_timer_t *t)
{
    static const enum close_reason why[CONN_STATES] = {
        [CONN_IDLE] = CLOSE_IDLE, [CONN_HEAD] = CLOSE_HEAD, [CONN_REPLY] = CLOSE_WRITE, [CONN_LINGER] = CLOSE_REPLIED};
    struct conn *c = t->data;
    size_t left = conn_unread(c);

    if (c->state == CONN_BODY) {
        on_body_timer(c);
    } else if (c->state == CONN_REPLY && left + WRITE_BYTES <= c->reply_left) {
        c->reply_left = left; /* it does take the answer, slowly */
        uv_timer_start(&c->timer, on_timer, c->app->conf->write_ms, 0);
    } else {
        conn_close(c, why[c->state], c->state == CONN_REPLY);
    }
}

static void set_up(struct conn *c, struct app *app, enum route_where where)
{
    c->app = app;
    c->where = where;
    c->entry.run = on_turn;
    c->state = CONN_HEAD;
    c->request_ns = uv_hrtime();
    c->accepted_ms = uv_now(app->loop);
    c->jitter = (unsigned)(c->request_ns % (JITTER + 1));
    c->tcp.data = c->timer.data = c;
    c->next = app->conns;
    if (app->conns)
        app->conns->prev = c;
    app->conns = c;
    app->n_conns++;
    app->metrics.plain[M_connections_opened]++;
    app->metrics.connections[CONN_HEAD]++;
}

const struct address *conn_address(const struct conn *c)
{
    return &c->peer.address;
}

bool conn_join_crowd(struct conn *c)
{
    const struct conf *k = c->app->conf;

    if (!k->max_per_address || c->where != ROUTE_PUBLIC || conf_trusts(k, conn_address(c)->ip))
        return true;
    c->in_crowd = crowd_enter(c->app->crowd, conn_address(c), k->max_per_address);
    if (!c->in_crowd)
        conn_close(c, CLOSE_CROWD, false);
    return c->in_crowd;
}

bool conn_accept(struct listener *l)
{
    struct app *app = l->app;
    struct http_limits limits = {app->conf->max_head_bytes, app->conf->max_head_bytes / 2, app->conf->max_headers};
    struct conn *c = calloc(1, sizeof *c);

    if (!c || !(c->http = http_new(&limits))) {
        free(c);
        return false;
    }
    set_up(c, app, l->where);
    uv_tcp_init(app->loop, &c->tcp);
    uv_timer_init(app->loop, &c->timer);
    c->open_handles = 2;
    bool ok = uv_accept((uv_stream_t *)&l->tcp, (uv_stream_t *)&c->tcp) == 0;
    uv_tcp_nodelay(&c->tcp, 1);
    uv_send_buffer_size((uv_handle_t *)&c->tcp, &(int){SEND_BYTES});
    if (!ok) {
        conn_close(c, CLOSE_ERROR, false);
        return true;
    }
    if (!peer_open(&c->peer, app->conf, &c->tcp, l->proxy_protocol)) {
        conn_close(c, CLOSE_PROXY, false);
        return true;
    }
    if (!c->peer.proxy && !conn_join_crowd(c))
        return true;
    if (l->tls && !(c->secure = secure_new(app, c, l->tls))) {
        conn_close(c, CLOSE_ERROR, false);
        return true;
    }
    uv_timer_start(&c->timer, on_timer, app->conf->head_ms, 0);
    intake_watch(c);
    return true;
}
