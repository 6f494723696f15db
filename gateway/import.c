/* Puts group by group, each under its own name and with its own marks, so that doing it again changes nothing. One
 * thread: the loop of the store runs until a group is in. */
#include "gateway/import.h"

#include <stdio.h>

#include "backends/day.h"
#include "backends/sqlite_walk.h"
#include "gateway/app.h"
#include "gateway/hashkey.h"

enum { TRY_AGAIN_MS = 500, TRIES = 240 };

struct import {
    uv_loop_t loop;
    struct hash_key key;
    struct store_host host;
    const struct backend *to;
    struct sample_store *store;
    bool put_done, closed;
    int32_t today, day;
    uint64_t profiles, bad, expired, hours_only;
};

static void host_log(void *ctx, int level, const char *text)
{
    (void)ctx;
    if (level == 0)
        fprintf(stderr, "%s\n", text);
}

static void host_account(void *ctx, const char *account, int64_t delta)
{
    (void)ctx;
    (void)account;
    (void)delta;
}

static void on_put(struct group *g)
{
    struct import *im = g->owner;

    im->put_done = true;
}

static void on_closed(void *ctx)
{
    struct import *im = ctx;

    im->closed = true;
}

/* false: some row has to come again. */
static bool put_once(struct import *im, struct group *g)
{
    im->put_done = false;
    g->done = on_put;
    g->owner = im;
    im->to->write->put(im->store, g);
    while (!im->put_done)
        uv_run(&im->loop, UV_RUN_ONCE);
    for (uint16_t i = 0; i < g->n; i++)
        if (g->results[i] == PUT_AGAIN)
            return false;
    return true;
}

static void on_paused(uv_timer_t *t)
{
    uv_close((uv_handle_t *)t, NULL);
}

/* The store may be coming back meanwhile, for which its loop has to run. */
static void pause_for(struct import *im, uint64_t ms)
{
    uv_timer_t t;

    uv_timer_init(&im->loop, &t);
    uv_timer_start(&t, on_paused, ms, 0);
    while (uv_is_active((uv_handle_t *)&t))
        uv_run(&im->loop, UV_RUN_ONCE);
    uv_run(&im->loop, UV_RUN_NOWAIT); /* closes t */
}

static void show_day(struct import *im, const struct group *g)
{
    char text[DAY_TEXT];

    if (im->day == g->day)
        return;
    im->day = g->day;
    day_format(g->day, text);
    fprintf(stderr, "%s\n", text);
}

static enum err on_group(void *ctx, struct group *g, uint64_t told, struct fault *f)
{
    struct import *im = ctx;
    int tries = 0;

    if (day_expired(g->day, g->class_days, im->today)) {
        im->expired += g->n;
        return E_OK;
    }
    show_day(im, g);
    while (!put_once(im, g)) {
        if (++tries == TRIES)
            return fault_set(f, E_STORE_DOWN,
                             "the store that is written to does not take it; import again when it does");
        pause_for(im, TRY_AGAIN_MS);
    }
    for (uint16_t i = 0; i < g->n; i++) {
        bool stored = g->results[i] == PUT_STORED;
        im->profiles += stored;
        im->bad += !stored;
    }
    im->to->write->mark(im->store, g, told);
    return E_OK;
}

static bool open_store(struct import *im, const struct conf *c, struct fault *f)
{
    struct str rest;

    im->host = (struct store_host){
        .loop = &im->loop,
        .data_dir = c->data_dir,
        .key = &im->key,
        .symbols_memory = c->memory / 8,
        .schema_fixed = !c->migrate_auto,
        .shares = str_starts(str_of(c->shares), STR("sqlite:")),
        .log = host_log,
        .account = host_account,
    };
    im->to = backend_find(str_of(c->samples), &rest);
    if (hashkey_load(c->hash_key_file, &im->key, f))
        return false;
    im->host.shares = im->host.shares && im->to && im->to->shares;
    im->store = im->to ? im->to->write->open(&im->host, rest, f) : NULL;
    return im->store != NULL;
}

static int report(const struct import *im, const struct fault *f)
{
    printf("imported %llu profiles", (unsigned long long)im->profiles);
    if (im->expired)
        printf(", left out %llu whose time is over", (unsigned long long)im->expired);
    if (im->bad)
        printf(", %llu could not be stored", (unsigned long long)im->bad);
    if (im->hours_only)
        printf("; the hours of %llu days whose single profiles are gone (retention.raw) stay behind",
               (unsigned long long)im->hours_only);
    printf("\n");
    if (f->err)
        fprintf(stderr, "not finished: %s\n", f->text);
    return f->err || im->bad ? 1 : 0;
}

int import_run(const struct conf *c, const char *dir)
{
    struct import im = {.today = day_of(app_now_ns()), .day = INT32_MIN};
    struct fault f = {0};

    if (uv_loop_init(&im.loop) != 0)
        return 1;
    if (open_store(&im, c, &f)) {
        (void)sqlite_walk(dir, &im.key, on_group, &im, &im.hours_only, &f);
        im.to->write->close(im.store, on_closed, &im);
        while (!im.closed)
            uv_run(&im.loop, UV_RUN_ONCE);
    }
    uv_run(&im.loop, UV_RUN_NOWAIT);
    uv_loop_close(&im.loop);
    return report(&im, &f);
}
