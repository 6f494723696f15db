/*
 * The statements of hour compaction (backends/hours.h); as in pg_sql.h, of which they are part. Of a day that is in
 * raw_gone and gone, the hours are all there is left: they are never dirty, and never replaced.
 */
#ifndef BACKENDS_PG_HOUR_SQL_H
#define BACKENDS_PG_HOUR_SQL_H

#define PG_DAY_OF(hour) "(date '1970-01-01' + (" hour " / 24)::int)"
#define PG_NOT_GONE " WHERE NOT EXISTS (SELECT FROM raw_gone r WHERE r.gone AND r.day = " PG_DAY_OF("h.hour") ")"

/* Days that have partitions of profiles. */
#define PG_PROFILE_DAYS                                                                                                \
    "SELECT DISTINCT to_date(right(d.relname, 8), 'YYYYMMDD') - date '1970-01-01' AS day FROM pg_inherits c JOIN "     \
    "pg_inherits i ON i.inhparent = c.inhrelid JOIN pg_class d ON d.oid = i.inhrelid WHERE c.inhparent = "             \
    "to_regclass('profile')"

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
    X(EACH_HOUR, "SELECT DISTINCT h.hour, v.project, v.name, ''::bytea FROM hour h JOIN service v ON v.id = h.service" \
                 " WHERE h.dead_ns = 0")                                                                               \
    X(LOCK_HOUR, "SELECT pg_try_advisory_xact_lock($1::bigint)")                                                       \
    X(DROP_DIRTY, "DELETE FROM dirty_hour WHERE service = $1::bigint AND hour = $2::bigint"                            \
                  " AND token = ANY($3::uuid[]) RETURNING 1")                                                          \
    X(END_HOURS, "UPDATE hour h SET dead_ns = $1::bigint" PG_NOT_GONE                                                  \
                 " AND h.service = $2::bigint AND h.hour = $3::bigint AND h.day = $4::date AND h.dead_ns = 0")         \
    X(PUT_HOUR,                                                                                                        \
      "INSERT INTO hour(class, day, service, hour, first_ns, boot, grp, place, about, body)"                           \
      " SELECT h.class, $3::date, $1::bigint, h.hour, h.first_ns, h.boot, h.grp, h.place, h.about, h.body"             \
      " FROM (SELECT $2::bigint AS hour, u.* FROM unnest($4::smallint[], $5::bigint[], $6::bigint[], $7::bigint[],"    \
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
    X(GET_RAW_SINCE, "SELECT max(day) + 1 - date '1970-01-01' FROM raw_gone")                                          \
    X(CLEAN_GONE, "DELETE FROM raw_gone WHERE day < $1::date OR (NOT gone AND day >= $2::date)")                       \
    X(NEXT_GONE,                                                                                                       \
      "SELECT d.day, (r.day IS NULL)::int FROM (" PG_PROFILE_DAYS ") d LEFT JOIN raw_gone r"                           \
      " ON r.day = date '1970-01-01' + d.day WHERE d.day < $1::int AND (r.day IS NULL OR (NOT r.gone AND r.told_ns "   \
      "<= $2::bigint))"                                                                                                \
      " AND NOT EXISTS (SELECT FROM dirty_hour WHERE hour >= d.day * 24::bigint AND hour < (d.day + 1) * 24::bigint)"  \
      " ORDER BY d.day LIMIT 1")                                                                                       \
    X(TELL_GONE,                                                                                                       \
      "WITH told AS (INSERT INTO raw_gone(day, told_ns, gone) VALUES($1::date, $2::bigint, false)"                     \
      " ON CONFLICT DO NOTHING RETURNING day) INSERT INTO dirty_hour(service, hour) SELECT p.service, p.hour FROM"     \
      " (SELECT DISTINCT service, time_ns / 3600000000000 AS hour FROM profile WHERE time_ns >= $3::bigint"            \
      " AND time_ns < $4::bigint) p WHERE EXISTS (SELECT FROM told) AND NOT EXISTS (SELECT FROM hour h"                \
      " WHERE h.service = p.service AND h.hour = p.hour AND h.day = $1::date AND h.dead_ns = 0)")

#endif
