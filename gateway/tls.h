/*
 * TLS, the server's side, over bytes that somebody else carries: no sockets, no loop. OpenSSL is used nowhere else.
 * TLS 1.2 and 1.3, ALPN http/1.1, no renegotiation, no compression, stateless tickets that die with their context.
 */
#ifndef GATEWAY_TLS_H
#define GATEWAY_TLS_H

#include "codecs/base.h"

/* Why a handshake did not come to its end. */
#define TLS_FAILURE_MAP(X)                                                                                             \
    X(HTTP, "plain_http") /* the client speaks HTTP without TLS */                                                     \
    X(GARBAGE, "not_tls")                                                                                              \
    X(VERSION, "protocol_version")                                                                                     \
    X(CIPHER, "no_shared_cipher")                                                                                      \
    X(ALPN, "alpn") /* the client wants something else than http/1.1, and only that */                                 \
    X(CLIENT, "client_certificate")                                                                                    \
    X(ALERT, "client_alert") /* the client gave up, as when it does not trust our certificate */                       \
    X(CLOSED, "closed")                                                                                                \
    X(TIMEOUT, "timeout")                                                                                              \
    X(SHUTDOWN, "shutdown")                                                                                            \
    X(OTHER, "other")
enum tls_failure {
#define X(id, name) TLS_FAILURE_##id,
    TLS_FAILURE_MAP(X)
#undef X
        TLS_FAILURES
};
extern const char *const tls_failure_names[TLS_FAILURES];

struct tls_files {
    const char *cert, *key;
    const char *client_ca; /* NULL: clients are not asked for a certificate */
    bool client_optional;  /* asked, and let in without one; never with a bad one */
};

/* What a listener offers. Sessions keep what they need of it: it may be freed before them. */
struct tls_context;
struct tls_context *tls_context_new(const struct tls_files *files, struct fault *f) MUST_CHECK;
void tls_context_free(struct tls_context *c);         /* NULL is fine */
int64_t tls_context_not_after(struct tls_context *c); /* the end of the certificate, Unix seconds */

enum tls_result { TLS_DONE, TLS_MORE, TLS_CLOSED, TLS_FAILED };

/* One session. Everything that it has to send is appended to `out`, which is the caller's to take; `in` is what it has
 * not read yet. */
struct tls {
    void *ssl;
    struct str in;
    struct buf out;
    enum tls_failure failure; /* of the handshake, after TLS_FAILED */
    bool done;                /* with the handshake */
    unsigned asides;          /* messages of the client behind the handshake that are no data */
};
bool tls_init(struct tls *t, struct tls_context *c) MUST_CHECK; /* false: no memory */
void tls_free(struct tls *t);
/* The handshake reads t->in. About a millisecond of computing. TLS_DONE: t->in may hold more already. */
enum tls_result tls_handshake(struct tls *t) MUST_CHECK;
/*
 * Reads all of t->in: puts the plain bytes at p, where there must be room for as many as t->in has and TLS_RECORD more.
 * TLS_DONE; TLS_CLOSED: the client has said that it sends no more; TLS_FAILED: not from this client.
 */
enum { TLS_RECORD = 16 << 10 };
enum tls_result tls_read(struct tls *t, char *p, size_t cap, size_t *n) MUST_CHECK;
bool tls_write(struct tls *t, struct str s) MUST_CHECK; /* false: no memory */
void tls_end(struct tls *t);                            /* close_notify */

/* A client, for one question to ourselves over a blocking socket: whoever answers is taken for us. The answer's first
 * bytes. */
bool tls_ask(int fd, struct str request, char *answer, size_t cap) MUST_CHECK;

#endif
