/*
 * Counts and drops. Every put is answered PUT_STORED in the next turn of the loop, so that the path around a store can
 * be measured without one; reading finds nothing.
 */
#include "backends/null.h"

#include <stdlib.h>

struct sample_store {
    const struct store_host *host;
    uv_async_t wake;
    struct group *put;
    uint64_t profiles, bytes;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

static void on_closed(uv_handle_t *h)
{
    struct sample_store *s = h->data;

    s->closed(s->closed_ctx);
    free(s);
}

static void on_wake(uv_async_t *h)
{
    struct sample_store *s = h->data;
    struct group *g = s->put;

    s->put = NULL;
    if (g)
        g->done(g);
    if (s->closed && !s->put && !uv_is_closing((uv_handle_t *)&s->wake))
        uv_close((uv_handle_t *)&s->wake, on_closed);
}

static struct sample_store *null_open(const struct store_host *h, struct str address, struct fault *f)
{
    struct sample_store *s = calloc(1, sizeof *s);

    (void)address;
    if (!s || uv_async_init(h->loop, &s->wake, on_wake)) {
        free(s);
        fault_set(f, E_NO_MEMORY, NULL);
        return NULL;
    }
    s->host = h;
    s->wake.data = s;
    return s;
}

static void null_put(struct sample_store *s, struct group *g)
{
    ASSERT(!s->put);
    for (uint16_t i = 0; i < g->n; i++) {
        g->results[i] = PUT_STORED;
        s->bytes += g->records[i]->body.len;
    }
    s->profiles += g->n;
    s->put = g;
    uv_async_send(&s->wake);
}

static void null_mark(struct sample_store *s, const struct group *g, uint64_t told)
{
    (void)s;
    (void)g;
    (void)told;
}

static void null_expire(struct sample_store *s, int64_t now_ns)
{
    (void)s;
    (void)now_ns;
}

static void null_close(struct sample_store *s, void (*closed)(void *ctx), void *ctx)
{
    store_log(s->host, 2, "store=null profiles=%llu body_bytes=%llu", (unsigned long long)s->profiles,
              (unsigned long long)s->bytes);
    s->closed = closed;
    s->closed_ctx = ctx;
    uv_async_send(&s->wake);
}

static bool null_healthy(const struct sample_store *s)
{
    (void)s;
    return true;
}

static enum err null_scan(struct sample_store *s, const struct selection *sel, enum scan_what what, scan_row row,
                          void *ctx, struct fault *f)
{
    (void)s;
    (void)sel;
    (void)what;
    (void)row;
    (void)ctx;
    (void)f;
    return E_OK;
}

static enum err null_symbols(struct sample_store *s, struct str project, struct str service, int32_t first,
                             int32_t last, block_row row, void *ctx, struct fault *f)
{
    (void)s;
    (void)project;
    (void)service;
    (void)first;
    (void)last;
    (void)row;
    (void)ctx;
    (void)f;
    return E_OK;
}

static enum err null_original(struct sample_store *s, struct str project, struct attempt a, enum original_state *state,
                              struct buf *out, struct fault *f)
{
    (void)s;
    (void)project;
    (void)a;
    (void)out;
    *state = ORIGINAL_OFF;
    return fault_set(f, E_NOT_FOUND, "no such profile");
}

static int64_t null_raw_since(const struct sample_store *s)
{
    (void)s;
    return INT64_MIN;
}

static const struct sample_store_ops write_ops = {
    .scheme = "null",
    .open = null_open,
    .put = null_put,
    .mark = null_mark,
    .expire = null_expire,
    .close = null_close,
    .healthy = null_healthy,
};
static const struct sample_reader_ops read_ops = {
    .scan = null_scan,
    .symbols = null_symbols,
    .original = null_original,
    .raw_since = null_raw_since,
};
const struct backend backend_null = {.write = &write_ops, .read = &read_ops};
