/*
 * One request from its head to its answer. Who answers is a handler; the connection feeds it. A request belongs to its
 * connection, until the client goes while a lane or the store works for it: then the handler owns it alone and frees it
 * when that is done.
 */
#ifndef GATEWAY_REQUEST_H
#define GATEWAY_REQUEST_H

#include "gateway/access.h"
#include "gateway/address.h"
#include "gateway/app.h"
#include "gateway/reply.h"

enum pump {
    PUMP_MORE,  /* took the input, wants more */
    PUMP_AGAIN, /* the budget is spent; call again */
    PUMP_WAIT,  /* waits for memory, a lane or the store: conn_resume or conn_reply follows, never from inside this call
                 */
};

struct request;
struct note;
struct handler {
    enum pump (*begin)(struct request *r); /* the head is good and allowed; may refuse */
    enum pump (*feed)(struct request *r, struct str *in, uint32_t *budget);
    enum pump (*end)(struct request *r,
                     uint32_t *budget); /* the body is complete; again after conn_resume, until it answers or waits */
    void (*refused)(struct request *r); /* an error is going to be the answer: let go of everything */
    bool (*gone)(struct request *r);    /* the client has gone. true: keeps the request and frees it later */
    void (*written)(struct request *r, int status,
                    bool in_time); /* the answer has left, before any sign that the client had */
};

struct request {
    struct app *app;
    struct conn *conn; /* NULL: the client has gone */
    struct head *head;
    struct address client; /* the real one, behind trusted_proxies */
    struct target target;
    struct routed routed;
    struct access access;
    const struct handler *handler;
    struct fault fault; /* with refused: the answer */
    bool refused;
    bool slow_matters;         /* holds more memory than a start: must not dawdle */
    struct limits limits;      /* of the project; copied: a reload may come */
    struct conf_bounds bounds; /* the same, and rates, services, series */
    uint64_t start_ns;         /* monotonic, of the head */
    int64_t arrival_ns;        /* wall clock */
    uint64_t patience_ms;      /* how long the client waits for its answer */
    uint64_t body_bytes;
    struct note *note;     /* for the upload ledger; NULL: nothing noted yet */
    bool noted;            /* and its entry is written */
    enum close_reason cut; /* with conn NULL: why */
    void *state;           /* the handler's */
};

/* Routes, authenticates, checks lengths. Takes head over. Errors are in r->refused. NULL: no memory. */
struct request *request_new(struct app *app, struct conn *conn, enum route_where where, struct head *head,
                            uint64_t start_ns) MUST_CHECK;
void request_refuse(struct request *r, enum err e, const char *fmt, ...) PRINTF_LIKE(3, 4);
void request_refuse_with(struct request *r, const struct fault *f);
/* The reply to a refused one. */
void request_refusal(struct request *r, struct reply *out);
void request_free(struct request *r);

extern const struct handler handler_simple; /* simple.c: routes that answer at once */
extern const struct handler handler_query;  /* queries.c */
extern const struct handler handler_ingest; /* ingest/ingest.c */

#endif
