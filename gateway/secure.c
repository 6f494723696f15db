/* Handshakes, records in, records out. */
#include "gateway/secure.h"

#include <stdlib.h>

#include "gateway/conn_parts.h"
#include "gateway/log.h"

enum {
    PIECE_BYTES = 64 << 10,   /* of an answer, encrypted and written at once */
    SESSION_BYTES = 14 << 10, /* what the library holds for a session at rest; measured */
    UNREAD_BYTES = 128 << 10, /* a client that makes us write, as by key updates, and does not read is cut */
};

/* One write(2) of records, freed when the kernel has taken them. */
struct records {
    uv_write_t write;
    struct buf bytes;
    bool answer; /* a piece of an answer: the next one follows it */
};

static void send_piece(struct secure *s);

static void on_sent(uv_write_t *w, int status)
{
    struct records *r = (struct records *)(void *)w; /* its first member */
    struct conn *c = w->handle->data;
    bool answer = r->answer;

    buf_free(&r->bytes);
    free(r);
    if (c->state == CONN_CLOSING)
        return;
    if (status != 0)
        conn_close(c, CLOSE_PEER, true);
    else if (answer)
        send_piece(c->secure);
}

/* Writes what the session has to say. false: the connection has been closed. */
static bool flush(struct secure *s, bool answer)
{
    struct conn *c = s->conn;
    struct records *r;

    if (s->tls.out.len == 0)
        return true;
    r = c->tcp.write_queue_size > UNREAD_BYTES ? NULL : calloc(1, sizeof *r);
    if (!r) {
        conn_close(c, CLOSE_ERROR, true);
        return false;
    }
    r->bytes = s->tls.out;
    r->answer = answer;
    s->tls.out = (struct buf){0};
    uv_buf_t b = uv_buf_init(r->bytes.p, (unsigned)r->bytes.len);
    if (uv_write(&r->write, (uv_stream_t *)&c->tcp, &b, 1, on_sent) == 0)
        return true;
    buf_free(&r->bytes);
    free(r);
    conn_close(c, CLOSE_PEER, true);
    return false;
}

/* The next `room` bytes of the answer. */
static struct str next_of(const struct conn *c, size_t sent, size_t room)
{
    struct str s = buf_view(&c->reply_head);

    if (sent >= s.len) {
        sent -= s.len;
        s = c->reply.head_only ? STR("") : buf_view(&c->reply.body);
    }
    s.p += s.len ? sent : 0;
    s.len -= s.len ? sent : 0;
    if (s.len > room)
        s.len = room;
    return s;
}

static void send_piece(struct secure *s)
{
    struct conn *c = s->conn;
    size_t piece = 0;
    struct str next;

    while (piece < PIECE_BYTES && (next = next_of(c, s->sent, PIECE_BYTES - piece)).len) {
        if (!tls_write(&s->tls, next)) {
            conn_close(c, CLOSE_ERROR, true);
            return;
        }
        s->sent += next.len;
        piece += next.len;
    }
    if (piece == 0)
        conn_replied(c);
    else if (flush(s, true))
        conn_reply_moved(c);
}

void secure_reply(struct secure *s)
{
    s->sent = 0;
    send_piece(s);
}

void secure_say(struct secure *s, struct str text)
{
    if (tls_write(&s->tls, text))
        (void)flush(s, false); /* closed: whoever is next sees it by the state */
}

void secure_end(struct secure *s)
{
    tls_end(&s->tls);
    (void)flush(s, false); /* the same */
}

static void free_all(struct secure *s)
{
    ledger_charge(&s->app->ledger, LEDGER_connections, -(int64_t)s->in.cap - SESSION_BYTES);
    buf_free(&s->in);
    tls_free(&s->tls);
    free(s);
}

/* --- the handshake --- */

/* On the lane. */
static void compute(struct job *j)
{
    struct secure *s = (struct secure *)((char *)j - offsetof(struct secure, step));

    if (!atomic_load(&s->gone))
        s->stepped = tls_handshake(&s->tls);
}

static void failed(struct secure *s)
{
    struct conn *c = s->conn;
    char who[ADDRESS_TEXT];

    address_text(conn_address(c), who);
    log_at(LOG_DEBUG, "no handshake", LOG_TEXT("client", who), LOG_TEXT("why", tls_failure_names[s->tls.failure]));
    s->app->metrics.tls_failures[s->tls.failure]++;
    s->established = true; /* counted: closing counts no second time */
    if (s->tls.failure == TLS_FAILURE_HTTP) {
        c->secure = NULL;
        free_all(s);
        conn_refuse_plain(c);
    } else if (flush(s, false)) { /* an alert */
        conn_linger(c);
    }
}

static void established(struct secure *s)
{
    struct conn *c = s->conn;
    struct buf early = s->in; /* what came behind the handshake's last message */
    size_t n;

    s->established = true;
    s->app->metrics.plain[M_tls_handshakes]++;
    s->in = (struct buf){0};
    if (secure_read(s, s->tls.in.p, 0, &n))
        intake_take(c, s->app->read_buffer, n);
    ledger_charge(&c->app->ledger, LEDGER_connections, -(int64_t)early.cap);
    buf_free(&early);
}

/* On the loop again. */
static void on_computed(struct job *j)
{
    struct secure *s = (struct secure *)((char *)j - offsetof(struct secure, step));

    s->running = false;
    if (!s->conn)
        free_all(s);
    else if (s->stepped == TLS_FAILED)
        failed(s);
    else if (!flush(s, false))
        return;
    else if (s->stepped == TLS_DONE)
        established(s);
    else
        intake_take(s->conn, NULL, 0);
}

static bool step(struct secure *s, const char *p, size_t n)
{
    size_t cap = s->in.cap;

    s->in.len = 0;
    buf_add(&s->in, p, n);
    ledger_charge(&s->app->ledger, LEDGER_connections, (int64_t)s->in.cap - (int64_t)cap);
    s->tls.in = buf_view(&s->in);
    s->running = !s->in.failed && lane_submit(s->app->tls_lane, &s->step);
    if (!s->running)
        conn_close(s->conn, CLOSE_ERROR, true);
    return s->running;
}

bool secure_read(struct secure *s, const char *p, size_t got, size_t *n)
{
    *n = 0;
    if (!s->established)
        return step(s, p, got);
    if (got)
        s->tls.in = (struct str){p, got};
    enum tls_result r = tls_read(&s->tls, s->app->read_buffer, READ_BUFFER_BYTES, n);
    s->ended |= r == TLS_CLOSED;
    if (r != TLS_FAILED)
        return flush(s, false);
    if (flush(s, false)) /* an alert */
        conn_close(s->conn, CLOSE_PEER, true);
    return false;
}

struct secure *secure_new(struct app *app, struct conn *c, struct tls_context *context)
{
    struct secure *s = calloc(1, sizeof *s);

    if (!s || !tls_init(&s->tls, context)) {
        free(s);
        return NULL;
    }
    s->app = app;
    s->conn = c;
    s->step.work = compute;
    s->step.done = on_computed;
    ledger_charge(&app->ledger, LEDGER_connections, SESSION_BYTES);
    return s;
}

static enum tls_failure failure_of(int why)
{
    return why == CLOSE_HEAD       ? TLS_FAILURE_TIMEOUT
           : why == CLOSE_PEER     ? TLS_FAILURE_CLOSED
           : why == CLOSE_SHUTDOWN ? TLS_FAILURE_SHUTDOWN
                                   : TLS_FAILURE_OTHER;
}

void secure_close(struct secure *s, int why, bool say)
{
    struct conn *c = s->conn;

    if (!s->established)
        s->app->metrics.tls_failures[failure_of(why)]++;
    s->conn = NULL;
    if (s->running) {
        atomic_store(&s->gone, true);
        return;
    }
    if (say && s->established && c->tcp.write_queue_size == 0) {
        tls_end(&s->tls);
        uv_buf_t b = uv_buf_init(s->tls.out.p, (unsigned)s->tls.out.len);
        if (b.len)
            (void)uv_try_write((uv_stream_t *)&c->tcp, &b, 1);
    }
    free_all(s);
}
