/* OpenSSL, fed from a slice and writing to a buffer, so that a session at rest holds no buffer of ours. */
#include "gateway/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

enum {
    CERTIFICATES_BYTES = 32 << 10, /* of a client's chain */
    ASIDES_MAX = 64, /* a new key each 18 microseconds would be 22 ms for one read; a client needs one in days */
};

const char *const tls_failure_names[TLS_FAILURES] = {
#define X(id, name) name,
    TLS_FAILURE_MAP(X)
#undef X
};

struct tls_context {
    SSL_CTX *ctx;
};

/* --- the slice and the buffer as OpenSSL's input and output --- */

static int slice_read(BIO *b, char *p, size_t n, size_t *done)
{
    struct tls *t = BIO_get_data(b);
    size_t take = n < t->in.len ? n : t->in.len;

    BIO_clear_retry_flags(b);
    *done = 0;
    if (t->asides > ASIDES_MAX)
        return 0; /* as if the connection had ended */
    if (take == 0) {
        BIO_set_retry_read(b);
        return 0;
    }
    *done = take;
    memcpy(p, t->in.p, take);
    t->in.p += take;
    t->in.len -= take;
    return 1;
}

static int slice_write(BIO *b, const char *p, size_t n, size_t *done)
{
    struct tls *t = BIO_get_data(b);

    BIO_clear_retry_flags(b);
    buf_add(&t->out, p, n);
    *done = n;
    return !t->out.failed;
}

static long slice_ctrl(BIO *b, int what, long n, void *p)
{
    (void)b, (void)n, (void)p;
    return what == BIO_CTRL_FLUSH;
}

/* New keys, and wishes for a new handshake, which cost us more than the client. */
static void on_message(int writing, int version, int type, const void *p, size_t n, SSL *ssl, void *arg)
{
    struct tls *t = arg;

    (void)version, (void)p, (void)n, (void)ssl;
    if (!writing && type == SSL3_RT_HANDSHAKE && t->done)
        t->asides++;
}

/* One for the life of the process; made by the first context, on the loop. */
static BIO_METHOD *slice_method(void)
{
    static BIO_METHOD *m;

    if (m)
        return m;
    m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "slice");
    if (m && (!BIO_meth_set_read_ex(m, slice_read) || !BIO_meth_set_write_ex(m, slice_write) ||
              !BIO_meth_set_ctrl(m, slice_ctrl))) {
        BIO_meth_free(m);
        m = NULL;
    }
    return m;
}

/* --- a listener's context --- */

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
                           unsigned in_len, void *arg)
{
    static const char http[] = "http/1.1";

    (void)ssl, (void)arg;
    for (unsigned i = 0; i < in_len && in[i] < in_len - i; i += in[i] + 1u)
        if (in[i] == sizeof http - 1 && memcmp(in + i + 1, http, sizeof http - 1) == 0) {
            *out = in + i + 1;
            *out_len = in[i];
            return SSL_TLSEXT_ERR_OK;
        }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Never asks a terminal: a key with a password is an error, not a process that hangs. */
static int no_password(char *p, int n, int writing, void *arg)
{
    (void)p, (void)n, (void)writing, (void)arg;
    return -1;
}

static void settings(SSL_CTX *ctx)
{
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(ctx, 1);
    SSL_CTX_set_max_cert_list(ctx, CERTIFICATES_BYTES);
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    SSL_CTX_set_default_passwd_cb(ctx, no_password);
}

static bool refuse(struct fault *f, const char *what, const char *file)
{
    const char *why = ERR_reason_error_string(ERR_peek_last_error());

    fault_set(f, E_INTERNAL, "%s %s: %s", what, file, why ? why : "cannot be read");
    return false;
}

static bool ask_clients(SSL_CTX *ctx, const struct tls_files *files, struct fault *f)
{
    static const unsigned char id[] = "flamegate";
    int mode = SSL_VERIFY_PEER | (files->client_optional ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT);
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(files->client_ca);

    if (!names || !SSL_CTX_load_verify_file(ctx, files->client_ca)) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return refuse(f, "client_ca_file", files->client_ca);
    }
    SSL_CTX_set_client_CA_list(ctx, names);
    SSL_CTX_set_verify(ctx, mode, NULL);
    return SSL_CTX_set_session_id_context(ctx, id, sizeof id - 1) == 1;
}

static bool load(SSL_CTX *ctx, const struct tls_files *files, struct fault *f)
{
    if (SSL_CTX_use_certificate_chain_file(ctx, files->cert) != 1)
        return refuse(f, "cert_file", files->cert);
    if (SSL_CTX_use_PrivateKey_file(ctx, files->key, SSL_FILETYPE_PEM) != 1)
        return refuse(f, "key_file", files->key);
    if (SSL_CTX_check_private_key(ctx) != 1)
        return refuse(f, "key_file does not belong to cert_file:", files->key);
    return !files->client_ca || ask_clients(ctx, files, f);
}

struct tls_context *tls_context_new(const struct tls_files *files, struct fault *f)
{
    struct tls_context *c = OPENSSL_zalloc(sizeof *c);

    ERR_clear_error();
    if (c)
        c->ctx = SSL_CTX_new(TLS_server_method());
    if (!c || !c->ctx || !slice_method()) {
        fault_set(f, E_NO_MEMORY, NULL);
    } else {
        settings(c->ctx);
        if (load(c->ctx, files, f)) {
            ERR_clear_error();
            return c;
        }
    }
    ERR_clear_error();
    tls_context_free(c);
    return NULL;
}

void tls_context_free(struct tls_context *c)
{
    if (!c)
        return;
    SSL_CTX_free(c->ctx);
    OPENSSL_free(c);
}

int64_t tls_context_not_after(struct tls_context *c)
{
    struct tm tm;
    X509 *x = SSL_CTX_get0_certificate(c->ctx);

    return x && ASN1_TIME_to_tm(X509_get0_notAfter(x), &tm) ? (int64_t)timegm(&tm) : 0;
}

/* --- sessions --- */

bool tls_init(struct tls *t, struct tls_context *c)
{
    SSL *ssl = SSL_new(c->ctx);
    BIO *b = ssl ? BIO_new(slice_method()) : NULL;

    *t = (struct tls){0};
    if (!b) {
        SSL_free(ssl);
        ERR_clear_error();
        return false;
    }
    BIO_set_data(b, t);
    BIO_set_init(b, 1);
    SSL_set_bio(ssl, b, b);
    SSL_set_msg_callback(ssl, on_message);
    SSL_set_msg_callback_arg(ssl, t);
    SSL_set_accept_state(ssl);
    t->ssl = ssl;
    return true;
}

void tls_free(struct tls *t)
{
    SSL_free(t->ssl);
    buf_free(&t->out);
    *t = (struct tls){0};
}

static enum tls_failure failure_of(unsigned long error)
{
    int reason = ERR_GET_REASON(error);

    switch (reason) {
    case SSL_R_HTTP_REQUEST:
        return TLS_FAILURE_HTTP;
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTPS_PROXY_REQUEST:
        return TLS_FAILURE_GARBAGE;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
        return TLS_FAILURE_VERSION;
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
        return TLS_FAILURE_CIPHER;
    case SSL_R_NO_APPLICATION_PROTOCOL:
        return TLS_FAILURE_ALPN;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        return TLS_FAILURE_CLIENT;
    default:
        return reason > SSL_AD_REASON_OFFSET ? TLS_FAILURE_ALERT : TLS_FAILURE_OTHER;
    }
}

enum tls_result tls_handshake(struct tls *t)
{
    ERR_clear_error(); /* the queue belongs to the thread, and sessions share it */
    int r = SSL_do_handshake(t->ssl);

    t->done = r == 1;
    if (r == 1)
        return TLS_DONE;
    if (SSL_get_error(t->ssl, r) == SSL_ERROR_WANT_READ)
        return TLS_MORE;
    t->failure = failure_of(ERR_peek_error());
    ERR_clear_error();
    return TLS_FAILED;
}

enum tls_result tls_read(struct tls *t, char *p, size_t cap, size_t *n)
{
    size_t got = 0;
    int r;

    *n = 0;
    ERR_clear_error();
    while ((r = SSL_read_ex(t->ssl, p + *n, cap - *n, &got)) == 1)
        *n += got;
    r = SSL_get_error(t->ssl, r);
    ERR_clear_error();
    if (r == SSL_ERROR_WANT_READ)
        return t->out.failed ? TLS_FAILED : TLS_DONE;
    return r == SSL_ERROR_ZERO_RETURN ? TLS_CLOSED : TLS_FAILED;
}

bool tls_write(struct tls *t, struct str s)
{
    size_t done = 0;

    ERR_clear_error();
    bool ok = s.len == 0 || SSL_write_ex(t->ssl, s.p, s.len, &done) == 1;
    ERR_clear_error();
    return ok && done == s.len && !t->out.failed;
}

void tls_end(struct tls *t)
{
    ERR_clear_error();
    (void)SSL_shutdown(t->ssl); /* whether it could be said makes no difference any more */
    ERR_clear_error();
}

bool tls_ask(int fd, struct str request, char *answer, size_t cap)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = ctx ? SSL_new(ctx) : NULL;
    size_t n = 0;

    bool ok = ssl && SSL_set_fd(ssl, fd) == 1 && SSL_connect(ssl) == 1 &&
              SSL_write_ex(ssl, request.p, request.len, &n) == 1 && SSL_read_ex(ssl, answer, cap, &n) == 1;
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    return ok;
}
