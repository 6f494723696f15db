/* The process: what its parts share. One of it, made by serve.c, passed along; there are no globals besides the log
 * level. */
#ifndef GATEWAY_APP_H
#define GATEWAY_APP_H

#include <uv.h>

#include "auth/auth.h"
#include "backends/shares.h"
#include "backends/uploads.h"
#include "conf/conf.h"
#include "gateway/admit.h"
#include "gateway/lane.h"
#include "gateway/ledger.h"
#include "gateway/metrics.h"
#include "gateway/turn.h"

enum { READ_BUFFER_BYTES = 64 << 10 };

struct conn;
struct crowd;
struct census;
struct throttle;
struct submit;
struct reload;
struct hour_runner;

struct app {
    uv_loop_t *loop;
    struct conf *conf;
    struct keyring *keys; /* NULL: none could be read yet, everybody is refused */
    struct hash_key hash_key;
    const struct backend *backend;
    struct sample_store *store;              /* what queries read */
    const struct sample_store_ops *write;    /* of `sink`: the store itself, or a spool around it */
    struct sample_store *sink, *spool;       /* spool: NULL where there is none */
    const struct share_store_ops *share_ops; /* that stands apart; NULL: none, or the sample store keeps its own */
    const struct share_reader_ops *share_reader;
    struct share_store *share_store; /* of either */
    struct uploads *uploads;         /* the upload ledger */
    struct hour_runner *hours;       /* NULL: the store keeps none */
    struct submit *submit;           /* records on their way into the store */
    struct admit *admit;
    struct lane *ingest_lane, *query_lane;
    struct ledger ledger;
    struct turn turn;
    struct metrics metrics;
    struct crowd *crowd;       /* connections by address */
    struct census *census;     /* services and series of projects */
    struct throttle *throttle; /* their rates */
    size_t projects_charged;   /* memory of the two */
    struct conn *conns;
    size_t descriptors;         /* that the process may have */
    size_t n_conns, n_requests; /* alive; a request may outlive its connection */
    char *cipher_buffer;        /* SECURE_READ_BYTES; NULL without a TLS listener, as is the next one */
    struct lane *tls_lane;
    char *read_buffer; /* READ_BUFFER_BYTES, for all sockets: a read is consumed or copied before the next */
    bool ready, draining;
    bool finishing; /* draining, and the delay is over: no new request on an old connection */
};

int64_t app_now_ns(void);              /* wall clock */
void app_conn_closed(struct app *app); /* a connection is gone: there may be room to accept another */

#endif
