/* The inside of a connection, shared by its parts: conn.c (states, timers, life), intake.c (reading), secure.c (TLS)
 * and exchange.c (bytes to requests). */
#ifndef GATEWAY_CONN_PARTS_H
#define GATEWAY_CONN_PARTS_H

#include "gateway/conn.h"
#include "gateway/http.h"
#include "gateway/input.h"
#include "gateway/peer.h"
#include "gateway/request.h"
#include "gateway/secure.h"

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
    uint32_t answers;
    uint64_t accepted_ms;
    unsigned jitter; /* per mille of max_connection_age, so that those that came together do not leave together */
    struct peer peer;
    bool in_crowd;         /* counted by its address */
    struct secure *secure; /* NULL: in the clear */
    struct http *http;
    struct input input;
    struct request *request; /* BODY to REPLY */
    struct told *told;       /* of the last answer */
    bool relayed;            /* a proxy is at the other end, as its last request looked */
    uint64_t request_ns;     /* first byte of this request, or accept */
    uint64_t body_left_ms, pace_left_ms, armed_ms, pace_bytes;
    struct reply reply;
    struct buf reply_head;
    size_t reply_held; /* bytes of memory that the ledger is charged for the answer */
    uint64_t reply_ms; /* since when it is under way */
    size_t reply_left; /* bytes not yet taken by the kernel when the timer last looked */
    uv_write_t write;
    uv_shutdown_t shutdown;
    size_t lingered;
};

void conn_set_state(struct conn *c, enum conn_state to);
/* Ends it; a request under way counts as cut. reset: what the last answer acknowledged may not have arrived. */
void conn_close(struct conn *c, enum close_reason why, bool reset);
void conn_forget_told(struct conn *c, bool reset);

/* Its address is known. false: there are too many from there; it is closed. */
bool conn_join_crowd(struct conn *c) MUST_CHECK;
void conn_pump(struct conn *c); /* goes on with what there is */
/* The clocks of a body run only while we are reading it. */
void conn_arm_body(struct conn *c);
void conn_disarm_body(struct conn *c);
/* Nothing more comes. Who has sent its whole upload may still get an answer; else the request is over. */
void conn_ended(struct conn *c, bool reset);
void conn_reply_moved(struct conn *c);  /* a piece of the answer is on its way: its clock starts anew */
void conn_replied(struct conn *c);      /* the answer has been taken by the kernel */
void conn_refuse_plain(struct conn *c); /* HTTP where TLS is spoken: says so, in the clear */
/* Half closes; what the client still writes is read over, so that the last bytes are not lost in a reset. */
void conn_linger(struct conn *c);

size_t conn_unread(struct conn *c); /* bytes given to the kernel that the other side has not acknowledged */

/* answers.c: memory of answers that clients have not taken yet. */
void answers_begin(struct conn *c); /* c->reply is the answer; may be refused instead, where it finds no room */
void answers_end(struct conn *c);   /* its memory is freed; no answer is fine */

/* The only place that decides whether a socket is read. */
void intake_watch(struct conn *c);
/* n plain bytes in the loop's shared buffer, or none: goes on with what there is. */
void intake_take(struct conn *c, char *p, size_t n);

/* Moves some input on: into the parser, the request, an answer. false: nothing to do for now. */
bool exchange_advance(struct conn *c);

#endif
