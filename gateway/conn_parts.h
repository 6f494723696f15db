/* The inside of a connection, shared by its two halves: conn.c (socket, timers, life) and exchange.c (bytes to
 * requests). */
#ifndef GATEWAY_CONN_PARTS_H
#define GATEWAY_CONN_PARTS_H

#include "gateway/conn.h"
#include "gateway/http.h"
#include "gateway/input.h"
#include "gateway/peer.h"
#include "gateway/request.h"

enum { PACE_MS = 10000 }; /* who holds memory is looked at this often */

struct conn {
    struct app *app;
    struct conn *prev, *next;
    uv_tcp_t tcp;
    uv_timer_t timer;
    unsigned open_handles;
    struct turn_entry entry;
    enum route_where where;
    enum conn_state state;
    bool reading, eof;
    bool body_ended;  /* the parser has seen the end of this message */
    bool close_after; /* behind the answer under way */
    bool counted;     /* this request is in requests_received */
    struct peer peer;
    struct http *http;
    struct input input;
    struct request *request; /* BODY to REPLY */
    struct told *told;       /* of the last answer */
    bool relayed;            /* a proxy is at the other end, as its last request looked */
    uint64_t request_ns;     /* first byte of this request, or accept */
    uint64_t body_left_ms, pace_left_ms, armed_ms, pace_bytes;
    struct reply reply;
    struct buf reply_head;
    size_t reply_left; /* bytes not yet taken by the kernel when the timer last looked */
    uv_write_t write;
    uv_shutdown_t shutdown;
    size_t lingered;
};

void conn_set_state(struct conn *c, enum conn_state to);
/* Ends it; a request under way counts as cut. reset: what the last answer acknowledged may not have arrived. */
void conn_close(struct conn *c, enum close_reason why, bool reset);
void conn_forget_told(struct conn *c, bool reset);

/* Moves some input on: into the parser, the request, an answer. false: nothing to do for now. */
bool exchange_advance(struct conn *c);

#endif
