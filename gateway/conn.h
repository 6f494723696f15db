/* The life of a connection: reading, the state machine from head to answer, timers, closing. */
#ifndef GATEWAY_CONN_H
#define GATEWAY_CONN_H

#include "gateway/address.h"
#include "gateway/app.h"
#include "gateway/reply.h"

#define CONN_STATE_MAP(X)                                                                                              \
    X(IDLE, "idle")     /* between requests: the idle timer */                                                         \
    X(HEAD, "head")     /* the head timer, from accept or the first byte */                                            \
    X(BODY, "body")     /* the body timer, while we are reading */                                                     \
    X(WAIT, "wait")     /* for memory, a lane or the store */                                                          \
    X(REPLY, "reply")   /* the write timer */                                                                          \
    X(LINGER, "linger") /* answered and half closed: reads on for a little, so that the answer arrives */              \
    X(CLOSING, "closing")
enum conn_state {
#define X(id, name) CONN_##id,
    CONN_STATE_MAP(X)
#undef X
        CONN_STATES
};
extern const char *const conn_state_names[CONN_STATES];

struct told;

struct listener;

/* Accepts one connection from the listener. false: no memory, it still waits there. */
bool conn_accept(struct listener *l) MUST_CHECK;
/* The other end: of the socket, or, once the PROXY header of such a listener has come, whom that names. */
const struct address *conn_address(const struct conn *c);
/* The wait of its request is over: go on, soon. */
void conn_resume(struct conn *c);
/* Answers the request under way; takes *r over. The connection closes behind it if it must, or if `close` says so. */
void conn_reply(struct conn *c, struct reply *r, bool close);
/* "100 Continue" if the client waits for it. */
void conn_continue(struct conn *c);
/* Attempts that the last answer acknowledged: a reset takes them back. Takes t over. */
void conn_remember(struct conn *c, struct told *t);
/* Whether a large answer would find room at all; slow readers may be cut for it (answers.c). */
bool answers_room(struct app *app) MUST_CHECK;
/* At the end of draining: those that do nothing are closed; `all`: everybody. */
void conn_close_all(struct app *app, bool all);

#endif
