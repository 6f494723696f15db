/* What a scan asks the server before it gives anything out. */
#include <stdlib.h>

#include "backends/blob.h"
#include "backends/day.h"
#include "backends/pg_array.h"
#include "backends/pg_scan.h"
#include "backends/pg_sql.h"

static bool push(struct pg_scan *s, struct pg_pending *p, int64_t id)
{
    if (p->n == p->cap) {
        uint32_t cap = p->cap ? p->cap * 2 : 16;
        int64_t *ids = GROW(s->arena, p->ids, int64_t, p->cap, cap);

        if (!ids)
            return false;
        p->ids = ids;
        p->cap = cap;
    }
    p->ids[p->n++] = id;
    return true;
}

static void add_ids(struct pg_statement *q, const struct pg_pending *p)
{
    struct buf *b = pg_param_array(q, PG_INT8, p->n);

    for (uint32_t i = 0; i < p->n; i++)
        pg_array_int(b, PG_INT8, p->ids[i]);
}

static enum err keep_service(struct pg_scan *s, int64_t id, struct str name)
{
    struct pg_name *e = pg_names_find(&s->services, id);

    if (e)
        return E_OK;
    e = pg_names_add(&s->services, s->arena, id);
    if (!e || !arena_str(s->arena, name, &e->series.service) || !push(s, &s->all_services, id))
        return pg_scan_no_memory(s);
    return E_OK;
}

static enum err on_service(void *ctx, const struct pg_result *r, int row)
{
    return keep_service(ctx, pg_int(r, row, 0), pg_bytes(r, row, 1));
}

enum err pg_fetch_services(struct pg_scan *s)
{
    struct pg_statement q = {.sql = pg_sql[SQL_GET_SERVICES]};

    if (s->sel->service.len)
        return keep_service(s, pg_service_id(s->store->host, s->sel->project, s->sel->service), s->sel->service);
    pg_param_bytes(&q, s->sel->project);
    return pg_scan_run(s, &q, PG_WHOLE, on_service);
}

static int order_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static enum err on_day(void *ctx, const struct pg_result *r, int row)
{
    struct pg_scan *s = ctx;
    int64_t day = pg_int(r, row, 0);

    return push(s, &s->new_series, day) ? E_OK : pg_scan_no_memory(s);
}

enum err pg_fetch_days(struct pg_scan *s, int32_t first, int32_t last, struct pg_pending *days)
{
    struct pg_statement q = {.sql = pg_sql[SQL_GET_DAYS]};
    enum err e;

    pg_param_int(&q, PG_INT4, first);
    pg_param_int(&q, PG_INT4, last);
    e = pg_scan_run(s, &q, PG_WHOLE, on_day);
    *days = s->new_series;
    s->new_series = (struct pg_pending){0};
    if (days->n)
        qsort(days->ids, days->n, sizeof *days->ids, order_ids);
    return e;
}

struct once_row *pg_scan_add_row(struct pg_scan *s)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 256;
        struct once_row *rows = realloc(s->rows, cap * sizeof *rows);

        if (!rows)
            return NULL;
        s->store->host->account(s->store->host->ctx, "queries", (int64_t)((cap - s->cap) * sizeof *rows));
        s->rows = rows;
        s->cap = cap;
    }
    s->rows[s->n] = (struct once_row){0};
    return &s->rows[s->n++];
}

/* An entry for an id that has not been met yet waits for pg_fetch.c's next question. */
static bool meet(struct pg_scan *s, struct pg_names *names, struct pg_pending *pending, int64_t id, int64_t service)
{
    struct pg_name *e = pg_names_find(names, id);

    if (e)
        return true;
    e = pg_names_add(names, s->arena, id);
    if (!e || !push(s, pending, id))
        return false;
    e->series.project = s->sel->project;
    e->series.service =
        pg_names_find(&s->services, service) ? pg_names_find(&s->services, service)->series.service : s->sel->service;
    return true;
}

/* Columns as in PG_LIST_COLUMNS. */
static enum err on_row(void *ctx, const struct pg_result *r, int row)
{
    struct pg_scan *s = ctx;
    struct once_row *to = pg_scan_add_row(s);
    struct str content = pg_bytes(r, row, 6);

    if (!to)
        return pg_scan_no_memory(s);
    to->time_ns = pg_int(r, row, 0);
    to->attempt.boot = (uint64_t)pg_int(r, row, 1);
    to->attempt.group = (uint64_t)pg_int(r, row, 2);
    to->attempt.place = (uint16_t)pg_int(r, row, 3);
    to->id = pg_int(r, row, 4);
    to->series_id = pg_int(r, row, 5);
    if (content.len == sizeof to->content_id)
        memcpy(&to->content_id, content.p, content.len);
    to->identity = pg_int(r, row, 7) != 0;
    if (!meet(s, &s->series, &s->new_series, to->series_id, to->id) ||
        !meet(s, &s->typesets, &s->new_typesets, pg_int(r, row, 8), to->id))
        return pg_scan_no_memory(s);
    return E_OK;
}

/* Columns id, service, name, spy, labels. */
static enum err on_series(void *ctx, const struct pg_result *r, int row)
{
    struct pg_scan *s = ctx;
    struct pg_name *e = pg_names_find(&s->series, pg_int(r, row, 0));

    if (!e)
        return E_OK;
    if (!arena_str(s->arena, pg_bytes(r, row, 2), &e->series.name) ||
        !arena_str(s->arena, pg_bytes(r, row, 3), &e->series.spy))
        return pg_scan_no_memory(s);
    return blob_read_labels(pg_bytes(r, row, 4), s->arena, &e->series.labels, &e->series.n_labels, s->f);
}

static enum err on_typeset(void *ctx, const struct pg_result *r, int row)
{
    struct pg_scan *s = ctx;
    struct pg_name *e = pg_names_find(&s->typesets, pg_int(r, row, 0));

    return e ? blob_read_types(pg_bytes(r, row, 1), s->arena, &e->types, &e->n_types, s->f) : E_OK;
}

static enum err fetch_series(struct pg_scan *s, int32_t first, int32_t last)
{
    struct pg_statement q = {.sql = pg_sql[SQL_GET_SERIES]};
    enum err e;

    if (!s->new_series.n)
        return E_OK;
    add_ids(&q, &s->all_services);
    add_ids(&q, &s->new_series);
    pg_param_int(&q, PG_DATE, first);
    pg_param_int(&q, PG_DATE, last);
    e = pg_scan_run(s, &q, PG_WHOLE, on_series);
    for (uint32_t i = 0; !e && i < s->new_series.n; i++) {
        struct pg_name *n = pg_names_find(&s->series, s->new_series.ids[i]);

        n->wanted = !s->sel->series_match || s->sel->series_match(s->sel->ctx, &n->series);
    }
    s->new_series.n = 0;
    return e;
}

static enum err fetch_typesets(struct pg_scan *s)
{
    struct pg_statement q = {.sql = pg_sql[SQL_GET_TYPESETS]};

    if (!s->new_typesets.n)
        return E_OK;
    add_ids(&q, &s->new_typesets);
    s->new_typesets.n = 0;
    return pg_scan_run(s, &q, PG_WHOLE, on_typeset);
}

enum err pg_fetch_rows(struct pg_scan *s, const struct pg_pending *services, int64_t from, int64_t last)
{
    struct pg_statement q = {.sql = pg_sql[SQL_GET_WINDOW]};
    int64_t near = pg_scan_shift(from, -pg_scan_margin_ns), far = pg_scan_shift(last, pg_scan_margin_ns);
    size_t kept = s->n, before = s->n;
    enum err e;

    add_ids(&q, services);
    pg_param_int(&q, PG_INT8, near);
    pg_param_int(&q, PG_INT8, far);
    e = pg_scan_run(s, &q, PG_WHOLE, on_row);
    if (!e)
        e = fetch_series(s, day_of(near), day_of(far));
    if (!e)
        e = fetch_typesets(s);
    for (size_t i = before; !e && i < s->n; i++) {
        if (!pg_names_find(&s->series, s->rows[i].series_id)->wanted)
            continue;
        s->rows[i].near = s->rows[i].time_ns < from || s->rows[i].time_ns > last;
        s->rows[kept++] = s->rows[i];
    }
    s->n = kept;
    return e;
}

/* A service is asked for by its id only where it is known of a row; its project decides whether it may be seen. */
static enum err fetch_owner(struct pg_scan *s, int64_t service)
{
    struct pg_statement q = {.sql = pg_sql[SQL_GET_SERVICE]};
    enum err e;

    pg_param_int(&q, PG_INT8, service);
    pg_param_bytes(&q, s->sel->project);
    e = pg_scan_run(s, &q, PG_WHOLE, on_service);
    return e || s->all_services.n ? e : fault_set(s->f, E_NOT_FOUND, "no such profile");
}

enum err pg_fetch_attempt(struct pg_scan *s, struct attempt a)
{
    struct pg_statement q = {.sql = pg_sql[SQL_GET_ATTEMPT]};
    enum err e;

    pg_param_int(&q, PG_INT8, (int64_t)a.boot);
    pg_param_int(&q, PG_INT8, (int64_t)a.group);
    pg_param_int(&q, PG_INT2, a.place);
    e = pg_scan_run(s, &q, PG_WHOLE, on_row);
    if (e || !s->n)
        return e ? e : fault_set(s->f, E_NOT_FOUND, "no such profile");
    s->n = 1;
    e = fetch_owner(s, s->rows[0].id);
    if (!e)
        pg_names_find(&s->series, s->rows[0].series_id)->series.service =
            pg_names_find(&s->services, s->rows[0].id)->series.service;
    if (!e)
        e = fetch_series(s, day_of(s->rows[0].time_ns), day_of(s->rows[0].time_ns));
    return e ? e : fetch_typesets(s);
}

static enum err on_mark(void *ctx, const struct pg_result *r, int row)
{
    struct pg_scan *s = ctx;
    uint64_t boot = (uint64_t)pg_int(r, row, 0), group = (uint64_t)pg_int(r, row, 1),
             told = (uint64_t)pg_int(r, row, 2);

    for (size_t i = 0; i < s->n; i++) {
        struct once_row *o = &s->rows[i];

        if (o->repeated && o->attempt.boot == boot && o->attempt.group == group && o->attempt.place < GROUP_MAX)
            o->told = told >> o->attempt.place & 1;
    }
    return E_OK;
}

enum err pg_fetch_marks(struct pg_scan *s, int32_t first, int32_t last)
{
    struct pg_statement q = {.sql = pg_sql[SQL_GET_MARKS]};
    struct buf *boots, *groups;
    uint32_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        n += s->rows[i].repeated;
    boots = pg_param_array(&q, PG_INT8, n);
    groups = pg_param_array(&q, PG_INT8, n);
    for (size_t i = 0; i < s->n; i++) {
        if (!s->rows[i].repeated)
            continue;
        pg_array_int(boots, PG_INT8, (int64_t)s->rows[i].attempt.boot);
        pg_array_int(groups, PG_INT8, (int64_t)s->rows[i].attempt.group);
    }
    pg_param_int(&q, PG_DATE, first);
    pg_param_int(&q, PG_DATE, last);
    return pg_scan_run(s, &q, PG_WHOLE, on_mark);
}
