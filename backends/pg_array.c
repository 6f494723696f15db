/* Big-endian numbers; an array is its dimensions, then each value behind its length. */
#include "backends/pg_array.h"

/* Day 0 of PostgreSQL's dates is 2000-01-01. */
enum { DAYS_TO_2000 = 10957 };

static void add_be(struct buf *b, uint64_t v, size_t bytes)
{
    char out[8];

    for (size_t i = 0; i < bytes; i++)
        out[i] = (char)(uint8_t)(v >> 8 * (bytes - 1 - i));
    buf_add(b, out, bytes);
}

static size_t width(enum pg_type type)
{
    switch (type) {
    case PG_BOOL:
        return 1;
    case PG_INT2:
        return 2;
    case PG_INT4:
    case PG_DATE:
        return 4;
    default:
        return 8;
    }
}

static void add_int(struct buf *b, enum pg_type type, int64_t v)
{
    add_be(b, (uint64_t)(type == PG_DATE ? v - DAYS_TO_2000 : v), width(type));
}

static struct buf *next_param(struct pg_statement *s)
{
    ASSERT(s->n < PG_PARAMS_MAX);
    s->params[s->n] = (struct buf){0};
    return &s->params[s->n++];
}

void pg_param_int(struct pg_statement *s, enum pg_type type, int64_t v)
{
    add_int(next_param(s), type, v);
}

void pg_param_bytes(struct pg_statement *s, struct str v)
{
    buf_str(next_param(s), v);
}

struct buf *pg_param_array(struct pg_statement *s, enum pg_type type, uint32_t n)
{
    struct buf *b = next_param(s);

    add_be(b, n ? 1 : 0, 4); /* dimensions */
    add_be(b, 0, 4);         /* no NULLs */
    add_be(b, type, 4);
    if (n) {
        add_be(b, n, 4);
        add_be(b, 1, 4); /* first index */
    }
    return b;
}

void pg_array_int(struct buf *b, enum pg_type type, int64_t v)
{
    add_be(b, width(type), 4);
    add_int(b, type, v);
}

void pg_array_bytes(struct buf *b, struct str v)
{
    add_be(b, v.len, 4);
    buf_str(b, v);
}
