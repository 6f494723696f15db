/*
 * Hours among the rows of a day. One statement says which hour rows there are and what is dirty, so that the two fit
 * together. A row that is replaced in between stays for a while, and is found by its number.
 */
#include <stdlib.h>

#include "backends/day.h"
#include "backends/hours.h"
#include "backends/pg_array.h"
#include "backends/pg_scan.h"
#include "backends/pg_sql.h"

enum { HOURS_A_DAY = 24, GROUPS_MAX = 8 };
static const size_t ROW_MAX_BYTES = (size_t)64 << 20;

static uint32_t bit_of(const struct pg_scan *s, int64_t hour)
{
    int64_t n = hour - (int64_t)s->day * HOURS_A_DAY;

    return n >= 0 && n < HOURS_A_DAY ? UINT32_C(1) << n : 0;
}

static struct once_row *add_hour(struct pg_scan *s)
{
    if (s->n_hours == s->cap_hours) {
        size_t cap = s->cap_hours ? s->cap_hours * 2 : 64;
        struct once_row *hours = realloc(s->hours, cap * sizeof *hours);

        if (!hours)
            return NULL;
        s->hours = hours;
        s->cap_hours = cap;
    }
    s->hours[s->n_hours] = (struct once_row){.hour = true, .counts = true};
    return &s->hours[s->n_hours++];
}

/* Columns as in GET_HOURS. */
static enum err on_listed(void *ctx, const struct pg_result *r, int row)
{
    enum { HOUR, DIRTY, GONE };
    struct pg_scan *s = ctx;
    int64_t kind = pg_int(r, row, 0);
    struct pg_name *service = kind == GONE ? NULL : pg_names_find(&s->services, pg_int(r, row, 2));
    struct once_row *to;

    if (kind == GONE)
        s->raw_gone = true;
    if (kind == DIRTY && service)
        service->dirty |= bit_of(s, pg_int(r, row, 3));
    if (kind != HOUR || !service)
        return E_OK;
    to = add_hour(s);
    if (!to)
        return pg_scan_no_memory(s);
    to->id = service->id;
    to->series_id = pg_int(r, row, 4);
    to->time_ns = pg_int(r, row, 5);
    to->attempt =
        (struct attempt){(uint64_t)pg_int(r, row, 6), (uint64_t)pg_int(r, row, 7), (uint16_t)pg_int(r, row, 8)};
    return E_OK;
}

static void add_ids(struct pg_statement *q, const struct pg_pending *p)
{
    struct buf *b = pg_param_array(q, PG_INT8, p->n);

    for (uint32_t i = 0; i < p->n; i++)
        pg_array_int(b, PG_INT8, p->ids[i]);
}

/* What of the list is to be taken. With the profiles gone, what is dirty is so by what is beside the hours. */
static void take(struct pg_scan *s)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->n_hours; i++) {
        struct pg_name *service = pg_names_find(&s->services, s->hours[i].id);
        uint32_t bit = bit_of(s, hour_of(s->hours[i].time_ns));

        if (service->dirty & bit && !s->raw_gone)
            continue;
        s->hours[kept++] = s->hours[i];
        if (!s->raw_gone)
            service->taken |= bit;
    }
    s->n_hours = kept;
}

enum err pg_scan_list_hours(struct pg_scan *s, int64_t from, int64_t last_ns)
{
    struct pg_statement q = {.sql = pg_sql[SQL_GET_HOURS]};
    int64_t first = hour_of(from) + (from > hour_of(from) * HOUR_NS);
    int64_t last = hour_of(last_ns) - (last_ns < (hour_of(last_ns) + 1) * HOUR_NS - 1);
    enum err e;

    for (uint32_t i = 0; i < s->all_services.n; i++) {
        struct pg_name *service = pg_names_find(&s->services, s->all_services.ids[i]);

        service->taken = service->dirty = 0;
    }
    if (first > last)
        return E_OK;
    add_ids(&q, &s->all_services);
    pg_param_int(&q, PG_DATE, s->day);
    pg_param_int(&q, PG_INT8, first);
    pg_param_int(&q, PG_INT8, last);
    e = pg_scan_run(s, &q, PG_WHOLE, on_listed);
    if (!e)
        take(s);
    return e;
}

/* The rows of some services that are in no hour which all of them have; those that are in one of their own, just near.
 */
static enum err list_group(struct pg_scan *s, const struct pg_pending *services, uint32_t taken, int64_t from,
                           int64_t last)
{
    size_t before = s->n;
    enum err e = E_OK;

    for (int hour = 0; !e && taken && hour < HOURS_A_DAY; hour++) {
        int64_t start = day_start(s->day) + hour * HOUR_NS;

        if (!(taken >> hour & 1))
            continue;
        if (from < start)
            e = pg_fetch_rows(s, services, from, start - 1);
        from = start + HOUR_NS;
    }
    if (!e && from <= last)
        e = pg_fetch_rows(s, services, from, last);
    for (size_t i = before; !e && i < s->n; i++)
        if (pg_names_find(&s->services, s->rows[i].id)->taken & bit_of(s, hour_of(s->rows[i].time_ns)))
            s->rows[i].near = true;
    return e;
}

static uint32_t taken_of(struct pg_scan *s, int64_t service)
{
    return pg_names_find(&s->services, service)->taken;
}

/* Moves the services that go with the one that has most hours to the front; what they all have. */
static uint32_t pick_group(struct pg_scan *s, struct pg_pending *rest, uint32_t *n, bool everything)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < rest->n; i++)
        if (__builtin_popcount(taken_of(s, rest->ids[i])) > __builtin_popcount(most))
            most = taken_of(s, rest->ids[i]);
    *n = 0;
    for (uint32_t i = 0; i < rest->n; i++) {
        int64_t id = rest->ids[i];

        if (everything)
            most &= taken_of(s, id);
        else if (taken_of(s, id) != most)
            continue;
        rest->ids[i] = rest->ids[*n];
        rest->ids[(*n)++] = id;
    }
    return most;
}

/* Services that have the same hours go together; as there may be many of a few hours each, only so many times. */
enum err pg_scan_list_rest(struct pg_scan *s, int64_t from, int64_t last)
{
    struct pg_pending rest = s->all_services;
    enum err e = E_OK;

    for (int group = 1; !e && rest.n; group++) {
        uint32_t n, taken = pick_group(s, &rest, &n, group == GROUPS_MAX);
        struct pg_pending services = {.ids = rest.ids, .n = n};

        e = list_group(s, &services, taken, from, last);
        rest.ids += n;
        rest.n -= n;
    }
    return e;
}

/* Columns as in GET_HOUR_BODY. */
static enum err on_hour(void *ctx, const struct pg_result *r, int row)
{
    struct pg_scan *s = ctx;
    struct arena *a;
    struct stored_hour hour;
    struct stored out;
    enum err e;

    while (s->at < s->until && s->rows[s->at].series_id != pg_int(r, row, 4))
        s->at++;
    if (s->at == s->until)
        return E_OK;
    s->at++;
    if (pg_scan_cancelled(s))
        return fault_set(s->f, E_CANCELLED, NULL);
    a = arena_new(ROW_MAX_BYTES);
    if (!a)
        return pg_scan_no_memory(s);
    e = hour_open(pg_bytes(r, row, 5), s->what & SCAN_BODY ? pg_bytes(r, row, 6) : (struct str){NULL, 0},
                  s->sel->project, a, &out, &hour, s->f);
    if (!e && (!s->sel->series_match || s->sel->series_match(s->sel->ctx, out.series)))
        e = s->stopped = s->row(s->ctx, &out);
    arena_free(a);
    return e;
}

enum err pg_scan_give_hours(struct pg_scan *s)
{
    struct pg_statement q = {.sql = pg_sql[s->what & SCAN_BODY ? SQL_GET_HOUR_BODY : SQL_GET_HOUR_META]};
    struct buf *b;

    pg_param_int(&q, PG_DATE, s->day);
    b = pg_param_array(&q, PG_INT8, (uint32_t)(s->until - s->at));
    for (size_t i = s->at; i < s->until; i++)
        pg_array_int(b, PG_INT8, s->rows[i].series_id);
    return pg_scan_run(s, &q, s->what & SCAN_BODY ? PG_SINGLE : PG_WHOLE, on_hour);
}
