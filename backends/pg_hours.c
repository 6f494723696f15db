/*
 * Hours in PostgreSQL, write side (backends/hours.h). All of it blocks, on the compaction thread, over a connection of
 * the pool; what belongs together is one transaction, so that PgBouncer may hand each to another connection. A
 * transaction whose connection goes is rolled back by the server: nothing goes on after the first failure.
 */
#include <stdlib.h>

#include "backends/day.h"
#include "backends/hours.h"
#include "backends/pg_array.h"
#include "backends/pg_sql.h"
#include "backends/postgres_store.h"

enum { TOKEN_BYTES = 16, PIECE_ROWS = 256, WRITE_MS = 60000, EXPIRED_DAYS = 92 };
static const size_t PIECE_BYTES = (size_t)4 << 20;
/* A row that was replaced stays this long: longer than any query. */
static const int64_t DEAD_NS = 600 * INT64_C(1000000000);
/* Replicas look every minute at which days have no profiles any more (pg_hours_look_raw). */
static const int64_t TOLD_NS = 150 * INT64_C(1000000000);

/* How a statement ended, as the contract says it. Frees its parameters. */
static enum err run(struct pg_call *c, struct pg_statement *q, pg_row row, void *ctx, struct pg_fault *why,
                    struct fault *f)
{
    enum pg_call_end end = pg_call_run(c, q, PG_WHOLE, WRITE_MS, row, ctx, why);

    pg_statement_free(q);
    if (end == PG_CALL_OK)
        return E_OK;
    if (end == PG_CALL_CANCELLED)
        return fault_set(f, E_CANCELLED, NULL);
    return end == PG_CALL_STOPPED ? f->err : fault_set(f, E_STORE_DOWN, "%s %s", why->state, why->text);
}

static enum err run_plain(struct pg_call *c, const char *sql, struct fault *f)
{
    struct pg_statement q = {.sql = sql};
    struct pg_fault why;

    return run(c, &q, NULL, NULL, &why, f);
}

static struct pg_call *take(struct sample_store *s, struct fault *f)
{
    struct pg_call *c = pg_call_take(s->pool, &s->hurry);

    if (!c)
        fault_set(f, E_NO_MEMORY, NULL);
    return c;
}

/* Rows come by service and hour; tokens of one are put together. */
struct listing {
    struct arena *arena;
    struct buf tokens;
    struct hour_todo todo; /* the one whose tokens are put together; its names are in the arena */
    bool any;
    hour_due due;
    void *ctx;
    struct fault *f;
};

static enum err tell(struct listing *l)
{
    enum err e;

    if (!l->any)
        return E_OK;
    if (l->tokens.failed)
        return fault_set(l->f, E_NO_MEMORY, NULL);
    l->todo.tokens = buf_view(&l->tokens);
    e = l->due(l->ctx, &l->todo);
    l->tokens.len = 0;
    return e ? fault_set(l->f, e, NULL) : E_OK;
}

/* Columns hour, project, name, token (empty: there are none). */
static enum err on_todo(void *ctx, const struct pg_result *r, int row)
{
    struct listing *l = ctx;
    struct str project = pg_bytes(r, row, 1), service = pg_bytes(r, row, 2);
    int64_t hour = pg_int(r, row, 0);

    if (!l->any || l->todo.hour != hour || !str_eq(l->todo.service, service) || !str_eq(l->todo.project, project)) {
        enum err e = tell(l);

        if (e)
            return e;
        l->any = true;
        l->todo.hour = hour;
        if (!arena_str(l->arena, project, &l->todo.project) || !arena_str(l->arena, service, &l->todo.service))
            return fault_set(l->f, E_NO_MEMORY, NULL);
    }
    buf_str(&l->tokens, pg_bytes(r, row, 3));
    return E_OK;
}

static enum err list(struct sample_store *s, struct pg_statement *q, hour_due due, void *ctx, struct fault *f)
{
    struct listing l = {.arena = arena_new(SIZE_MAX), .due = due, .ctx = ctx, .f = f};
    struct pg_call *c = take(s, f);
    struct pg_fault why;
    enum err e = c && l.arena ? E_OK : fault_set(f, E_NO_MEMORY, NULL);

    if (e)
        pg_statement_free(q);
    else
        e = run(c, q, on_todo, &l, &why, f);
    if (!e)
        e = tell(&l);
    if (c)
        pg_call_give(c);
    buf_free(&l.tokens);
    arena_free(l.arena);
    return e;
}

/* Rows that were replaced so long ago that no reader can want them any more. */
static enum err drop_dead(struct sample_store *s, struct fault *f)
{
    struct pg_statement q = {.sql = pg_sql[SQL_DROP_DEAD_HOURS]};
    struct pg_call *c = take(s, f);
    struct pg_fault why;
    enum err e;

    if (!c)
        return f->err;
    pg_param_int(&q, PG_INT8, day_now_ns() - DEAD_NS);
    e = run(c, &q, NULL, NULL, &why, f);
    pg_call_give(c);
    return e;
}

static enum err pg_due(struct sample_store *s, int64_t last, hour_due due, void *ctx, struct fault *f)
{
    struct pg_statement q = {.sql = pg_sql[SQL_EACH_DIRTY]};

    pg_param_int(&q, PG_INT8, last);
    if (drop_dead(s, f)) {
        pg_statement_free(&q);
        return f->err;
    }
    return list(s, &q, due, ctx, f);
}

static enum err pg_done(struct sample_store *s, hour_due each, void *ctx, struct fault *f)
{
    struct pg_statement q = {.sql = pg_sql[SQL_EACH_HOUR]};

    return list(s, &q, each, ctx, f);
}

/* One hour on its way in. */
struct writing {
    struct sample_store *store;
    struct pg_call *call;
    const struct hour_todo *todo;
    const struct hour_row *rows;
    uint32_t n;
    int64_t service;
    int32_t day;
    bool locked;
    uint32_t deleted;
    struct pg_fault why;
    struct fault *f;
};

static enum err on_lock(void *ctx, const struct pg_result *r, int row)
{
    ((struct writing *)ctx)->locked = pg_int(r, row, 0) != 0;
    return E_OK;
}

static enum err on_deleted(void *ctx, const struct pg_result *r, int row)
{
    (void)r;
    (void)row;
    ((struct writing *)ctx)->deleted++;
    return E_OK;
}

static enum err run_writing(struct writing *w, struct pg_statement *q, pg_row row)
{
    return run(w->call, q, row, w, &w->why, w->f);
}

/* The lock only spares a second replica the rest of the work. */
static enum err lock_hour(struct writing *w)
{
    struct pg_statement q = {.sql = pg_sql[SQL_LOCK_HOUR]};
    int64_t key[] = {w->service, w->todo->hour};

    pg_param_int(&q, PG_INT8, (int64_t)hash64(w->store->host->key, key, sizeof key));
    return run_writing(w, &q, on_lock);
}

static enum err drop_dirty(struct writing *w)
{
    struct pg_statement q = {.sql = pg_sql[SQL_DROP_DIRTY]};
    struct str tokens = w->todo->tokens;
    struct buf *b;

    pg_param_int(&q, PG_INT8, w->service);
    pg_param_int(&q, PG_INT8, w->todo->hour);
    b = pg_param_array(&q, PG_UUID, (uint32_t)(tokens.len / TOKEN_BYTES));
    for (size_t i = 0; i < tokens.len; i += TOKEN_BYTES)
        pg_array_bytes(b, (struct str){tokens.p + i, TOKEN_BYTES});
    return run_writing(w, &q, on_deleted);
}

static enum err end_hours(struct writing *w)
{
    struct pg_statement q = {.sql = pg_sql[SQL_END_HOURS]};

    pg_param_int(&q, PG_INT8, day_now_ns());
    pg_param_int(&q, PG_INT8, w->service);
    pg_param_int(&q, PG_INT8, w->todo->hour);
    pg_param_int(&q, PG_DATE, w->day);
    return run_writing(w, &q, NULL);
}

static int64_t number_of(const struct hour_row *r, int column)
{
    const int64_t numbers[] = {r->class_days, r->first_ns, (int64_t)r->first.boot, (int64_t)r->first.group,
                               r->first.place};

    return numbers[column];
}

/* Rows first..until in one statement. */
static enum err put_piece(struct writing *w, uint32_t first, uint32_t until)
{
    static const enum pg_type numbers[] = {PG_INT2, PG_INT8, PG_INT8, PG_INT8, PG_INT2};
    struct pg_statement q = {.sql = pg_sql[SQL_PUT_HOUR]};
    struct buf *b;

    pg_param_int(&q, PG_INT8, w->service);
    pg_param_int(&q, PG_INT8, w->todo->hour);
    pg_param_int(&q, PG_DATE, w->day);
    for (size_t column = 0; column < COUNTOF(numbers); column++) {
        b = pg_param_array(&q, numbers[column], until - first);
        for (uint32_t i = first; i < until; i++)
            pg_array_int(b, numbers[column], number_of(&w->rows[i], (int)column));
    }
    b = pg_param_array(&q, PG_BYTEA, until - first);
    for (uint32_t i = first; i < until; i++)
        pg_array_bytes(b, w->rows[i].about);
    b = pg_param_array(&q, PG_BYTEA, until - first);
    for (uint32_t i = first; i < until; i++)
        pg_array_bytes(b, w->rows[i].body);
    return run_writing(w, &q, NULL);
}

static enum err put_rows(struct writing *w)
{
    enum err e = E_OK;

    for (uint32_t first = 0, until; !e && first < w->n; first = until) {
        size_t bytes = 0;

        for (until = first; until < w->n && until - first < PIECE_ROWS && bytes < PIECE_BYTES; until++)
            bytes += w->rows[until].about.len + w->rows[until].body.len;
        e = put_piece(w, first, until);
    }
    return e;
}

/* Whatever has failed: the end of the transaction, or of the connection, which is the same. */
static void roll_back(struct pg_call *c)
{
    struct fault f = {0};

    (void)!run_plain(c, "ROLLBACK", &f);
}

static enum err write_once(struct writing *w, bool *written)
{
    uint32_t listed = (uint32_t)(w->todo->tokens.len / TOKEN_BYTES);
    enum err e = run_plain(w->call, "BEGIN", w->f);
    bool open = !e;

    if (!e)
        e = lock_hour(w);
    if (!e && w->locked)
        e = drop_dirty(w);
    if (!e && w->locked && w->deleted == listed) {
        e = end_hours(w);
        if (!e)
            e = put_rows(w);
        if (!e)
            e = run_plain(w->call, "COMMIT", w->f);
        *written = !e;
        open = e != E_OK;
    }
    if (open)
        roll_back(w->call);
    return e;
}

/* A day that is older than its hours (a schema that was migrated), or that another replica has just dropped. */
static enum err make_days(struct writing *w)
{
    enum err e = E_OK;

    for (uint32_t i = 0; !e && i < w->n; i++)
        if (!i || w->rows[i].class_days != w->rows[i - 1].class_days)
            e = pg_schema_make_days(w->call, w->rows[i].class_days, w->day, w->day, w->f);
    return e;
}

static enum err pg_write_hour(struct sample_store *s, const struct hour_todo *t, const struct hour_row *rows,
                              uint32_t n, bool *written, struct fault *f)
{
    struct writing w = {.store = s,
                        .call = take(s, f),
                        .todo = t,
                        .rows = rows,
                        .n = n,
                        .service = pg_service_id(s->host, t->project, t->service),
                        .day = day_of(t->hour * HOUR_NS),
                        .f = f};
    enum err e;

    *written = false;
    if (!w.call)
        return f->err;
    e = write_once(&w, written);
    if (e && strcmp(w.why.state, "23514") == 0) {
        *f = (struct fault){0};
        w.deleted = 0;
        e = make_days(&w);
        if (!e)
            e = write_once(&w, written);
    }
    pg_call_give(w.call);
    return e;
}

static enum err on_since(void *ctx, const struct pg_result *r, int row)
{
    struct sample_store *s = ctx;

    atomic_store(&s->raw_since, pg_bytes(r, row, 0).len ? day_start((int32_t)pg_int(r, row, 0)) : INT64_MIN);
    return E_OK;
}

enum err pg_hours_look_raw(struct sample_store *s, struct pg_call *c, struct fault *f)
{
    struct pg_statement q = {.sql = pg_sql[SQL_GET_RAW_SINCE]};
    struct pg_fault why;

    return run(c, &q, on_since, s, &why, f);
}

/* The oldest day that is to be told of (`tell`), or whose profiles may go. */
struct raw_day {
    int32_t day;
    bool any, tell;
};

static enum err on_raw_day(void *ctx, const struct pg_result *r, int row)
{
    *(struct raw_day *)ctx =
        (struct raw_day){.any = true, .day = (int32_t)pg_int(r, row, 0), .tell = pg_int(r, row, 1) != 0};
    return E_OK;
}

/* What is said of days that are over, or that are to keep their profiles after all, is forgotten. */
static enum err clean(struct pg_call *c, int32_t day, struct fault *f)
{
    struct pg_statement q = {.sql = pg_sql[SQL_CLEAN_GONE]};
    struct pg_fault why;
    enum err e;

    pg_param_int(&q, PG_DATE, day_of(day_now_ns()) - EXPIRED_DAYS);
    pg_param_int(&q, PG_DATE, day);
    e = run(c, &q, NULL, NULL, &why, f);
    return e ? e : run_plain(c, pg_sql[SQL_DROP_GONE_DIRTY], f);
}

/* It has to be known to every replica's readers before it happens. Hours that were never made are asked for, once. */
static enum err tell_of(struct pg_call *c, int32_t day, struct fault *f)
{
    struct pg_statement q = {.sql = pg_sql[SQL_TELL_GONE]};
    struct pg_fault why;

    pg_param_int(&q, PG_DATE, day);
    pg_param_int(&q, PG_INT8, day_now_ns());
    pg_param_int(&q, PG_INT8, day_start(day));
    pg_param_int(&q, PG_INT8, day_start(day + 1));
    return run(c, &q, NULL, NULL, &why, f);
}

static enum err drop_of_day(struct sample_store *s, struct pg_call *c, int32_t day, bool *more, struct fault *f)
{
    struct pg_statement q = {.sql = pg_sql[SQL_NEXT_GONE]};
    struct raw_day next = {.any = false};
    struct pg_fault why;
    enum err e;

    pg_param_int(&q, PG_INT4, day);
    pg_param_int(&q, PG_INT8, day_now_ns() - TOLD_NS);
    e = run(c, &q, on_raw_day, &next, &why, f);
    if (e || !next.any)
        return e;
    *more = true;
    e = next.tell ? tell_of(c, next.day, f) : pg_schema_drop_profiles(c, next.day, f);
    if (!e && !next.tell)
        store_log(s->host, 2, "store=postgres ev=profiles_dropped day=%d", (int)next.day);
    return e;
}

/* A day goes at once: its partitions are emptied, which no parent hears of. */
static enum err pg_drop_raw(struct sample_store *s, int32_t day, bool *more, struct fault *f)
{
    struct pg_call *c = take(s, f);
    enum err e;

    *more = false;
    if (!c)
        return f->err;
    e = clean(c, day, f);
    if (!e)
        e = drop_of_day(s, c, day, more, f);
    if (!e)
        e = pg_hours_look_raw(s, c, f);
    pg_call_give(c);
    return e;
}

const struct hour_ops pg_hours_ops = {
    .due = pg_due,
    .done = pg_done,
    .write = pg_write_hour,
    .drop_raw = pg_drop_raw,
};
