/*
 * The statements of hour compaction (backends/hours.h); as in pg_sql.h, of which they are part. Of a day that is in
 * raw_gone and gone, the hours are all there is left: they are never dirty, and never replaced.
 */
#ifndef BACKENDS_PG_HOUR_SQL_H
#define BACKENDS_PG_HOUR_SQL_H

#define PG_DAY_OF(hour) "(date '1970-01-01' + (" hour " / 24)::int)"
#define PG_NOT_GONE " WHERE NOT EXISTS (SELECT FROM raw_gone r WHERE r.gone AND r.day = " PG_DAY_OF("h.hour") ")"

#define PG_HOUR_STATEMENTS(X)                                                                                          \
    X(PUT_DIRTY,                                                                                                       \
      "INSERT INTO dirty_hour(service, hour)"                                                                          \
      " SELECT * FROM unnest($1::bigint[], $2::bigint[]) AS h(service, hour)" PG_NOT_GONE " ON CONFLICT DO NOTHING")   \
    X(DIRTY_GROUPS, "INSERT INTO dirty_hour(service, hour) SELECT DISTINCT h.service, h.hour"                          \
                    " FROM unnest($1::bigint[], $2::bigint[], $3::date[]) AS g(boot, grp, day)"                        \
                    " JOIN profile p ON p.boot = g.boot AND p.grp = g.grp"                                             \
                    " AND p.time_ns >= (g.day - date '1970-01-01') * 86400000000000"                                   \
                    " AND p.time_ns < (g.day + 1 - date '1970-01-01') * 86400000000000"                                \
                    " CROSS JOIN LATERAL (VALUES (p.service, (p.time_ns - 600000000000) / 3600000000000),"             \
                    " (p.service, (p.time_ns + 600000000000) / 3600000000000)) AS h(service, hour)" PG_NOT_GONE        \
                    " ON CONFLICT DO NOTHING")                                                                         \
    X(EACH_DIRTY,                                                                                                      \
      "SELECT h.hour, v.project, v.name, h.token FROM dirty_hour h JOIN service v ON v.id = h.service" PG_NOT_GONE     \
      " AND h.hour <= $1::bigint ORDER BY h.service, h.hour, h.token")                                                 \
    X(EACH_HOUR, "SELECT DISTINCT h.hour, v.project, v.name FROM hour h JOIN service v ON v.id = h.service"            \
                 " WHERE h.dead_ns = 0")                                                                               \
    X(DROP_DIRTY, "DELETE FROM dirty_hour WHERE service = $1::bigint AND hour = $2::bigint"                            \
                  " AND token = ANY($3::uuid[]) RETURNING 1")                                                          \
    X(END_HOURS, "UPDATE hour h SET dead_ns = $1::bigint" PG_NOT_GONE                                                  \
                 " AND h.service = $2::bigint AND h.hour = $3::bigint AND h.day = $4::date AND h.dead_ns = 0")         \
    X(PUT_HOUR,                                                                                                        \
      "INSERT INTO hour(class, day, service, hour, first_ns, boot, grp, place, about, body)"                           \
      " SELECT h.class, $4::date, $2::bigint, h.hour, h.first_ns, h.boot, h.grp, h.place, h.about, h.body"             \
      " FROM (SELECT $3::bigint AS hour, u.* FROM unnest($1::smallint[], $5::bigint[], $6::bigint[], $7::bigint[],"    \
      " $8::smallint[], $9::bytea[], $10::bytea[]) AS u(class, first_ns, boot, grp, place, about, body)) "             \
      "h" PG_NOT_GONE)                                                                                                 \
    X(DROP_DEAD_HOURS, "DELETE FROM hour WHERE dead_ns > 0 AND dead_ns < $1::bigint")                                  \
    X(DROP_GONE_DIRTY, "DELETE FROM dirty_hour h USING raw_gone r WHERE r.gone AND r.day = " PG_DAY_OF("h.hour"))      \
    X(GET_HOURS,                                                                                                       \
      "SELECT 0, h.class, h.service, h.hour, h.id, h.first_ns, h.boot, h.grp, h.place FROM hour h"                     \
      " WHERE h.service = ANY($1::bigint[]) AND h.day = $2::date AND h.hour >= $3::bigint AND h.hour <= $4::bigint"    \
      " AND h.dead_ns = 0 UNION ALL SELECT DISTINCT 1, 0, d.service, d.hour, 0, 0, 0, 0, 0 FROM dirty_hour d"          \
      " WHERE d.service = ANY($1::bigint[]) AND d.hour >= $3::bigint AND d.hour <= $4::bigint"                         \
      " UNION ALL SELECT 2, 0, 0, 0, 0, 0, 0, 0, 0 FROM raw_gone r WHERE r.gone AND r.day = $2::date")                 \
    X(GET_HOUR_META,                                                                                                   \
      "SELECT first_ns, boot, grp, place, id, about FROM hour"                                                         \
      " WHERE day = $1::date AND id = ANY($2::bigint[]) ORDER BY first_ns, " PG_BOOT_ORDER ", grp, place, id")         \
    X(GET_HOUR_BODY,                                                                                                   \
      "SELECT first_ns, boot, grp, place, id, about, body FROM hour"                                                   \
      " WHERE day = $1::date AND id = ANY($2::bigint[]) ORDER BY first_ns, " PG_BOOT_ORDER ", grp, place, id")         \
    X(GET_RAW_SINCE, "SELECT max(day) + 1 - date '1970-01-01' FROM raw_gone")

#endif
