/* Values as PostgreSQL's binary format has them: what goes into the parameters of a statement. */
#ifndef BACKENDS_PG_ARRAY_H
#define BACKENDS_PG_ARRAY_H

#include "backends/pg_wire.h"

/* Types by their numbers, which never change. */
enum pg_type {
    PG_BOOL = 16,
    PG_BYTEA = 17,
    PG_INT8 = 20,
    PG_INT2 = 21,
    PG_INT4 = 23,
    PG_TEXT = 25,
    PG_DATE = 1082,
    PG_UUID = 2950
};

/* The next parameter of a statement: a single value. */
void pg_param_int(struct pg_statement *s, enum pg_type type,
                  int64_t v);                              /* any of the whole numbers; PG_DATE: since 1970 */
void pg_param_bytes(struct pg_statement *s, struct str v); /* text or bytea */

/* The next parameter: an array of n values of one type, each to be added. */
struct buf *pg_param_array(struct pg_statement *s, enum pg_type type, uint32_t n);
void pg_array_int(struct buf *b, enum pg_type type, int64_t v);
void pg_array_bytes(struct buf *b, struct str v);

#endif
