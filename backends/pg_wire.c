/* The file that knows libpq. */
#include "backends/pg_wire.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

struct pg_wire {
    PGconn *conn;
    bool pipeline, started;
};

/* The text's first line, without the blank at its end. */
static void first_line(const char *text, char *out, size_t size)
{
    snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
}

enum err pg_options_parse(struct pg_options *o, const char *address, struct fault *f)
{
    char *why = NULL;
    PQconninfoOption *list = PQconninfoParse(address, &why);

    *o = (struct pg_options){0};
    if (!list) {
        /* libpq's text repeats the address, which may hold a password. */
        fault_set(f, E_INTERNAL, "%s", why ? "not an address of PostgreSQL that libpq understands" : "no memory");
        PQfreemem(why);
        return f->err;
    }
    for (PQconninfoOption *at = list; at->keyword && !f->err; at++)
        if (at->val && !pg_options_set(o, at->keyword, at->val))
            fault_set(f, E_NO_MEMORY, NULL);
    PQconninfoFree(list);
    if (f->err)
        pg_options_free(o);
    return f->err;
}

void pg_options_free(struct pg_options *o)
{
    for (size_t i = 0; i < o->n; i++) {
        free(o->names[i]);
        free(o->values[i]);
    }
    *o = (struct pg_options){0};
}

const char *pg_options_get(const struct pg_options *o, const char *name)
{
    for (size_t i = 0; i < o->n; i++)
        if (strcmp(o->names[i], name) == 0)
            return o->values[i];
    return NULL;
}

bool pg_options_set(struct pg_options *o, const char *name, const char *value)
{
    char *copy = strdup(value), *copied_name;

    if (!copy)
        return false;
    for (size_t i = 0; i < o->n; i++)
        if (strcmp(o->names[i], name) == 0) {
            free(o->values[i]);
            o->values[i] = copy;
            return true;
        }
    copied_name = o->n + 1 < PG_OPTIONS_MAX ? strdup(name) : NULL;
    if (!copied_name) {
        free(copy);
        return false;
    }
    o->names[o->n] = copied_name;
    o->values[o->n++] = copy;
    return true;
}

/* Notices are not for standard error. */
static void on_notice(void *ctx, const PGresult *r)
{
    (void)ctx;
    (void)r;
}

struct pg_wire *pg_wire_start(const struct pg_options *o, bool pipeline)
{
    struct pg_wire *w = calloc(1, sizeof *w);
    const char *names[PG_OPTIONS_MAX + 1] = {NULL}, *values[PG_OPTIONS_MAX + 1] = {NULL};

    if (!w)
        return NULL;
    for (size_t i = 0; i < o->n; i++) {
        names[i] = o->names[i];
        values[i] = o->values[i];
    }
    w->pipeline = pipeline;
    w->conn = PQconnectStartParams(names, values, 0);
    if (!w->conn) {
        free(w);
        return NULL;
    }
    PQsetNoticeReceiver(w->conn, on_notice, NULL);
    return w;
}

void pg_wire_finish(struct pg_wire *w)
{
    if (!w)
        return;
    PQfinish(w->conn);
    free(w);
}

static bool enter(struct pg_wire *w)
{
    return PQsetnonblocking(w->conn, 1) == 0 && (!w->pipeline || PQenterPipelineMode(w->conn) == 1);
}

enum pg_progress pg_wire_connect(struct pg_wire *w)
{
    if (PQstatus(w->conn) == CONNECTION_BAD)
        return PG_BROKEN;
    if (!w->started) { /* as libpq wants it: first wait until the socket can be written */
        w->started = true;
        return PG_WRITING;
    }
    switch (PQconnectPoll(w->conn)) {
    case PGRES_POLLING_READING:
        return PG_READING;
    case PGRES_POLLING_WRITING:
        return PG_WRITING;
    case PGRES_POLLING_OK:
        return enter(w) ? PG_READY : PG_BROKEN;
    default:
        return PG_BROKEN;
    }
}

int pg_wire_socket(const struct pg_wire *w)
{
    return PQsocket(w->conn);
}

void pg_wire_error(const struct pg_wire *w, char *out, size_t size)
{
    first_line(PQerrorMessage(w->conn), out, size);
}

void pg_statement_free(struct pg_statement *s)
{
    for (int i = 0; i < s->n; i++)
        buf_free(&s->params[i]);
    s->n = 0;
}

bool pg_statement_failed(const struct pg_statement *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->params[i].failed || s->params[i].len > INT32_MAX)
            return true;
    return false;
}

bool pg_wire_send(struct pg_wire *w, const struct pg_statement *s, bool single)
{
    const char *values[PG_PARAMS_MAX];
    int lengths[PG_PARAMS_MAX], formats[PG_PARAMS_MAX];

    for (int i = 0; i < s->n; i++) {
        values[i] = s->params[i].p ? s->params[i].p : "";
        lengths[i] = (int)s->params[i].len;
        formats[i] = 1;
    }
    if (PQsendQueryParams(w->conn, s->sql, s->n, NULL, values, lengths, formats, 1) != 1)
        return false;
    return !single || PQsetSingleRowMode(w->conn) == 1;
}

bool pg_wire_sync(struct pg_wire *w)
{
    return PQpipelineSync(w->conn) == 1;
}

enum pg_progress pg_wire_flush(struct pg_wire *w)
{
    int r = PQflush(w->conn);

    return r < 0 ? PG_BROKEN : r > 0 ? PG_WRITING : PG_READING;
}

bool pg_wire_consume(struct pg_wire *w)
{
    return PQconsumeInput(w->conn) == 1;
}

static PGresult *result_of(const struct pg_result *r)
{
    union {
        const struct pg_result *in;
        PGresult *out;
    } u = {.in = r};

    return u.out;
}

enum pg_event pg_wire_next(struct pg_wire *w, struct pg_result **r)
{
    PGresult *got;

    *r = NULL;
    if (PQisBusy(w->conn))
        return PG_WAIT;
    got = PQgetResult(w->conn);
    if (!got)
        return PQstatus(w->conn) == CONNECTION_BAD ? PG_FAIL : PG_GAP;
    switch (PQresultStatus(got)) {
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
    case PGRES_SINGLE_TUPLE:
        *r = (struct pg_result *)got;
        return PG_ROWS;
    case PGRES_PIPELINE_SYNC:
        PQclear(got);
        return PG_SYNCED;
    case PGRES_PIPELINE_ABORTED: /* an earlier statement has said why */
        *r = (struct pg_result *)got;
        return PG_ROWS;
    default:
        *r = (struct pg_result *)got;
        return PG_FAIL;
    }
}

void pg_result_clear(struct pg_result *r)
{
    PQclear(result_of(r));
}

void pg_result_fault(const struct pg_wire *w, const struct pg_result *r, struct pg_fault *f)
{
    const char *state = r ? PQresultErrorField(result_of(r), PG_DIAG_SQLSTATE) : NULL;
    const char *text = r ? PQresultErrorField(result_of(r), PG_DIAG_MESSAGE_PRIMARY) : NULL;

    if (PQstatus(w->conn) == CONNECTION_BAD && !text)
        state = NULL;
    snprintf(f->state, sizeof f->state, "%s", state ? state : "");
    first_line(text ? text : PQerrorMessage(w->conn), f->text, sizeof f->text);
}

int pg_rows(const struct pg_result *r)
{
    return PQntuples(result_of(r));
}

struct str pg_bytes(const struct pg_result *r, int row, int column)
{
    return (struct str){PQgetvalue(result_of(r), row, column), (size_t)PQgetlength(result_of(r), row, column)};
}

int64_t pg_int(const struct pg_result *r, int row, int column)
{
    struct str v = pg_bytes(r, row, column);
    uint64_t u = 0;

    for (size_t i = 0; i < v.len && i < sizeof u; i++)
        u = u << 8 | (uint8_t)v.p[i];
    return v.len == 2 ? (int16_t)u : v.len == 4 ? (int32_t)u : (int64_t)u;
}
