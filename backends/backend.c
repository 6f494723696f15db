/* The array of stores, the ladder of retention classes, and what a store says. */
#include "backends/backend.h"

#include <stdarg.h>
#include <stdio.h>

#include "backends/null.h"
#include "backends/postgres.h"
#include "backends/redis.h"
#include "backends/sqlite.h"

static const struct backend *const all[] = {&backend_sqlite, &backend_postgres, &backend_null};

static const struct share_store_ops *const apart[] = {&share_store_redis};

static const uint16_t ladder[] = {1, 3, 7, 15, 30, 90};

const struct backend *backend_find(struct str address, struct str *rest)
{
    if (str_starts(address, STR("postgresql:"))) { /* libpq's other spelling */
        *rest = (struct str){address.p + strlen("postgresql:"), address.len - strlen("postgresql:")};
        return &backend_postgres;
    }
    for (size_t i = 0; i < COUNTOF(all); i++) {
        struct str scheme = str_of(all[i]->write->scheme);

        if (!str_starts(address, scheme) || address.len == scheme.len || address.p[scheme.len] != ':')
            continue;
        *rest = (struct str){address.p + scheme.len + 1, address.len - scheme.len - 1};
        return all[i];
    }
    return NULL;
}

const struct share_store_ops *share_store_find(struct str address, struct str *rest)
{
    for (size_t i = 0; i < COUNTOF(apart); i++) {
        struct str scheme = str_of(apart[i]->scheme);

        if (!str_starts(address, scheme) || address.len == scheme.len || address.p[scheme.len] != ':')
            continue;
        *rest = (struct str){address.p + scheme.len + 1, address.len - scheme.len - 1};
        return apart[i];
    }
    return NULL;
}

enum err share_store_check(struct str address, struct fault *f)
{
    struct str rest;
    const struct share_store_ops *o = share_store_find(address, &rest);

    return o ? o->check(rest, f) : E_OK;
}

void store_log(const struct store_host *host, int level, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    host->log(host->ctx, level, text);
}

uint16_t retention_class(uint32_t days)
{
    for (size_t i = 0; i < COUNTOF(ladder); i++)
        if (days <= ladder[i])
            return ladder[i];
    return ladder[COUNTOF(ladder) - 1];
}
