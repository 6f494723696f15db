/* Reading a connection's socket: whether, how much at once, and through which layers the bytes go to its input. */
#include "gateway/conn_parts.h"

enum {
    PEEK_BYTES = 4 << 10, /* read while a request waits, so that we see its client go */
    LINGER_BYTES = 1 << 20,
};

void intake_take(struct conn *c, char *p, size_t n)
{
    if (n && (c->state == CONN_WAIT || c->state == CONN_REPLY)) {
        if (!input_add(&c->input, p, n, &c->app->ledger))
            conn_close(c, CLOSE_ERROR, false);
    } else if (n) {
        input_lend(&c->input, p, n);
    }
    conn_pump(c);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct conn *c = h->data;
    size_t have = input_len(&c->input);

    (void)suggested;
    buf->base = c->secure ? c->app->cipher_buffer : c->app->read_buffer;
    buf->len = !c->secure ? READ_BUFFER_BYTES : c->secure->established ? SECURE_READ_BYTES : SECURE_HELLO_BYTES;
    if (c->state == CONN_WAIT || c->state == CONN_REPLY)
        buf->len = have < PEEK_BYTES ? PEEK_BYTES - have : 0;
    else if (c->state != CONN_LINGER && !turn_left(&c->app->turn))
        buf->len = 0; /* read as ENOBUFS: its turn comes */
}

static void linger_read(struct conn *c, size_t n)
{
    c->lingered += n;
    if (c->lingered > LINGER_BYTES)
        conn_close(c, CLOSE_REPLIED, true);
}

/* The PROXY header that this connection begins with. true: it is complete, and *p, *n is what came behind it. */
static bool take_proxy_header(struct conn *c, char **p, ssize_t *n)
{
    size_t left = (size_t)*n;
    enum proxy_step step = peer_take(&c->peer, p, &left);

    *n = (ssize_t)left;
    if (step == PROXY_BAD)
        conn_close(c, CLOSE_PROXY, false);
    return step == PROXY_DONE && conn_join_crowd(c) && left;
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct conn *c = s->data;
    char *p = buf->base;

    if (n > 0 && c->peer.proxy && !take_proxy_header(c, &p, &n))
        return;
    size_t got = n > 0 ? (size_t)n : 0;
    if (n == 0)
        return;
    if (n == UV_ENOBUFS) {
        turn_push(&c->app->turn, &c->entry);
    } else if (n < 0) {
        conn_ended(c, n != UV_EOF);
    } else if (c->state == CONN_LINGER) {
        linger_read(c, got);
        return;
    } else if (c->secure) {
        if (!secure_read(c->secure, p, got, &got))
            return;
        p = c->app->read_buffer;
    }
    intake_take(c, p, got);
}

void intake_watch(struct conn *c)
{
    size_t have = input_len(&c->input);
    bool want = false;

    if (c->state <= CONN_BODY)
        want = have == 0 && !c->entry.queued;
    else if (c->state < CONN_LINGER)
        want = have < PEEK_BYTES;
    else if (c->state == CONN_LINGER)
        want = true;
    if (want && c->secure && c->secure->ended && c->state < CONN_LINGER)
        conn_ended(c, false);
    if (c->eof || c->state == CONN_CLOSING || (c->secure && c->secure->running))
        want = false;
    if (want == c->reading || c->state == CONN_CLOSING)
        return;
    c->reading = want;
    if (want && uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) != 0) {
        conn_close(c, CLOSE_PEER, true);
        return;
    }
    if (!want)
        uv_read_stop((uv_stream_t *)&c->tcp);
    if (c->state == CONN_BODY && want)
        conn_arm_body(c);
    else if (c->state == CONN_BODY)
        conn_disarm_body(c);
}
