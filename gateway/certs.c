/* Certificates of listeners. */
#include "gateway/certs.h"

#include "gateway/log.h"
#include "gateway/tls.h"

static struct tls_context *load(const struct conf_address *a, struct fault *f)
{
    struct tls_files files = {a->cert_file, a->key_file, a->client_ca_file, a->client_optional};

    return tls_context_new(&files, f);
}

static void take(struct listener *l, struct tls_context *c)
{
    int64_t left = tls_context_not_after(c) - app_now_ns() / 1000000000;

    tls_context_free(l->tls);
    l->tls = c;
    l->row->not_after = tls_context_not_after(c);
    log_at(left > 0 ? LOG_INFO : LOG_WARN, left > 0 ? "certificate loaded" : "the certificate has expired",
           LOG_TEXT("listener", l->address), LOG_NUM("days_left", left / 86400));
}

bool certs_open(struct listener *l)
{
    struct metrics *m = &l->app->metrics;
    struct fault f = {.err = E_OK};

    const struct conf_address *a = &l->app->conf->listen[l->nth];
    if (l->where == ROUTE_ADMIN || !a->cert_file)
        return true;
    struct tls_context *c = load(a, &f);
    if (!c || m->n_tls == TLS_ROWS) {
        log_at(LOG_ERROR, "no TLS", LOG_TEXT("listener", l->address), LOG_TEXT("why", c ? "too many" : f.text));
        tls_context_free(c);
        return false;
    }
    l->row = &m->tls[m->n_tls++];
    *l->row = (struct tls_row){.listener = l->address, .reloaded = true};
    take(l, c);
    return true;
}

void certs_reload(struct listeners *all)
{
    for (size_t i = 0; i < all->n; i++) {
        struct listener *l = &all->all[i];
        struct fault f = {.err = E_OK};
        struct tls_context *c = l->tls ? load(&l->app->conf->listen[l->nth], &f) : NULL;
        if (!l->tls)
            continue;
        l->row->reloaded = c != NULL;
        if (c)
            take(l, c);
        else
            log_at(LOG_WARN, "certificate not reloaded, the old one stays", LOG_TEXT("listener", l->address),
                   LOG_TEXT("why", f.text));
    }
}

void certs_close(struct listeners *all)
{
    for (size_t i = 0; i < all->n; i++) {
        tls_context_free(all->all[i].tls);
        all->all[i].tls = NULL;
    }
}

bool certs_check(const struct conf *c, struct fault *f)
{
    for (size_t i = 0; i < c->n_listen; i++) {
        struct tls_context *t = c->listen[i].cert_file ? load(&c->listen[i], f) : NULL;
        if (c->listen[i].cert_file && !t)
            return false;
        tls_context_free(t);
    }
    return true;
}
