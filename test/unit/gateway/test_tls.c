/*
 * A whole session with a client in memory, and again with one allocation of the TLS library failing, an early or a late
 * one: an error each time, never a crash, no leak that grows, and at last a session.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "gateway/tls.h"

static long left = -1; /* allocations until one fails; below 0: none does */
static long alive;

static bool fails(void)
{
    return left >= 0 && left-- == 0;
}

static void *get(size_t n, const char *file, int line)
{
    (void)file, (void)line;
    void *p = fails() ? NULL : malloc(n);
    alive += p != NULL;
    return p;
}

static void *again(void *old, size_t n, const char *file, int line)
{
    (void)file, (void)line;
    void *p = fails() ? NULL : realloc(old, n);
    alive += p && !old;
    return p;
}

static void give(void *p, const char *file, int line)
{
    (void)file, (void)line;
    alive -= p != NULL;
    free(p);
}

static char cert_file[] = "/tmp/flamegate-cert-XXXXXX", key_file[] = "/tmp/flamegate-key-XXXXXX";
static SSL_CTX *client_ctx;

static int make_files(void **state)
{
    (void)state;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    FILE *c = fdopen(mkstemp(cert_file), "w"), *k = fdopen(mkstemp(key_file), "w");

    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), 0);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    X509_set_pubkey(x, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, (const unsigned char *)"x", -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    bool ok = X509_sign(x, key, EVP_sha256()) && PEM_write_X509(c, x) &&
              PEM_write_PrivateKey(k, key, NULL, NULL, 0, NULL, NULL);
    fclose(c);
    fclose(k);
    X509_free(x);
    EVP_PKEY_free(key);
    client_ctx = SSL_CTX_new(TLS_client_method());
    return ok && client_ctx ? 0 : -1;
}

static int drop_files(void **state)
{
    (void)state;
    SSL_CTX_free(client_ctx);
    unlink(cert_file);
    unlink(key_file);
    return 0;
}

struct peer {
    SSL *ssl;
    BIO *in, *out;
};

/* What the client has to say becomes the session's input, which lives until the next call. */
static struct str said(struct peer *p)
{
    static char bytes[64 << 10];
    int n = BIO_read(p->out, bytes, sizeof bytes);

    return (struct str){bytes, n > 0 ? (size_t)n : 0};
}

static void hear(struct peer *p, struct tls *t)
{
    if (t->out.len)
        BIO_write(p->in, t->out.p, (int)t->out.len);
    buf_free(&t->out);
}

/* `count`: only the server's allocations fail. */
static enum tls_result handshake(struct peer *p, struct tls *t, long *count)
{
    enum tls_result r = TLS_MORE;

    for (int i = 0; i < 4 && r == TLS_MORE; i++) {
        SSL_do_handshake(p->ssl);
        t->in = said(p);
        left = *count;
        r = tls_handshake(t);
        *count = left;
        left = -1;
        hear(p, t);
    }
    return r;
}

static bool talk(struct peer *p, struct tls *t, long *count)
{
    char plain[1024], back[64] = "";
    size_t n = 0;

    if (handshake(p, t, count) != TLS_DONE || SSL_do_handshake(p->ssl) != 1)
        return false;
    SSL_write(p->ssl, "question", 8);
    t->in = said(p);
    left = *count;
    bool ok = tls_read(t, plain, sizeof plain, &n) == TLS_DONE && tls_write(t, STR("answer"));
    tls_end(t);
    left = -1;
    hear(p, t);
    return ok && n == 8 && memcmp(plain, "question", 8) == 0 && SSL_read(p->ssl, back, sizeof back) == 6 &&
           strcmp(back, "answer") == 0 && SSL_read(p->ssl, back, sizeof back) <= 0 &&
           SSL_get_shutdown(p->ssl) == SSL_RECEIVED_SHUTDOWN;
}

/* All of it, with the nth allocation of ours failing. */
static bool session(long nth)
{
    struct tls_files files = {.cert = cert_file, .key = key_file, .client_ca = cert_file, .client_optional = true};
    struct fault f = {.err = E_OK};
    struct tls t = {0};
    struct peer p = {SSL_new(client_ctx), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem())};

    SSL_set_bio(p.ssl, p.in, p.out);
    SSL_set_connect_state(p.ssl);
    left = nth;
    struct tls_context *c = tls_context_new(&files, &f);
    bool ok = c && tls_init(&t, c);
    long count = left;
    left = -1;
    assert_true(c || f.err != E_OK);
    tls_context_free(c); /* sessions keep what they need */
    ok = ok && talk(&p, &t, &count);
    tls_free(&t);
    SSL_free(p.ssl);
    return ok && count >= 0;
}

static void test_allocations_fail(void **state)
{
    (void)state;
    long n = 0;

    for (int i = 0; i < 3; i++)
        assert_true(session(1000000)); /* what the library makes once */
    long before = alive;
    for (n = 0; n < 20000 && !session(n); n += 1 + n / 64)
        ;
    assert_in_range(n, 100, 19999);
    assert_true(session(1000000));
    assert_true(alive <= before + 64);
}

/* New keys without end, as many as a read holds, and the records of one byte that are allowed. */
static void test_new_keys(void **state)
{
    (void)state;
    struct tls_files files = {.cert = cert_file, .key = key_file};
    struct fault f = {.err = E_OK};
    struct tls_context *c = tls_context_new(&files, &f);
    struct peer p = {SSL_new(client_ctx), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem())};
    struct tls t;
    char plain[64 << 10];
    size_t n;
    long none = -1;

    SSL_set_bio(p.ssl, p.in, p.out);
    SSL_set_connect_state(p.ssl);
    assert_true(tls_init(&t, c));
    assert_int_equal(handshake(&p, &t, &none), TLS_DONE);
    for (int i = 0; i < 1000; i++)
        SSL_write(p.ssl, "x", 1);
    SSL_key_update(p.ssl, SSL_KEY_UPDATE_REQUESTED);
    SSL_write(p.ssl, "y", 1);
    t.in = said(&p);
    assert_int_equal(tls_read(&t, plain, sizeof plain, &n), TLS_DONE);
    assert_int_equal(n, 1001);
    assert_true(tls_write(&t, STR("z")));
    hear(&p, &t);
    assert_int_equal(SSL_read(p.ssl, plain, sizeof plain), 1);
    for (int i = 0; i < 1000; i++) {
        SSL_key_update(p.ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
        SSL_do_handshake(p.ssl);
    }
    t.in = said(&p);
    assert_int_equal(tls_read(&t, plain, sizeof plain, &n), TLS_FAILED);
    assert_in_range(t.asides, 60, 70);
    tls_free(&t);
    SSL_free(p.ssl);
    tls_context_free(c);
}

static void test_not_after(void **state)
{
    (void)state;
    struct tls_files files = {.cert = cert_file, .key = key_file};
    struct fault f = {.err = E_OK};
    struct tls_context *c = tls_context_new(&files, &f);
    int64_t left_s = tls_context_not_after(c) - (int64_t)time(NULL);

    assert_in_range(left_s, 86300, 86400);
    tls_context_free(c);
    files.key = cert_file;
    assert_null(tls_context_new(&files, &f));
    assert_non_null(strstr(f.text, cert_file));
}

int main(void)
{
    if (!CRYPTO_set_mem_functions(get, again, give))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations_fail),
        cmocka_unit_test(test_new_keys),
        cmocka_unit_test(test_not_after),
    };
    return cmocka_run_group_tests(tests, make_files, drop_files);
}
