/* /metrics: fills the gauges, then writes everything down. */
#include "gateway/scrape.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "backends/hour_runner.h"
#include "backends/spool.h"
#include "gateway/conn.h"
#include "gateway/ingest/submit.h"

static void fill_spool(struct app *app)
{
    uint64_t *g = app->metrics.plain;
    struct spool_stats s = {0};

    if (app->spool)
        spool_stats(app->spool, &s);
    g[M_spool_bytes] = s.bytes;
    g[M_spool_groups] = s.groups;
    g[M_spool_records] = s.records;
    g[M_spool_full] = s.full;
    g[M_spool_in_use] = s.in_use;
    g[M_spool_corrupt] = s.corrupt;
    g[M_spool_spooled] = s.outcomes[SPOOL_OUTCOME_spooled];
    g[M_spool_replayed] = s.outcomes[SPOOL_OUTCOME_replayed];
    g[M_spool_put_off] = s.outcomes[SPOOL_OUTCOME_put_off];
    g[M_spool_refused] = s.outcomes[SPOOL_OUTCOME_full];
    g[M_spool_no_space] = s.outcomes[SPOOL_OUTCOME_no_space];
    g[M_spool_failed] = s.outcomes[SPOOL_OUTCOME_failed];
}

static void fill_hours(struct app *app)
{
    uint64_t *g = app->metrics.plain;
    struct hour_stats s = {0};

    if (app->hours)
        hour_runner_stats(app->hours, &s);
    g[M_hours_compacted] = s.compacted;
    g[M_hours_failed] = s.failed;
    g[M_hours_pending] = s.pending;
    g[M_hours_looked] = s.looked_s;
    g[M_hours_unshared] = s.unshared;
    g[M_hours_profiles] = s.profiles;
    g[M_hours_before] = s.raw_bytes;
    g[M_hours_after] = s.bytes;
}

static void fill_shares(struct app *app)
{
    uint64_t *g = app->metrics.plain;
    struct share_stats s = {.healthy = app->share_reader != NULL};

    if (app->share_ops)
        app->share_ops->stats(app->share_store, &s);
    g[M_shares_healthy] = s.healthy;
    g[M_shares_flushed] = s.flushed;
    g[M_shares_dropped] = s.dropped;
    g[M_shares_failed] = s.failed;
    g[M_shares_emptied] = s.emptied;
}

static void fill_uploads(struct app *app)
{
    uint64_t *g = app->metrics.plain;
    struct uploads_stats s;

    uploads_stats(app->uploads, &s);
    g[M_ledger_kept] = s.kept;
    g[M_ledger_dropped] = s.dropped;
    g[M_ledger_failed] = s.failed;
    g[M_ledger_waiting] = s.waiting;
    g[M_ledger_healthy] = s.healthy;
}

static void fill_gauges(struct app *app)
{
    uint64_t *g = app->metrics.plain;

    g[M_inflight_requests] = g[M_requests_received] - metrics_finished(&app->metrics);
    g[M_inflight_bytes] = admit_granted(app->admit);
    g[M_inflight_bytes_limit] = ledger_share_requests(app->ledger.limit);
    g[M_memory_limit] = app->ledger.limit;
    g[M_admission_waiting] = admit_waiting(app->admit);
    g[M_ingest_queue] = lane_waiting(app->ingest_lane);
    g[M_query_queue] = lane_waiting(app->query_lane);
    g[M_store_queue] = submit_waiting(app->submit);
    g[M_ingest_capacity] = lane_capacity(app->ingest_lane);
    g[M_query_capacity] = lane_capacity(app->query_lane);
    fill_spool(app);
    fill_hours(app);
    fill_shares(app);
    fill_uploads(app);
    g[M_keys] = app->keys ? keyring_count(app->keys) : 0;
    g[M_ready] = app->ready && !app->draining && app->write->healthy(app->sink);
}

static void process_row(struct buf *out, const char *name, const char *kind, const char *help, double value)
{
    buf_printf(out, "# HELP process_%s %s\n# TYPE process_%s %s\nprocess_%s %.3f\n", name, help, name, kind, name,
               value);
}

static size_t open_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    size_t n = 0;

    if (!d)
        return 0;
    while (readdir(d))
        n++;
    closedir(d);
    return n - 3; /* ".", ".." and the folder itself */
}

/* When the process began, by the kernel: the 22nd field of stat, in ticks since the machine did. */
static double start_seconds(void)
{
    static double start;
    char line[1024];
    unsigned long long ticks = 0;
    struct timespec now, up;

    FILE *f = start > 0 ? NULL : fopen("/proc/self/stat", "re");
    if (!f)
        return start;
    const char *behind = fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
    fclose(f);
    if (!behind ||
        sscanf(behind + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &ticks) != 1)
        return 0;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &up);
    start = (double)(now.tv_sec - up.tv_sec) + (double)(now.tv_nsec - up.tv_nsec) / 1e9 +
            (double)ticks / (double)sysconf(_SC_CLK_TCK);
    return start;
}

/* The part of process_* that people have on their dashboards. */
static void write_process(struct buf *out)
{
    struct rusage u;
    struct rlimit fds = {0};
    unsigned long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f && fscanf(f, "%lu %lu", &size, &resident) == 2) {
        double page = (double)sysconf(_SC_PAGESIZE);
        process_row(out, "resident_memory_bytes", "gauge", "resident memory", (double)resident * page);
        process_row(out, "virtual_memory_bytes", "gauge", "virtual memory", (double)size * page);
    }
    if (f)
        fclose(f);
    getrusage(RUSAGE_SELF, &u);
    process_row(out, "cpu_seconds_total", "counter", "user and system time",
                (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                    (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
    process_row(out, "open_fds", "gauge", "open file descriptors", (double)open_fds());
    getrlimit(RLIMIT_NOFILE, &fds);
    process_row(out, "max_fds", "gauge", "file descriptors that may be open", (double)fds.rlim_cur);
    process_row(out, "start_time_seconds", "gauge", "when the process began", start_seconds());
}

void scrape(struct app *app, struct reply *out)
{
    uint64_t bytes[LEDGER_ACCOUNTS_N];
    struct metrics_scrape s = {
        .connection_states = conn_state_names,
        .n_connection_states = CONN_CLOSING,
        .store = app->backend->write->scheme,
        .version = GATEWAY_VERSION,
        .accounts = ledger_names,
        .account_bytes = bytes,
        .n_accounts = LEDGER_ACCOUNTS_N,
        .store_healthy = app->backend->write->healthy(app->store),
    };

    fill_gauges(app);
    for (size_t i = 0; i < LEDGER_ACCOUNTS_N; i++)
        bytes[i] = ledger_used(&app->ledger, (enum ledger_account)i);
    bytes[LEDGER_requests] = admit_granted(app->admit);
    out->status = 200;
    out->content_type = "text/plain; version=0.0.4; charset=utf-8";
    metrics_text(&app->metrics, &s, &out->body);
    write_process(&out->body);
}
