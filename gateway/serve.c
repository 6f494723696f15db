/*
 * The process. Start: ledger, lanes, store, then sockets. SIGTERM: not ready, still accepting for drain_delay, then no
 * listener, idle connections closed, what is under way finished within shutdown_timeout, marks written, store closed,
 * end. A second signal ends it at once.
 */
#include "gateway/serve.h"

#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "backends/hour_runner.h"
#include "backends/spool.h"
#include "gateway/certs.h"
#include "gateway/conn.h"
#include "gateway/crowd.h"
#include "gateway/hashkey.h"
#include "gateway/ingest/census.h"
#include "gateway/ingest/ingest.h"
#include "gateway/ingest/submit.h"
#include "gateway/ingest/throttle.h"
#include "gateway/listen.h"
#include "gateway/log.h"
#include "gateway/notify.h"
#include "gateway/reload.h"
#include "gateway/scrape.h"
#include "gateway/secure.h"

enum {
    TICK_MS = 25,
    TICKS_PER_SECOND = 1000 / TICK_MS,
    TICKS_PER_LOOK = WATCH_LOOK_MS / TICK_MS,
    TICKS_PER_MINUTE = 60 * TICKS_PER_SECOND,
    STUCK_MS = 10000, /* behind shutdown_timeout */
    INGEST_QUEUE = 1024,
    QUERY_QUEUE = 64,
    QUERY_THREADS = 2,
    UPLOADS_QUEUE_BYTES = 4 << 20,
};

struct server {
    struct app app; /* first: app_conn_closed casts */
    uv_loop_t loop;
    struct store_host host;
    struct listeners listeners;
    struct reload reload;
    uv_signal_t on_term, on_int, on_hup;
    uv_timer_t tick, drain;
    uint64_t ticks, last_tick_ns, watchdog_ms;
    bool closing_store;
    int exit_code;
};

int64_t app_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void host_log(void *ctx, int level, const char *text)
{
    (void)ctx;
    log_at(level, "store", LOG_TEXT("message", text));
}

static void host_account(void *ctx, const char *account, int64_t delta)
{
    struct app *app = ctx;

    ledger_charge_named(&app->ledger, account, delta);
}

/* The last thing: every handle goes, so the loop ends. */
static void on_store_closed(void *ctx)
{
    struct server *s = ctx;

    if (s->app.share_ops)
        s->app.share_ops->close(s->app.share_store);
    uploads_close(s->app.uploads);
    lane_close(s->app.ingest_lane);
    lane_close(s->app.query_lane);
    if (s->app.tls_lane)
        lane_close(s->app.tls_lane);
    turn_close(&s->app.turn);
    uv_close((uv_handle_t *)&s->on_term, NULL);
    uv_close((uv_handle_t *)&s->on_int, NULL);
    uv_close((uv_handle_t *)&s->on_hup, NULL);
    uv_close((uv_handle_t *)&s->tick, NULL);
    uv_close((uv_handle_t *)&s->drain, NULL);
}

/* Whether all is finished; looked at whenever something has ended, and on every tick. */
static void check_finished(struct server *s)
{
    struct app *app = &s->app;

    if (!app->finishing || s->closing_store || app->n_conns || app->n_requests || !submit_idle(app->submit))
        return;
    s->closing_store = true;
    hour_runner_stop(app->hours);
    app->hours = NULL;
    app->write->close(app->sink, on_store_closed, s);
}

void app_conn_closed(struct app *app)
{
    struct server *s = (struct server *)app;

    listen_resume(&s->listeners);
}

static void finish(struct server *s)
{
    s->app.finishing = true;
    listen_stop(&s->listeners);
    conn_close_all(&s->app, false);
    log_at(LOG_INFO, "finishing", LOG_NUM("connections", s->app.n_conns));
}

/* A store that does not come back. */
static void on_stuck(uv_timer_t *t)
{
    struct server *s = t->data;

    log_at(LOG_ERROR, "ending without the store", LOG_NUM("requests", s->app.n_requests));
    log_flush(true);
    _exit(1);
}

static void on_force(uv_timer_t *t)
{
    struct server *s = t->data;

    uv_timer_start(t, on_stuck, STUCK_MS, 0);

    log_at(LOG_WARN, "cutting what is left", LOG_NUM("connections", s->app.n_conns));
    conn_close_all(&s->app, true);
}

static void on_drained(uv_timer_t *t)
{
    struct server *s = t->data;

    finish(s);
    uv_timer_start(&s->drain, on_force, s->app.conf->shutdown_ms, 0);
}

static void on_end(uv_signal_t *h, int signum)
{
    struct server *s = h->data;

    if (s->app.draining) {
        log_at(LOG_WARN, "ending at once", LOG_NUM("signal", signum));
        log_flush(true);
        _exit(1);
    }
    s->app.draining = true;
    notify("STOPPING=1");
    uint64_t ms = signum == SIGINT ? 0 : s->app.conf->drain_ms;
    log_at(LOG_INFO, "draining", LOG_NUM("signal", signum), LOG_NUM("delay_ms", ms));
    uv_timer_start(&s->drain, on_drained, ms, 0);
}

static void on_hangup(uv_signal_t *h, int signum)
{
    struct server *s = h->data;

    (void)signum;
    reload_all(&s->reload);
}

static void on_tick(uv_timer_t *t)
{
    struct server *s = t->data;
    struct app *app = &s->app;
    uint64_t now = uv_hrtime();
    int64_t late = (int64_t)(now - s->last_tick_ns) - (int64_t)TICK_MS * 1000000;

    metrics_seconds(&app->metrics.loop_lag, late > 0 ? (double)late / 1e9 : 0);
    s->last_tick_ns = now;
    s->ticks++;
    admit_tick(app->admit, uv_now(app->loop));
    if (s->ticks % TICKS_PER_LOOK == 0)
        reload_tick(&s->reload);
    if (s->ticks % TICKS_PER_SECOND == 0) {
        submit_tick(app->submit);
        log_flush(false);
        listen_resume(&s->listeners);
    }
    if (s->watchdog_ms && s->ticks % (s->watchdog_ms / TICK_MS + 1) == 0)
        notify("WATCHDOG=1");
    if (s->ticks % TICKS_PER_MINUTE == 0 && !s->closing_store)
        app->write->expire(app->sink, app_now_ns());
    if (app->finishing)
        conn_close_all(app, false);
    check_finished(s);
}

/* Memory that was used is used again, but what is large goes back, so that resident memory follows the ledger. */
static void tune_process(struct app *app)
{
    const struct conf *c = app->conf;
    struct rlimit l;

    mallopt(M_ARENA_MAX, 2);
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, (int)(c->memory / 8 > (64 << 20) ? (64 << 20) : c->memory / 8));
    signal(SIGPIPE, SIG_IGN);
    if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
        l.rlim_cur = l.rlim_max;
        setrlimit(RLIMIT_NOFILE, &l);
        app->descriptors = l.rlim_cur;
        if (l.rlim_cur < c->max_connections + 64)
            log_at(LOG_WARN, "fewer file descriptors than limits.connections", LOG_NUM("descriptors", l.rlim_cur));
    }
}

/* Function shares live in the file of their profiles, where the store has such files; or in a store of their own. */
static bool open_shares(struct server *s, struct fault *f)
{
    struct app *app = &s->app;
    struct str rest;

    if (s->host.shares) {
        app->share_reader = app->backend->shares;
        app->share_store = (struct share_store *)app->store;
    }
    app->share_ops = share_store_find(str_of(app->conf->shares), &rest);
    if (!app->share_ops)
        return true;
    app->share_store = app->share_ops->open(&s->host, rest, f);
    app->share_reader = app->share_ops->read;
    return app->share_store != NULL;
}

static bool open_uploads(struct server *s, struct fault *f)
{
    struct app *app = &s->app;
    const size_t queue = app->conf->memory / 64;
    struct uploads_options o = {
        .data_dir = app->conf->data_dir,
        .key = &app->hash_key,
        .keep = app->conf->uploads_keep,
        .queue_bytes = queue < UPLOADS_QUEUE_BYTES ? queue : UPLOADS_QUEUE_BYTES,
        .log = host_log,
        .ctx = app,
    };

    uv_random(NULL, NULL, &o.writer, sizeof o.writer, 0, NULL);
    app->uploads = uploads_open(&o, str_of(app->conf->shares), f);
    return app->uploads != NULL;
}

/* Where the store is away from this machine: what it cannot take now is kept here. */
static bool open_spool(struct server *s, struct fault *f)
{
    struct app *app = &s->app;
    struct buf dir = {0};

    if (!app->backend->remote || !app->conf->spool_max_bytes)
        return true;
    buf_printf(&dir, "%s/spool", app->conf->data_dir);
    buf_char(&dir, '\0');
    struct spool_options o = {
        .dir = dir.p, .after_ms = app->conf->spool_after_ms, .max_bytes = app->conf->spool_max_bytes};
    struct sample_store *spool = dir.failed ? NULL : spool_open(&s->host, &o, app->backend->write, app->store, f);
    if (dir.failed)
        fault_set(f, E_NO_MEMORY, NULL);
    buf_free(&dir);
    if (!spool)
        return false;
    app->write = &spool_ops;
    app->sink = app->spool = spool;
    return true;
}

static bool open_store(struct server *s, struct fault *f)
{
    struct app *app = &s->app;
    struct str rest;
    bool apart = share_store_find(str_of(app->conf->shares), &rest) != NULL;
    uint64_t minutes = apart ? ledger_share_minutes(app->conf->memory) : 0;

    s->host = (struct store_host){
        .loop = app->loop,
        .data_dir = app->conf->data_dir,
        .key = &app->hash_key,
        .originals_max_bytes = app->conf->originals_max_bytes,
        .resend_ms = app->conf->resend_ms,
        .symbols_memory = ledger_share_symbols(app->conf->memory) - minutes,
        .minutes_memory = minutes,
        .schema_fixed = !app->conf->migrate_auto,
        .log = host_log,
        .account = host_account,
        .ctx = app,
    };
    app->backend = backend_find(str_of(app->conf->samples), &rest);
    if (!app->backend) {
        fault_set(f, E_INTERNAL, "samples: no store is called %s", app->conf->samples);
        return false;
    }
    s->host.shares = app->backend->shares && str_starts(str_of(app->conf->shares), STR("sqlite:"));
    app->store = app->sink = app->backend->write->open(&s->host, rest, f);
    app->write = app->backend->write;
    return app->store && open_spool(s, f) && open_shares(s, f) && open_uploads(s, f);
}

/* What only TLS listeners need. */
static bool build_tls(struct app *app)
{
    bool any = false;

    for (size_t i = 0; i < app->conf->n_listen; i++)
        any |= app->conf->listen[i].cert_file != NULL;
    if (!any)
        return true;
    app->cipher_buffer = malloc(SECURE_READ_BYTES);
    app->tls_lane = lane_new(app->loop, "fg-tls", 1, app->conf->max_connections);
    return app->cipher_buffer && app->tls_lane;
}

static bool build_parts(struct server *s, struct fault *f)
{
    struct app *app = &s->app;
    size_t share = ledger_share_requests(app->conf->memory);

    ledger_init(&app->ledger, app->conf->memory);
    turn_init(&app->turn, app->loop);
    app->read_buffer = malloc(READ_BUFFER_BYTES);
    app->crowd = crowd_new();
    app->census = census_new();
    app->throttle = throttle_new();
    app->admit = admit_new(share, INGEST_FIRST_BYTES, ingest_max_bytes(app->conf), app->conf->admission_ms,
                           &ingest_admit_events);
    app->ingest_lane = lane_new(app->loop, "fg-ingest", 1, INGEST_QUEUE);
    app->query_lane = lane_new(app->loop, "fg-query", QUERY_THREADS, QUERY_QUEUE);
    app->submit = submit_new(app, ingest_stored);
    if (build_tls(app) && app->read_buffer && app->crowd && app->census && app->throttle && app->admit &&
        app->ingest_lane && app->query_lane && app->submit)
        return true;
    fault_set(f, E_NO_MEMORY, NULL);
    return false;
}

static void start_timers(struct server *s)
{
    uv_loop_t *loop = s->app.loop;

    uv_signal_init(loop, &s->on_term);
    uv_signal_init(loop, &s->on_int);
    uv_signal_init(loop, &s->on_hup);
    uv_timer_init(loop, &s->tick);
    uv_timer_init(loop, &s->drain);
    s->on_term.data = s->on_int.data = s->on_hup.data = s->tick.data = s->drain.data = s;
    uv_signal_start(&s->on_term, on_end, SIGTERM);
    uv_signal_start(&s->on_int, on_end, SIGINT);
    uv_signal_start(&s->on_hup, on_hangup, SIGHUP);
    s->last_tick_ns = uv_hrtime();
    uv_timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
}

/* What merging an hour may take is a part of what queries may. */
static bool start_hours(struct app *app)
{
    const struct server *s = (const struct server *)app;

    if (!app->backend->hours)
        return true;
    struct hour_options o = {
        .memory = ledger_share_queries(app->conf->memory) / 4,
        .raw_days = app->conf->retention_raw_days,
        .share_ops = app->share_ops,
        .share_store = app->share_store,
    };
    app->hours = hour_runner_start(app->backend, app->store, &s->host, &o);
    return app->hours != NULL;
}

static bool start(struct server *s, const char *conf_path, const char *port_file)
{
    struct app *app = &s->app;
    struct fault f = {.err = E_OK};

    bool ok = hashkey_load(app->conf->hash_key_file, &app->hash_key, &f) == E_OK && build_parts(s, &f) &&
              open_store(s, &f) && start_hours(app);
    if (!ok) {
        log_at(LOG_ERROR, "cannot start", LOG_TEXT("why", f.text));
        return false;
    }
    app->write->expire(app->sink, app_now_ns());
    reload_init(&s->reload, app, &s->listeners, conf_path);
    start_timers(s);
    if (!listen_start(&s->listeners, app))
        return false;
    app->ready = true;
    if (port_file && !listen_write_ports(&s->listeners, port_file)) {
        log_at(LOG_ERROR, "cannot write the port file", LOG_TEXT("file", port_file));
        return false;
    }
    return true;
}

static void take_down(struct server *s)
{
    struct app *app = &s->app;

    submit_free(app->submit);
    admit_free(app->admit);
    keyring_free(app->keys);
    conf_free(app->conf);
    free(app->read_buffer);
    crowd_free(app->crowd);
    census_free(app->census);
    throttle_free(app->throttle);
    free(app->cipher_buffer);
    certs_close(&s->listeners);
    uv_loop_close(&s->loop);
}

int serve(struct conf *conf, const char *conf_path, const char *port_file)
{
    static struct server s; /* too large for a stack, and there is one */

    s.app.loop = &s.loop;
    s.app.conf = conf;
    log_setup(conf->log_level, conf->log_format == LOG_JSON, (int64_t)conf->log_fold_ms * 1000000);
    tune_process(&s.app);
    if (uv_loop_init(&s.loop) != 0 || !start(&s, conf_path, port_file))
        return 1;
    log_at(LOG_INFO, "serving", LOG_TEXT("version", GATEWAY_VERSION), LOG_TEXT("samples", s.app.backend->write->scheme),
           LOG_NUM("pid", getpid()));
    notify("READY=1");
    s.watchdog_ms = notify_watchdog_ms();
    uv_run(&s.loop, UV_RUN_DEFAULT);
    take_down(&s);
    log_flush(true);
    log_at(LOG_INFO, "ended", LOG_NUM("code", s.exit_code));
    return s.exit_code;
}
