/*
 * Every statement that reads or writes samples. Parameters are binary, each cast to its type; none is prepared, none
 * needs a session of its own, so that PgBouncer may hand each transaction to another connection.
 *
 * Tables are partitioned by class, then by day (backends/pg_schema.h); every read of them says the time or the days, so
 * that the others are not even looked at. ORDER BY: the order of attempts is that of unsigned numbers (once_order).
 */
#ifndef BACKENDS_PG_SQL_H
#define BACKENDS_PG_SQL_H

#include "backends/pg_hour_sql.h"

#define PG_WINDOW " FROM profile WHERE service = ANY($1::bigint[]) AND time_ns >= $2::bigint AND time_ns <= $3::bigint"
#define PG_CHOSEN PG_WINDOW " AND series = ANY($4::bigint[])"
#define PG_BOOT_ORDER "boot # (-9223372036854775808)::bigint"
#define PG_LIST_COLUMNS "time_ns, boot, grp, place, service, series, content, has_identity, typeset"
#define PG_ROW_COLUMNS                                                                                                 \
    "time_ns, boot, grp, place, service, series, duration_ns, stored_ns, n_samples, typeset, totals, main_type,"       \
    " format, trace, original_bytes, class"

/* Name, text. HEAD_*: the first statement of a transaction; its second column is the database's identity. */
#define PG_STATEMENTS(X)                                                                                               \
    X(HEAD_PUT, "SELECT set_config('statement_timeout', '2000', true),"                                                \
                " (SELECT system_identifier FROM pg_control_system())::text || '.' ||"                                 \
                " left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) || '.' ||"                                     \
                " (SELECT value FROM meta WHERE key = 'store')")                                                       \
    X(HEAD_MARK, "SELECT set_config('statement_timeout', '2000', true),"                                               \
                 " set_config('synchronous_commit', 'off', true)")                                                     \
    X(PUT_SERVICE, "INSERT INTO service(id, project, name)"                                                            \
                   " SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[]) ON CONFLICT DO NOTHING")               \
    X(PUT_TYPESET, "INSERT INTO typeset(id, types)"                                                                    \
                   " SELECT * FROM unnest($1::bigint[], $2::bytea[]) ON CONFLICT DO NOTHING")                          \
    X(PUT_SERIES,                                                                                                      \
      "INSERT INTO series(class, day, service, id, name, spy, labels) SELECT $1::smallint, $2::date, u.*"              \
      " FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::bytea[]) AS u ON CONFLICT DO NOTHING")     \
    X(PUT_SYMBOLS, "INSERT INTO symbols(class, day, service, writer, seq, block)"                                      \
                   " SELECT $1::smallint, $2::date, u.service, $3::bigint, u.seq, u.block"                             \
                   " FROM unnest($4::bigint[], $5::bigint[], $6::bytea[]) AS u(service, seq, block)"                   \
                   " ON CONFLICT DO NOTHING")                                                                          \
    X(PUT_PROFILE,                                                                                                     \
      "INSERT INTO profile(class, boot, grp, stored_ns, time_ns, place, service, series, content, has_identity,"       \
      " duration_ns, n_samples, typeset, totals, main_type, format, trace, original_bytes, body)"                      \
      " SELECT $1::smallint, $2::bigint, $3::bigint, $4::bigint, u.* FROM unnest($5::bigint[], $6::smallint[],"        \
      " $7::bigint[], $8::bigint[], $9::bytea[], $10::boolean[], $11::bigint[], $12::bigint[], $13::bigint[],"         \
      " $14::bytea[], $15::smallint[], $16::text[], $17::text[], $18::bigint[], $19::bytea[]) AS u"                    \
      " ON CONFLICT DO NOTHING")                                                                                       \
    X(PUT_MARK,                                                                                                        \
      "INSERT INTO mark(class, day, boot, grp, told) SELECT * FROM unnest($1::smallint[], $2::date[], $3::bigint[],"   \
      " $4::bigint[], $5::bigint[]) ON CONFLICT (boot, grp, class, day) DO UPDATE"                                     \
      " SET told = mark.told & excluded.told")                                                                         \
    PG_HOUR_STATEMENTS(X)                                                                                              \
    X(GET_DAYS, "SELECT day FROM (" PG_PROFILE_DAYS ") days WHERE day >= $1::int AND day <= $2::int")                  \
    X(GET_SERVICES, "SELECT id, name FROM service WHERE project = $1::text ORDER BY name")                             \
    X(GET_SERVICE, "SELECT id, name FROM service WHERE id = $1::bigint AND project = $2::text")                        \
    X(GET_WINDOW, "SELECT " PG_LIST_COLUMNS PG_WINDOW)                                                                 \
    X(GET_ATTEMPT, "SELECT " PG_LIST_COLUMNS " FROM profile"                                                           \
                   " WHERE boot = $1::bigint AND grp = $2::bigint AND place = $3::smallint")                           \
    X(GET_SERIES,                                                                                                      \
      "SELECT DISTINCT ON (id) id, service, name, spy, labels FROM series WHERE service = ANY($1::bigint[])"           \
      " AND id = ANY($2::bigint[]) AND day >= $3::date AND day <= $4::date")                                           \
    X(GET_TYPESETS, "SELECT id, types FROM typeset WHERE id = ANY($1::bigint[])")                                      \
    X(GET_MARKS, "SELECT boot, grp, told FROM mark WHERE (boot, grp) IN"                                               \
                 " (SELECT * FROM unnest($1::bigint[], $2::bigint[])) AND day >= $3::date AND day <= $4::date")        \
    X(GET_META, "SELECT " PG_ROW_COLUMNS PG_CHOSEN " ORDER BY time_ns, " PG_BOOT_ORDER ", grp, place")                 \
    X(GET_META_NEWEST,                                                                                                 \
      "SELECT " PG_ROW_COLUMNS PG_CHOSEN " ORDER BY time_ns DESC, " PG_BOOT_ORDER " DESC, grp DESC, place DESC")       \
    X(GET_BODY, "SELECT " PG_ROW_COLUMNS ", body" PG_CHOSEN " ORDER BY time_ns, " PG_BOOT_ORDER ", grp, place")        \
    X(GET_BODY_NEWEST, "SELECT " PG_ROW_COLUMNS ", body" PG_CHOSEN " ORDER BY time_ns DESC, " PG_BOOT_ORDER            \
                       " DESC, grp DESC, place DESC")                                                                  \
    X(GET_SYMBOLS, "SELECT block FROM symbols WHERE service = $1::bigint AND day >= $2::date AND day <= $3::date"      \
                   " ORDER BY day, class, writer, seq")

enum pg_sql {
#define X(name, text) SQL_##name,
    PG_STATEMENTS(X)
#undef X
        SQL_COUNT
};
extern const char *const pg_sql[SQL_COUNT];

#endif
