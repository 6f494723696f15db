/* Counting, and writing the counters down for Prometheus. */
#include "gateway/metrics.h"

#include <inttypes.h>
#include <stdio.h>

#include "backends/backend.h"

static const double seconds_bounds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
static const double bytes_bounds[] = {1024,    4096,    16384,    65536,    262144,   1048576,
                                      4194304, 8388608, 16777216, 33554432, 67108864, 134217728};
_Static_assert(COUNTOF(seconds_bounds) <= BUCKETS_MAX && COUNTOF(bytes_bounds) <= BUCKETS_MAX, "buckets");

static const char *const method_names[METHODS] = {"GET", "POST", "HEAD", "other"};
static const char *const close_names[CLOSE_REASONS] = {
#define X(id, name) name,
    CLOSE_MAP(X)
#undef X
};
const char *close_name(enum close_reason why)
{
    return close_names[why];
}

static const char *const outcome_names[OUTCOMES] = {
    [PUT_STORED] = "stored",
    [PUT_BAD] = "bad_row",
    [PUT_AGAIN] = "unavailable",
};
/* The last one takes what is not in the list. */
static const int statuses[STATUSES] = {200, 400, 401, 403, 404, 405, 411, 413, 414, 415, 417, 429,
                                       431, 499, 500, 501, 503, 504, 505, 0,   0,   0,   0,   0};

static const struct {
    const char *name, *kind, *help;
} plain[METRICS] = {
#define METRIC(id, kind, name, help) {name, #kind, help},
#include "gateway/metrics.def"
#undef METRIC
};

static size_t status_index(int status)
{
    for (size_t i = 0; i < STATUSES; i++)
        if (statuses[i] == status)
            return i;
    return STATUSES - 1;
}

static size_t method_index(struct str method)
{
    size_t i = 0;

    while (i < METHODS - 1 && !str_eq(method, str_of(method_names[i])))
        i++;
    return i;
}

static void observe(struct histogram *h, const double *bounds, size_t n, double v)
{
    size_t i = 0;

    while (i < n && v > bounds[i])
        i++;
    h->buckets[i]++;
    h->sum += v;
}

void metrics_seconds(struct histogram *h, double seconds)
{
    observe(h, seconds_bounds, COUNTOF(seconds_bounds), seconds);
}

void metrics_bytes(struct histogram *h, double bytes)
{
    observe(h, bytes_bounds, COUNTOF(bytes_bounds), bytes);
}

void metrics_answered(struct metrics *m, enum route route, struct str method, int status, double seconds)
{
    m->requests[route][method_index(method)][status_index(status)]++;
    metrics_seconds(&m->request_seconds[route], seconds);
}

static uint64_t sum(const uint64_t *p, size_t n)
{
    uint64_t s = 0;

    for (size_t i = 0; i < n; i++)
        s += p[i];
    return s;
}

uint64_t metrics_closed(const struct metrics *m)
{
    return sum(m->closed, CLOSE_REASONS);
}

uint64_t metrics_finished(const struct metrics *m)
{
    return sum(&m->requests[0][0][0], ROUTES * METHODS * STATUSES) + sum(m->cut, CLOSE_REASONS);
}

static void family(struct buf *out, const char *name, const char *kind, const char *help)
{
    buf_printf(out, "# HELP flamegate_%s %s\n# TYPE flamegate_%s %s\n", name, help, name, kind);
}

/* Rows of one family stand together in metrics.def; its head is written once. */
static void write_plain(const struct metrics *m, struct buf *out)
{
    struct str last = {NULL, 0};

    for (size_t i = 0; i < METRICS; i++) {
        struct str name = str_of(plain[i].name);
        const char *brace = strchr(plain[i].name, '{');
        if (brace)
            name.len = (size_t)(brace - plain[i].name);
        if (!str_eq(name, last))
            buf_printf(out, "# HELP flamegate_%.*s %s\n# TYPE flamegate_%.*s %s\n", STR_ARG(name), plain[i].help,
                       STR_ARG(name), plain[i].kind);
        last = name;
        buf_printf(out, "flamegate_%s %" PRIu64 "\n", plain[i].name, m->plain[i]);
    }
}

static void write_requests(const struct metrics *m, struct buf *out)
{
    family(out, "requests_total", "counter", "requests answered");
    for (size_t r = 0; r < ROUTES; r++)
        for (size_t w = 0; w < METHODS; w++)
            for (size_t s = 0; s < STATUSES; s++)
                if (m->requests[r][w][s])
                    buf_printf(out, "flamegate_requests_total{route=\"%s\",method=\"%s\",code=\"%d\"} %" PRIu64 "\n",
                               route_names[r], method_names[w], statuses[s], m->requests[r][w][s]);
    family(out, "requests_cut_total", "counter", "requests that ended without an answer");
    for (size_t i = 0; i < CLOSE_REASONS; i++)
        buf_printf(out, "flamegate_requests_cut_total{reason=\"%s\"} %" PRIu64 "\n", close_names[i], m->cut[i]);
    family(out, "connections_closed_total", "counter", "connections closed");
    for (size_t i = 0; i < CLOSE_REASONS; i++)
        buf_printf(out, "flamegate_connections_closed_total{reason=\"%s\"} %" PRIu64 "\n", close_names[i],
                   m->closed[i]);
}

/* Errors that share a reason share a row. */
static void write_refused(const struct metrics *m, struct buf *out)
{
    family(out, "requests_refused_total", "counter", "requests refused as a whole, by why");
    for (size_t e = 0; e < E_COUNT; e++) {
        const char *reason = err_reason((enum err)e);
        uint64_t n = 0;
        size_t first = 0;

        while (strcmp(err_reason((enum err)first), reason) != 0)
            first++;
        for (size_t i = e; first == e && i < E_COUNT; i++)
            n += strcmp(err_reason((enum err)i), reason) == 0 ? m->refused[i] : 0;
        if (n)
            buf_printf(out, "flamegate_requests_refused_total{reason=\"%s\"} %" PRIu64 "\n", reason, n);
    }
}

static void write_profiles(const struct metrics *m, struct buf *out)
{
    family(out, "profiles_received_total", "counter", "profiles seen in requests");
    for (size_t k = 0; k < UPLOAD_KINDS; k++)
        buf_printf(out, "flamegate_profiles_received_total{format=\"%s\"} %" PRIu64 "\n", upload_kind_names[k],
                   m->profiles_received[k]);
    family(out, "profiles_accepted_total", "counter", "profiles stored, or honestly empty");
    for (size_t k = 0; k < UPLOAD_KINDS; k++)
        buf_printf(out, "flamegate_profiles_accepted_total{format=\"%s\"} %" PRIu64 "\n", upload_kind_names[k],
                   m->profiles_accepted[k]);
    family(out, "profiles_refused_total", "counter", "profiles refused for what they are");
    for (size_t k = 0; k < UPLOAD_KINDS; k++)
        for (size_t e = 0; e < E_COUNT; e++)
            if (m->profiles_refused[k][e])
                buf_printf(out,
                           "flamegate_profiles_refused_total{format=\"%s\",reason=\"%s\",error=\"%zu\"} %" PRIu64 "\n",
                           upload_kind_names[k], err_reason((enum err)e), e, m->profiles_refused[k][e]);
    family(out, "profiles_failed_total", "counter", "profiles that we could not store");
    for (size_t e = 0; e < E_COUNT; e++)
        if (m->profiles_failed[e])
            buf_printf(out, "flamegate_profiles_failed_total{reason=\"%s\",error=\"%zu\"} %" PRIu64 "\n",
                       err_reason((enum err)e), e, m->profiles_failed[e]);
}

static void write_tls(const struct metrics *m, struct buf *out)
{
    family(out, "tls_handshake_failures_total", "counter", "TLS connections that never came to a request");
    for (size_t i = 0; i < TLS_FAILURES; i++)
        buf_printf(out, "flamegate_tls_handshake_failures_total{reason=\"%s\"} %" PRIu64 "\n", tls_failure_names[i],
                   m->tls_failures[i]);
    family(out, "tls_cert_not_after_timestamp_seconds", "gauge", "when the certificate in force ends");
    for (size_t i = 0; i < m->n_tls; i++)
        buf_printf(out, "flamegate_tls_cert_not_after_timestamp_seconds{listener=\"%s\"} %" PRId64 "\n",
                   m->tls[i].listener, m->tls[i].not_after);
    family(out, "tls_last_reload_successful", "gauge", "whether the certificate in force is the one in the files");
    for (size_t i = 0; i < m->n_tls; i++)
        buf_printf(out, "flamegate_tls_last_reload_successful{listener=\"%s\"} %d\n", m->tls[i].listener,
                   m->tls[i].reloaded);
}

static void rows(const struct histogram *h, const char *name, const char *labels, const double *bounds, size_t n,
                 struct buf *out)
{
    uint64_t total = 0;
    const char *comma = *labels ? "," : "";

    for (size_t i = 0; i <= n; i++) {
        total += h->buckets[i];
        if (i < n)
            buf_printf(out, "flamegate_%s_bucket{%s%sle=\"%g\"} %" PRIu64 "\n", name, labels, comma, bounds[i], total);
        else
            buf_printf(out, "flamegate_%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", name, labels, comma, total);
    }
    buf_printf(out, "flamegate_%s_sum{%s} %.9g\nflamegate_%s_count{%s} %" PRIu64 "\n", name, labels, h->sum, name,
               labels, total);
}

static void write_bodies(const struct histogram *h, const char *stage, struct buf *out)
{
    char labels[96];

    for (size_t r = 0; r < ROUTES; r++) {
        snprintf(labels, sizeof labels, "route=\"%s\",stage=\"%s\"", route_names[r], stage);
        if (sum(h[r].buckets, BUCKETS_MAX + 1))
            rows(&h[r], "request_body_bytes", labels, bytes_bounds, COUNTOF(bytes_bounds), out);
    }
}

static void write_received(const uint64_t *bytes, const char *stage, struct buf *out)
{
    for (size_t r = 0; r < ROUTES; r++)
        if (bytes[r])
            buf_printf(out, "flamegate_received_bytes_total{route=\"%s\",stage=\"%s\"} %" PRIu64 "\n", route_names[r],
                       stage, bytes[r]);
}

static void write_histograms(const struct metrics *m, const struct metrics_scrape *s, struct buf *out)
{
    char label[64];

    family(out, "request_duration_seconds", "histogram", "from the first byte to the answer written");
    for (size_t r = 0; r < ROUTES; r++) {
        snprintf(label, sizeof label, "route=\"%s\"", route_names[r]);
        if (sum(m->request_seconds[r].buckets, BUCKETS_MAX + 1))
            rows(&m->request_seconds[r], "request_duration_seconds", label, seconds_bounds, COUNTOF(seconds_bounds),
                 out);
    }
    family(out, "request_body_bytes", "histogram", "size of bodies that were read to their end");
    write_bodies(m->body_wire, "wire", out);
    write_bodies(m->body_inflated, "decompressed", out);
    family(out, "store_group_duration_seconds", "histogram", "from handing a group over to its commit");
    snprintf(label, sizeof label, "store=\"%s\"", s->store);
    rows(&m->group_seconds, "store_group_duration_seconds", label, seconds_bounds, COUNTOF(seconds_bounds), out);
    family(out, "loop_lag_seconds", "histogram", "how late the loop comes to a timer");
    rows(&m->loop_lag, "loop_lag_seconds", "", seconds_bounds, COUNTOF(seconds_bounds), out);
}

void metrics_text(const struct metrics *m, const struct metrics_scrape *s, struct buf *out)
{
    write_plain(m, out);
    write_requests(m, out);
    write_refused(m, out);
    family(out, "received_bytes_total", "counter", "bytes of request bodies");
    write_received(m->received_wire, "wire", out);
    write_received(m->received_inflated, "decompressed", out);
    write_profiles(m, out);
    if (m->n_tls)
        write_tls(m, out);
    family(out, "connections", "gauge", "open connections");
    for (size_t i = 0; i < s->n_connection_states; i++)
        buf_printf(out, "flamegate_connections{state=\"%s\"} %" PRIu64 "\n", s->connection_states[i],
                   m->connections[i]);
    family(out, "store_healthy", "gauge", "whether the last group could be stored");
    buf_printf(out, "flamegate_store_healthy{store=\"%s\"} %d\n", s->store, s->store_healthy);
    family(out, "store_groups_total", "counter", "groups handed to the store, by how they ended");
    for (size_t i = 0; i < OUTCOMES; i++)
        buf_printf(out, "flamegate_store_groups_total{store=\"%s\",outcome=\"%s\"} %" PRIu64 "\n", s->store,
                   outcome_names[i], m->groups[i]);
    family(out, "memory_bytes", "gauge", "memory by account");
    for (size_t i = 0; i < s->n_accounts; i++)
        buf_printf(out, "flamegate_memory_bytes{account=\"%s\"} %" PRIu64 "\n", s->accounts[i], s->account_bytes[i]);
    write_histograms(m, s, out);
    family(out, "build_info", "gauge", "always 1");
    buf_printf(out, "flamegate_build_info{version=\"%s\"} 1\n", s->version);
}
