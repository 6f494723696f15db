/*
 * What takes locks of tables: the schema, days made on demand and ahead, days that expire. Each is a job of the upkeep
 * thread over a connection of the pool; the loop only hears how it ended.
 */
#include <stdlib.h>

#include "backends/day.h"
#include "backends/postgres_store.h"

bool pg_upkeep_has_day(const struct sample_store *s, uint16_t class_days, int32_t day)
{
    for (size_t i = s->n_days; i-- > 0;)
        if (s->days[i].class_days == class_days && s->days[i].day == day)
            return true;
    return false;
}

/* Without memory the day stays unknown, and is made again in vain. */
static void add_day(struct sample_store *s, uint16_t class_days, int32_t day)
{
    if (pg_upkeep_has_day(s, class_days, day))
        return;
    if (s->n_days == s->cap_days) {
        size_t cap = s->cap_days ? s->cap_days * 2 : 32;
        struct pg_day *days = realloc(s->days, cap * sizeof *days);

        if (!days)
            return;
        s->days = days;
        s->cap_days = cap;
    }
    s->days[s->n_days++] = (struct pg_day){class_days, day};
}

static void drop_day(struct sample_store *s, uint16_t class_days, int32_t day)
{
    for (size_t i = 0; i < s->n_days; i++)
        if (s->days[i].class_days == class_days && s->days[i].day == day)
            s->days[i--] = s->days[--s->n_days];
}

void pg_upkeep_forget_day(struct sample_store *s, uint16_t class_days, int32_t day)
{
    drop_day(s, class_days, day);
    pg_stored_forget_day(s->stored, class_days, day);
}

enum err pg_upkeep_prepare_now(struct sample_store *s, struct fault *f)
{
    struct pg_call *c = pg_call_take(s->pool, &s->hurry);
    struct pg_versions v;
    enum err e = c ? pg_schema_prepare(c, s->host->key, s->host->schema_fixed, &v, f) : fault_set(f, E_NO_MEMORY, NULL);

    if (!e && v.was < v.is)
        store_log(s->host, 2, "store=postgres ev=migrated from=%lld to=%lld", (long long)v.was, (long long)v.is);
    if (!e)
        e = pg_hours_look_raw(s, c, f);
    if (c)
        pg_call_give(c);
    return e;
}

static void run_prepare(struct pg_job *j)
{
    struct pg_prepare_job *p = (struct pg_prepare_job *)j;

    p->fault = (struct fault){0};
    p->err = pg_upkeep_prepare_now(p->store, &p->fault);
}

static void on_prepared(struct pg_job *j)
{
    struct sample_store *s = ((struct pg_prepare_job *)j)->store;

    s->prepare.running = false;
    s->prepared = !s->prepare.err;
    if (s->prepare.err) {
        store_log(s->host, s->prepare.err == E_INTERNAL ? 0 : 1, "store=postgres ev=not_prepared why=\"%s\"",
                  s->prepare.fault.text);
        pg_reconnect(s); /* coming up, it asks for this again */
    }
    pg_pump(s);
}

void pg_upkeep_prepare(struct sample_store *s)
{
    if (s->prepare.running || s->shutting)
        return;
    s->prepare.running = true;
    s->prepare.store = s;
    s->prepare.job = (struct pg_job){.run = run_prepare, .done = on_prepared};
    pg_worker_submit(s->upkeep, &s->prepare.job);
}

static bool make_days(struct sample_store *s, uint16_t class_days, int32_t first, int32_t last)
{
    struct pg_call *c = pg_call_take(s->pool, &s->hurry);
    struct fault f = {0};
    enum err e = c ? pg_schema_make_days(c, class_days, first, last, &f) : fault_set(&f, E_NO_MEMORY, NULL);

    if (c)
        pg_call_give(c);
    if (e)
        store_log(s->host, 1, "store=postgres ev=day_not_made class=%u day=%d why=\"%s\"", (unsigned)class_days,
                  (int)first, f.text);
    return !e;
}

static void run_day(struct pg_job *j)
{
    struct pg_day_job *d = (struct pg_day_job *)j;

    d->ok = make_days(d->store, d->day.class_days, d->day.day, d->day.day);
}

static void on_day(struct pg_job *j)
{
    struct sample_store *s = ((struct pg_day_job *)j)->store;

    s->day.running = false;
    if (s->day.ok) {
        add_day(s, s->day.day.class_days, s->day.day.day);
    } else if (s->day.for_put) {
        s->put.n_ranges = 0; /* PUT_AGAIN */
        s->failed_ms = uv_now(s->host->loop);
    }
    if (s->day.for_put)
        s->put.phase = PG_PUT_NEXT;
    pg_pump(s);
}

void pg_upkeep_make_day(struct sample_store *s, uint16_t class_days, int32_t day, bool for_put)
{
    ASSERT(!s->day.running);
    s->day.running = true;
    s->day.for_put = for_put;
    s->day.store = s;
    s->day.day = (struct pg_day){class_days, day};
    s->day.job = (struct pg_job){.run = run_day, .done = on_day};
    pg_worker_submit(s->upkeep, &s->day.job);
}

static bool keep_dropped(struct pg_expire_job *e, struct pg_day day)
{
    struct pg_day *more = realloc(e->dropped, (e->n_dropped + 1) * sizeof *more);

    if (!more)
        return false;
    e->dropped = more;
    e->dropped[e->n_dropped++] = day;
    return true;
}

/* What the loop has not heard of is found out by the first put that fails. */
static void drop_expired(struct pg_expire_job *e, struct pg_call *c)
{
    struct sample_store *s = e->store;
    struct pg_day *days;
    struct fault f = {0};
    size_t n;

    if (pg_schema_list_days(c, &days, &n, &f)) {
        store_log(s->host, 1, "store=postgres ev=expire_failed why=\"%s\"", f.text);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        f = (struct fault){0};
        if (!day_expired(days[i].day, days[i].class_days, e->today))
            continue;
        if (pg_schema_drop_day(c, days[i], &f)) {
            store_log(s->host, 1, "store=postgres ev=expire_later class=%u day=%d why=\"%s\"",
                      (unsigned)days[i].class_days, (int)days[i].day, f.text);
            continue;
        }
        pg_stored_forget_day(s->stored, days[i].class_days, days[i].day);
        if (keep_dropped(e, days[i]))
            store_log(s->host, 2, "store=postgres ev=expired class=%u day=%d", (unsigned)days[i].class_days,
                      (int)days[i].day);
    }
    free(days);
}

static void run_expire(struct pg_job *j)
{
    struct pg_expire_job *e = (struct pg_expire_job *)j;
    struct pg_call *c = pg_call_take(e->store->pool, &e->store->hurry);

    e->ahead = true;
    if (c) {
        struct fault f = {0};

        drop_expired(e, c);
        (void)!pg_hours_look_raw(e->store, c, &f); /* comes again */
        pg_call_give(c);
    }
    for (int i = 0; i < e->n_classes; i++)
        e->ahead = make_days(e->store, e->classes[i], e->today, e->today + PG_AHEAD_DAYS) && e->ahead;
}

static void on_expired(struct pg_job *j)
{
    struct sample_store *s = ((struct pg_expire_job *)j)->store;
    struct pg_expire_job *e = &s->expire;

    for (size_t i = 0; i < e->n_dropped; i++)
        drop_day(s, e->dropped[i].class_days, e->dropped[i].day);
    free(e->dropped);
    e->dropped = NULL;
    e->n_dropped = 0;
    for (int i = 0; e->ahead && i < e->n_classes; i++)
        for (int32_t day = e->today; day <= e->today + PG_AHEAD_DAYS; day++)
            add_day(s, e->classes[i], day);
    e->running = false;
    pg_pump(s);
}

/* Classes in use whose next days are not all there. */
static void list_classes(struct sample_store *s)
{
    struct pg_expire_job *e = &s->expire;

    e->n_classes = 0;
    for (size_t i = 0; i < s->n_days && e->n_classes < PG_CLASSES_MAX; i++) {
        uint16_t class_days = s->days[i].class_days;
        bool have = true;

        for (int32_t day = e->today; day <= e->today + PG_AHEAD_DAYS; day++)
            have = have && pg_upkeep_has_day(s, class_days, day);
        for (int k = 0; k < e->n_classes; k++)
            have = have || e->classes[k] == class_days;
        if (!have)
            e->classes[e->n_classes++] = class_days;
    }
}

void pg_upkeep_expire(struct sample_store *s)
{
    struct pg_expire_job *e = &s->expire;

    if (!e->wanted || e->running || pg_away(s) || s->shutting)
        return;
    e->wanted = false;
    e->running = true;
    e->store = s;
    e->today = day_of(e->now_ns);
    list_classes(s);
    e->job = (struct pg_job){.run = run_expire, .done = on_expired};
    pg_worker_submit(s->upkeep, &e->job);
}
