/* Records on their way into the store. */
#include "gateway/ingest/submit.h"

#include <stdlib.h>

#include "backends/groups.h"
#include "gateway/log.h"

enum { GROUP_BYTES = 8 << 20 };
#define REMEMBER_NS INT64_C(30000000000)

struct submit {
    struct app *app;
    struct groups *groups;
    submit_done done;
    uint64_t put_ns; /* when the put under way began */
    size_t memory;   /* of groups, as charged */
    bool running;
};

static uint16_t class_of(const struct conf *c, const struct record *r)
{
    return retention_class(conf_retention_days(c, r->series.project, r->series.service));
}

struct submit *submit_new(struct app *app, submit_done done)
{
    struct submit *s = calloc(1, sizeof *s);
    uint64_t boot;

    if (!s)
        return NULL;
    if (uv_random(NULL, NULL, &boot, sizeof boot, 0, NULL) != 0) {
        free(s);
        return NULL;
    }
    s->groups = groups_new(boot, GROUP_BYTES, REMEMBER_NS);
    if (!s->groups) {
        free(s);
        return NULL;
    }
    s->app = app;
    s->done = done;
    return s;
}

void submit_free(struct submit *s)
{
    if (!s)
        return;
    ledger_charge(&s->app->ledger, LEDGER_records, -(int64_t)s->memory);
    groups_free(s->groups);
    free(s);
}

bool submit_record(struct submit *s, struct record *r, void *owner)
{
    return groups_submit(s->groups, r, class_of(s->app->conf, r), owner);
}

static void count_group(struct submit *s, const struct group *g)
{
    enum put_result worst = PUT_STORED;

    for (uint16_t i = 0; i < g->n; i++)
        if (g->results[i] > worst)
            worst = g->results[i];
    s->app->metrics.groups[worst]++;
    metrics_seconds(&s->app->metrics.group_seconds, (double)(uv_hrtime() - s->put_ns) / 1e9);
    if (worst != PUT_STORED)
        log_at(LOG_WARN, "group not stored", LOG_TEXT("outcome", worst == PUT_BAD ? "bad row" : "store away"),
               LOG_NUM("records", g->n));
}

static void on_put_done(struct group *g)
{
    struct submit *s = g->owner;

    count_group(s, g);
    groups_committed(s->groups);
    submit_run(s);
}

static void act(struct submit *s, struct groups_action *a)
{
    switch (a->kind) {
    case GROUPS_PUT:
        a->group->done = on_put_done;
        a->group->owner = s;
        s->put_ns = uv_hrtime();
        s->app->write->put(s->app->sink, a->group);
        break;
    case GROUPS_ANSWER:
        if (a->result == PUT_STORED && s->app->share_ops)
            s->app->share_ops->add(s->app->share_store, a->record, a->attempt);
        else
            record_free(a->record);
        s->done(a->owner, a->attempt, a->result);
        break;
    case GROUPS_MARK:
        s->app->metrics.plain[M_store_marks]++;
        s->app->write->mark(s->app->sink, a->group, a->told);
        break;
    }
}

/* An answer may lead to told, and so back here: one loop does it all. */
void submit_run(struct submit *s)
{
    struct groups_action a;

    if (s->running)
        return;
    s->running = true;
    while (groups_next(s->groups, &a))
        act(s, &a);
    s->running = false;
    size_t memory = groups_memory(s->groups);
    ledger_charge(&s->app->ledger, LEDGER_records, (int64_t)memory - (int64_t)s->memory);
    s->memory = memory;
}

void submit_told(struct submit *s, struct attempt a, bool yes)
{
    groups_told(s->groups, a, yes, (int64_t)uv_hrtime());
}

void submit_untold(struct submit *s, struct attempt a)
{
    groups_untold(s->groups, a, (int64_t)uv_hrtime());
}

void submit_final(struct submit *s, struct attempt a)
{
    groups_final(s->groups, a);
}

void submit_tick(struct submit *s)
{
    groups_tick(s->groups, (int64_t)uv_hrtime());
    submit_run(s);
}

size_t submit_waiting(const struct submit *s)
{
    return groups_waiting(s->groups);
}

bool submit_idle(const struct submit *s)
{
    return groups_idle(s->groups);
}
