/*
 * The TLS half of a connection: between its socket and its input and answers. Handshakes are computed on a lane of
 * their own, so that no other connection waits for them; what follows is symmetric and done on the loop. A connection
 * of a plain listener has none of this.
 */
#ifndef GATEWAY_SECURE_H
#define GATEWAY_SECURE_H

#include <stdatomic.h>

#include "gateway/lane.h"
#include "gateway/tls.h"

struct conn;
struct app;

struct secure {
    struct tls tls;
    struct job step; /* of the handshake, on the lane */
    struct app *app;
    struct conn *conn;
    struct buf in;    /* of the handshake: what its next step reads */
    atomic_bool gone; /* the connection went while a step was computed */
    bool running;     /* a step is on the lane: nobody else touches this */
    bool established;
    bool ended;              /* the client has said that it sends no more */
    enum tls_result stepped; /* what the step came to */
    size_t sent;             /* of the answer under way */
};

/* What a read of the socket may bring at once; into app->cipher_buffer. */
enum { SECURE_READ_BYTES = 32 << 10, SECURE_HELLO_BYTES = 4 << 10 };

/* NULL: no memory. */
struct secure *secure_new(struct app *app, struct conn *c, struct tls_context *context) MUST_CHECK;
/* The connection closes for this reason (of metrics.h). say: tells the client first, if it can be said at once. */
void secure_close(struct secure *s, int why, bool say);
/*
 * Bytes of the socket. Plain ones are put into app->read_buffer: *n of them; during the handshake there are none.
 * false: the connection has been closed.
 */
bool secure_read(struct secure *s, const char *p, size_t got, size_t *n) MUST_CHECK;
/* Sends the connection's answer, piece by piece; conn_replied follows when all of it has been taken. */
void secure_reply(struct secure *s);
/* A few bytes outside of an answer. */
void secure_say(struct secure *s, struct str text);
/* Says that nothing more comes from us. */
void secure_end(struct secure *s);

#endif
