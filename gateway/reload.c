/* Reloading: a new configuration or keyring replaces the old one whole, or not at all. */
#include "gateway/reload.h"

#include "gateway/log.h"

static void load_keys(struct reload *r)
{
    struct app *app = r->app;
    struct fault f = {.err = E_OK};
    struct stat seen = {0};

    if (stat(app->conf->keys_file, &seen) != 0)
        seen = (struct stat){0};
    r->keys_seen = seen;
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

static void conf_loaded(struct app *app)
{
    app->metrics.plain[M_config_reloaded] = 1;
    app->metrics.plain[M_config_reload_time] = (uint64_t)(app_now_ns() / 1000000000);
}

void reload_init(struct reload *r, struct app *app, const char *conf_path)
{
    *r = (struct reload){.app = app, .conf_path = conf_path};
    conf_loaded(app);
    load_keys(r);
}

void reload_all(struct reload *r)
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
        conf_free(app->conf);
        app->conf = next;
        log_setup(next->log_level, next->log_format == LOG_JSON);
        conf_loaded(app);
        log_at(LOG_INFO, "configuration reloaded", LOG_TEXT("file", r->conf_path ? r->conf_path : "default"));
    }
    buf_free(&fixed);
    buf_free(&errors.text);
    load_keys(r);
}

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

void reload_tick(struct reload *r)
{
    struct stat now;

    if (stat(r->app->conf->keys_file, &now) != 0)
        now = (struct stat){0};
    if (!same(&now, &r->keys_seen))
        load_keys(r);
}
