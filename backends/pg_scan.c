/*
 * Scanning: a day at a time, so that memory is bounded by a day's rows. First the small columns say which rows there
 * are, and once.h which of them count; then those are fetched whole, in runs of some hundreds, in the order of their
 * time. Whatever was committed in between is not of this scan; what has expired in between is left out.
 * Of hours that stand for themselves (pg_scan_hours.c) only the hour rows are looked at.
 */
#include "backends/pg_scan.h"

#include <stdlib.h>

#include "backends/blob.h"
#include "backends/day.h"
#include "backends/pg_array.h"
#include "backends/pg_sql.h"

enum { RUN_FIRST = 128, RUN_MAX = 4096, READ_MS = 60000 };
static const size_t NAMES_MAX_BYTES = (size_t)256 << 20;

bool pg_scan_cancelled(const struct pg_scan *s)
{
    return s->sel->cancel && atomic_load_explicit(s->sel->cancel, memory_order_relaxed);
}

enum err pg_scan_no_memory(struct pg_scan *s)
{
    return fault_set(s->f, E_NO_MEMORY, "this query needs more memory than there is");
}

enum err pg_scan_run(struct pg_scan *s, struct pg_statement *q, enum pg_call_how how, pg_row row)
{
    struct pg_fault why;
    enum pg_call_end end = pg_call_run(s->call, q, how, READ_MS, row, s, &why);

    pg_statement_free(q);
    switch (end) {
    case PG_CALL_OK:
        return E_OK;
    case PG_CALL_STOPPED:
        return s->stopped ? s->stopped : s->f->err;
    case PG_CALL_CANCELLED:
        return fault_set(s->f, E_CANCELLED, NULL);
    default:
        return fault_set(s->f, E_STORE_DOWN, "the store cannot be read: %s", why.text);
    }
}

/* Columns as in PG_ROW_COLUMNS, and the body behind them. */
static enum err give_row(struct pg_scan *s, const struct once_row *o, const struct pg_result *r, int row)
{
    struct pg_name *types = pg_names_find(&s->typesets, pg_int(r, row, 9));
    struct pg_name *series = pg_names_find(&s->series, o->series_id);
    struct stored out = {.attempt = o->attempt, .series_id = (uint64_t)o->series_id, .time_ns = o->time_ns};
    enum err e = types && series ? blob_read_totals(pg_bytes(r, row, 10), types->types, types->n_types, s->f)
                                 : fault_set(s->f, E_INTERNAL, "a stored row has no types");

    if (e)
        return e;
    out.series = &series->series;
    out.duration_ns = pg_int(r, row, 6);
    out.stored_ns = pg_int(r, row, 7);
    out.n_samples = (uint64_t)pg_int(r, row, 8);
    out.n_profiles = 1;
    out.types = types->types;
    out.n_types = types->n_types;
    out.primary = (uint32_t)pg_int(r, row, 11);
    out.format = pg_bytes(r, row, 12);
    out.trace_id = pg_bytes(r, row, 13);
    out.original_bytes = (uint64_t)pg_int(r, row, 14);
    out.class_days = (uint16_t)pg_int(r, row, 15);
    if (s->what & SCAN_BODY)
        out.body = pg_bytes(r, row, 16);
    s->stopped = s->row(s->ctx, &out);
    return s->stopped;
}

static int order_old(const void *a, const void *b)
{
    return once_order(a, b);
}

static int order_new(const void *a, const void *b)
{
    return once_order(b, a);
}

/* Rows come in the order of s->rows; those that are not there are not given out. */
static enum err on_row(void *ctx, const struct pg_result *r, int row)
{
    struct pg_scan *s = ctx;
    struct once_row o = {.time_ns = pg_int(r, row, 0),
                         .attempt = {.boot = (uint64_t)pg_int(r, row, 1),
                                     .group = (uint64_t)pg_int(r, row, 2),
                                     .place = (uint16_t)pg_int(r, row, 3)}};
    int (*order)(const void *a, const void *b) = s->what & SCAN_NEWEST_FIRST ? order_new : order_old;

    while (s->at < s->until && order(&s->rows[s->at], &o) < 0)
        s->at++;
    if (s->at == s->until || order(&s->rows[s->at], &o) != 0)
        return E_OK;
    if (pg_scan_cancelled(s))
        return fault_set(s->f, E_CANCELLED, NULL);
    return give_row(s, &s->rows[s->at++], r, row);
}

static int order_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* The distinct ids of the rows at..until: of their services, or of their series. */
static enum err add_ids(struct pg_scan *s, struct pg_statement *q, bool services)
{
    size_t n = s->until - s->at, kept = 0;
    int64_t *ids = malloc(n * sizeof *ids);
    struct buf *b;

    if (!ids)
        return pg_scan_no_memory(s);
    for (size_t i = 0; i < n; i++)
        ids[i] = services ? s->rows[s->at + i].id : s->rows[s->at + i].series_id;
    qsort(ids, n, sizeof *ids, order_ids);
    for (size_t i = 0; i < n; i++)
        if (!kept || ids[kept - 1] != ids[i])
            ids[kept++] = ids[i];
    b = pg_param_array(q, PG_INT8, (uint32_t)kept);
    for (size_t i = 0; i < kept; i++)
        pg_array_int(b, PG_INT8, ids[i]);
    free(ids);
    return E_OK;
}

static enum err give_run(struct pg_scan *s, size_t first, size_t until)
{
    static const enum pg_sql which[] = {SQL_GET_META, SQL_GET_BODY, SQL_GET_META_NEWEST, SQL_GET_BODY_NEWEST};
    struct pg_statement q = {.sql = pg_sql[which[s->what & (SCAN_BODY | SCAN_NEWEST_FIRST)]]};
    int64_t a = s->rows[first].time_ns, b = s->rows[until - 1].time_ns;
    enum err e;

    s->at = first;
    s->until = until;
    if (s->rows[first].hour)
        return pg_scan_give_hours(s);
    e = add_ids(s, &q, true);
    pg_param_int(&q, PG_INT8, a < b ? a : b);
    pg_param_int(&q, PG_INT8, a < b ? b : a);
    if (!e)
        e = add_ids(s, &q, false);
    if (!e)
        return pg_scan_run(s, &q, s->what & SCAN_BODY ? PG_SINGLE : PG_WHOLE, on_row);
    pg_statement_free(&q);
    return e;
}

static enum err give_rows(struct pg_scan *s)
{
    size_t run = RUN_FIRST;
    enum err e = E_OK;

    for (size_t i = 0, until; !e && i < s->n; i = until) {
        for (until = i + 1; until < s->n && until - i < run && s->rows[until].hour == s->rows[i].hour;)
            until++;
        e = pg_scan_cancelled(s) ? fault_set(s->f, E_CANCELLED, NULL) : give_run(s, i, until);
        run = run * 2 < RUN_MAX ? run * 2 : RUN_MAX;
    }
    return e;
}

/* The hours of the day take their places among the rows. */
static enum err add_hours(struct pg_scan *s)
{
    for (size_t i = 0; i < s->n_hours; i++) {
        struct once_row *r = pg_scan_add_row(s);

        if (!r)
            return pg_scan_no_memory(s);
        *r = s->hours[i];
    }
    return E_OK;
}

/* Leaves those rows that count and are wanted, in their order. */
static enum err choose(struct pg_scan *s, int32_t first_day, int32_t last_day)
{
    size_t kept = 0;
    enum err e = once_find(s->rows, s->n) ? pg_fetch_marks(s, first_day, last_day) : E_OK;

    if (e)
        return e;
    once_choose(s->rows, s->n);
    e = add_hours(s);
    if (e)
        return e;
    for (size_t i = 0; i < s->n; i++) {
        const struct once_row *r = &s->rows[i];

        if (r->counts && !r->near && (!s->sel->time_match || s->sel->time_match(s->sel->ctx, r->time_ns)))
            s->rows[kept++] = *r;
    }
    s->n = kept;
    if (s->n)
        qsort(s->rows, s->n, sizeof *s->rows, s->what & SCAN_NEWEST_FIRST ? order_new : order_old);
    return E_OK;
}

int64_t pg_scan_shift(int64_t ns, int64_t by)
{
    bool over = false;

    return add_sat(ns, by, &over);
}

static enum err pick_day(struct pg_scan *s, int32_t day)
{
    int64_t from = day_start(day), last = pg_scan_shift(from, DAY_NS - 1);
    enum err e = E_OK;

    if (s->sel->from_ns > from)
        from = s->sel->from_ns;
    if (s->sel->until_ns - 1 < last)
        last = s->sel->until_ns - 1;
    s->n = s->n_hours = 0;
    s->day = day;
    s->raw_gone = false;
    if (s->what & SCAN_HOURS)
        e = pg_scan_list_hours(s, from, last);
    if (!e)
        e = pg_scan_list_rest(s, from, last);
    if (!e)
        e = choose(s, day_of(pg_scan_shift(from, -pg_scan_margin_ns)), day_of(pg_scan_shift(last, pg_scan_margin_ns)));
    return e ? e : give_rows(s);
}

static enum err scan_window(struct pg_scan *s)
{
    struct pg_pending days = {0};
    enum err e;

    if (s->sel->until_ns <= s->sel->from_ns)
        return E_OK;
    e = pg_fetch_services(s);
    if (!e && s->all_services.n)
        e = pg_fetch_days(s, day_of(s->sel->from_ns), day_of(s->sel->until_ns - 1), &days);
    for (uint32_t i = 0; !e && i < days.n; i++)
        e = pick_day(s, (int32_t)days.ids[s->what & SCAN_NEWEST_FIRST ? days.n - 1 - i : i]);
    return e;
}

/* Just one profile, whether it counts or not. */
static enum err scan_attempt(struct pg_scan *s)
{
    enum err e = pg_fetch_attempt(s, *s->sel->profile);

    if (!e && !pg_names_find(&s->series, s->rows[0].series_id)->wanted)
        e = fault_set(s->f, E_NOT_FOUND, "no such profile");
    return e ? e : give_rows(s);
}

static void end_scan(struct pg_scan *s)
{
    s->store->host->account(s->store->host->ctx, "queries", -(int64_t)(s->cap * sizeof *s->rows));
    free(s->rows);
    free(s->hours);
    pg_names_free(&s->series);
    pg_names_free(&s->typesets);
    pg_names_free(&s->services);
    if (s->call)
        pg_call_give(s->call);
    arena_free(s->arena);
}

enum err pg_scan(struct sample_store *store, const struct selection *sel, enum scan_what what, scan_row row, void *ctx,
                 struct fault *f)
{
    struct pg_scan s = {.store = store, .sel = sel, .what = what, .row = row, .ctx = ctx, .f = f};
    enum err e;

    s.arena = arena_new(NAMES_MAX_BYTES);
    s.call = pg_call_take(store->pool, sel->cancel);
    if (!s.arena || !s.call)
        e = pg_scan_no_memory(&s);
    else if (pg_scan_cancelled(&s))
        e = fault_set(f, E_CANCELLED, NULL);
    else
        e = sel->profile ? scan_attempt(&s) : scan_window(&s);
    end_scan(&s);
    return e;
}
