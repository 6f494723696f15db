/* The profiles of a group as the arrays of one statement, a column each. */
#include "backends/blob.h"
#include "backends/day.h"
#include "backends/pg_array.h"
#include "backends/pg_pack.h"
#include "backends/pg_sql.h"

/* The columns of profile that differ from row to row, as PUT_PROFILE names them. */
#define COLUMNS(X)                                                                                                     \
    X(TIME, INT8)                                                                                                      \
    X(PLACE, INT2)                                                                                                     \
    X(SERVICE, INT8)                                                                                                   \
    X(SERIES, INT8)                                                                                                    \
    X(CONTENT, BYTEA)                                                                                                  \
    X(IDENTITY, BOOL)                                                                                                  \
    X(DURATION, INT8)                                                                                                  \
    X(SAMPLES, INT8)                                                                                                   \
    X(TYPESET, INT8)                                                                                                   \
    X(TOTALS, BYTEA)                                                                                                   \
    X(PRIMARY, INT2)                                                                                                   \
    X(FORMAT, TEXT)                                                                                                    \
    X(TRACE, TEXT)                                                                                                     \
    X(ORIGINAL, INT8)                                                                                                  \
    X(BODY, BYTEA)
enum column {
#define X(name, type) COLUMN_##name,
    COLUMNS(X)
#undef X
        COLUMN_COUNT
};

static int64_t number_of(const struct pg_pack *p, const struct record *r, enum column column)
{
    switch (column) {
    case COLUMN_TIME:
        return r->time_ns;
    case COLUMN_SERVICE:
        return pg_service_id(p->host, r->series.project, r->series.service);
    case COLUMN_SERIES:
        return (int64_t)r->series_id;
    case COLUMN_IDENTITY:
        return r->identity;
    case COLUMN_DURATION:
        return r->duration_ns;
    case COLUMN_SAMPLES:
        return r->n_samples;
    case COLUMN_PRIMARY:
        return (int64_t)r->primary;
    default:
        return (int64_t)r->original_bytes;
    }
}

static struct str bytes_of(const struct record *r, enum column column)
{
    switch (column) {
    case COLUMN_CONTENT:
        return (struct str){(const char *)&r->content_id, sizeof r->content_id};
    case COLUMN_FORMAT:
        return r->format;
    case COLUMN_TRACE:
        return r->trace_id;
    default:
        return r->body;
    }
}

static void add_totals(struct buf *b, const struct record *r)
{
    struct buf totals = {0};

    blob_totals(&totals, r->types, r->n_types);
    b->failed |= totals.failed;
    pg_array_bytes(b, buf_view(&totals));
    buf_free(&totals);
}

static void add_value(const struct pg_pack *p, struct buf *b, enum column column, enum pg_type type, uint16_t i,
                      const int64_t typesets[GROUP_MAX])
{
    const struct record *r = p->group->records[i];

    if (column == COLUMN_PLACE || column == COLUMN_TYPESET)
        pg_array_int(b, type, column == COLUMN_PLACE ? i : typesets[i]);
    else if (column == COLUMN_TOTALS)
        add_totals(b, r);
    else if (type == PG_BYTEA || type == PG_TEXT)
        pg_array_bytes(b, bytes_of(r, column));
    else
        pg_array_int(b, type, number_of(p, r, column));
}

void pg_pack_profiles(struct pg_pack *p, const int64_t typesets[GROUP_MAX])
{
    static const enum pg_type types[COLUMN_COUNT] = {
#define X(name, type) PG_##type,
        COLUMNS(X)
#undef X
    };
    struct pg_statement *s = pg_batch_add(&p->batch, pg_sql[SQL_PUT_PROFILE]);
    uint32_t n = 0;

    for (uint16_t i = p->from; i < p->from + p->n; i++)
        n += pg_pack_wants(p, i);
    pg_param_int(s, PG_INT2, p->group->class_days);
    pg_param_int(s, PG_INT8, (int64_t)p->group->boot);
    pg_param_int(s, PG_INT8, (int64_t)p->group->id);
    pg_param_int(s, PG_INT8, day_now_ns());
    for (int column = 0; column < COLUMN_COUNT; column++) {
        struct buf *b = pg_param_array(s, types[column], n);

        for (uint16_t i = p->from; i < p->from + p->n; i++)
            if (pg_pack_wants(p, i))
                add_value(p, b, (enum column)column, types[column], i, typesets);
    }
}
