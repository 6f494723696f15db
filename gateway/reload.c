/* Reloading: a new configuration, keyring or certificate replaces the old one whole, or not at all. */
#include "gateway/reload.h"

#include <stdlib.h>

#include "backends/hour_runner.h"
#include "gateway/certs.h"
#include "gateway/log.h"
#include "gateway/notify.h"

static void load_keys(struct reload *r)
{
    struct app *app = r->app;
    struct fault f = {.err = E_OK};

    struct keyring *next = keyring_load(app->conf->keys_file, &f);
    app->metrics.plain[M_keys_reloaded] = next != NULL;
    if (!next) {
        log_at(LOG_WARN, app->keys ? "keys not reloaded, the old ones stay" : "no keys: nobody is let in",
               LOG_TEXT("why", f.text));
        return;
    }
    keyring_free(app->keys);
    app->keys = next;
    log_at(LOG_INFO, "keys loaded", LOG_TEXT("file", app->conf->keys_file), LOG_NUM("keys", keyring_count(next)));
}

/* Equal on replicas that run with equal settings. Keyed: a secret in it cannot be guessed from it. */
static uint64_t fingerprint(const struct app *app)
{
    struct buf text = {0};

    conf_text(app->conf, &text);
    uint64_t h = hash64(&app->hash_key, text.len ? text.p : "", text.len) >> 16; /* a double holds it exactly */
    buf_free(&text);
    return h;
}

static void conf_loaded(struct app *app)
{
    app->metrics.plain[M_config_reloaded] = 1;
    app->metrics.plain[M_config_reload_time] = (uint64_t)(app_now_ns() / 1000000000);
    app->metrics.plain[M_config_hash] = fingerprint(app);
}

/* What the configuration in force names. */
static void watch_files(struct reload *r)
{
    const struct conf *c = r->app->conf;
    struct watch next = {.n = 0};

    watch_add(&next, WATCH_CONF, r->conf_path ? r->conf_path : getenv("FLAMEGATE_CONFIG"));
    watch_add(&next, WATCH_KEYS, c->keys_file);
    for (size_t i = 0; i < c->n_secret_files; i++)
        watch_add(&next, WATCH_CONF, c->secret_files[i]);
    for (size_t i = 0; i < c->n_listen; i++) {
        watch_add(&next, WATCH_CERTS, c->listen[i].cert_file);
        watch_add(&next, WATCH_CERTS, c->listen[i].key_file);
        watch_add(&next, WATCH_CERTS, c->listen[i].client_ca_file);
    }
    watch_replace(&r->watch, &next);
}

void reload_init(struct reload *r, struct app *app, struct listeners *listeners, const char *conf_path)
{
    *r = (struct reload){.app = app, .conf_path = conf_path, .listeners = listeners};
    conf_loaded(app);
    watch_files(r);
    load_keys(r);
}

static void take_conf(struct reload *r, struct conf *next)
{
    struct conf *old = r->app->conf;

    r->app->conf = next;
    watch_files(r); /* compares with paths that the old one holds */
    conf_free(old);
    if (r->app->hours)
        hour_runner_raw_days(r->app->hours, next->retention_raw_days);
    log_setup(next->log_level, next->log_format == LOG_JSON, (int64_t)next->log_fold_ms * 1000000);
    conf_loaded(r->app);
    log_at(LOG_INFO, "configuration reloaded", LOG_TEXT("file", r->conf_path ? r->conf_path : "default"));
}

static void load_conf(struct reload *r)
{
    struct app *app = r->app;
    struct conf_errors errors = {0};
    struct buf fixed = {0};
    struct conf *next = conf_load(r->conf_path, &errors);

    if (next)
        conf_restart_only(app->conf, next, &fixed);
    if (next && !conf_keep_restart(next, app->conf)) {
        conf_free(next);
        next = NULL;
        buf_str(&errors.text, STR("out of memory"));
    }
    if (!next) {
        app->metrics.plain[M_config_reloaded] = 0;
        log_at(LOG_WARN, "configuration not reloaded, the old one stays", LOG_STR("why", buf_view(&errors.text)));
    } else {
        if (fixed.len)
            log_at(LOG_WARN, "takes effect at the next start only", LOG_STR("options", buf_view(&fixed)));
        take_conf(r, next);
    }
    buf_free(&fixed);
    buf_free(&errors.text);
}

void reload_all(struct reload *r)
{
    notify_reloading();
    watch_mark(&r->watch, WATCH_CONF);
    watch_mark(&r->watch, WATCH_KEYS);
    watch_mark(&r->watch, WATCH_CERTS);
    load_conf(r);
    load_keys(r);
    certs_reload(r->listeners);
    notify("READY=1");
}

void reload_tick(struct reload *r)
{
    unsigned changed = watch_look(&r->watch);

    if (changed & 1u << WATCH_CONF)
        load_conf(r);
    if (changed & 1u << WATCH_KEYS)
        load_keys(r);
    if (changed & 1u << WATCH_CERTS)
        certs_reload(r->listeners);
}
