/*
 * Hours in a file of the store (backends/hours.h): the schema and the statements.
 *
 * dirty: by the file of the put that left it, whatever the hour. gen tells rows that a listing has seen from those that
 * came after. hour: dead_ns 0: readers take it; else it is on its way in, or it was replaced at that time and stays for
 * readers who have listed it already.
 */
#ifndef BACKENDS_SQLITE_HOUR_SQL_H
#define BACKENDS_SQLITE_HOUR_SQL_H

#define FILE_HOUR_SCHEMA                                                                                               \
    "CREATE TABLE dirty(service INTEGER NOT NULL, hour INTEGER NOT NULL, gen INTEGER NOT NULL,"                        \
    " PRIMARY KEY(service, hour, gen)) WITHOUT ROWID;"                                                                 \
    "CREATE TABLE hour(id INTEGER PRIMARY KEY, service INTEGER NOT NULL, hour INTEGER NOT NULL,"                       \
    " dead_ns INTEGER NOT NULL, first_ns INTEGER NOT NULL, boot INTEGER NOT NULL, grp INTEGER NOT NULL,"               \
    " place INTEGER NOT NULL, about BLOB NOT NULL);"                                                                   \
    "CREATE INDEX hour_service ON hour(service, hour);"                                                                \
    "CREATE INDEX hour_dead ON hour(dead_ns) WHERE dead_ns > 0;"                                                       \
    "CREATE TABLE hour_body(id INTEGER PRIMARY KEY, body BLOB NOT NULL);"

#define FILE_HOUR_STATEMENTS(X)                                                                                        \
    X(PUT_DIRTY, "INSERT OR IGNORE INTO dirty(service, hour, gen) VALUES(?1, ?2, ?3)")                                 \
    X(PUT_DIRTY_GROUP, "INSERT OR IGNORE INTO dirty(service, hour, gen)"                                               \
                       " SELECT DISTINCT service, (time_ns + ?4) / 3600000000000, ?3 FROM profile"                     \
                       " WHERE boot = ?1 AND grp = ?2")                                                                \
    X(DROP_DIRTY, "DELETE FROM dirty WHERE service = ?1 AND hour = ?2 AND gen <> ?3")                                  \
    X(GET_DIRTY, "SELECT DISTINCT hour FROM dirty WHERE service = ?1 AND hour BETWEEN ?2 AND ?3")                      \
    X(EACH_DIRTY,                                                                                                      \
      "SELECT DISTINCT d.hour, d.service, v.project, v.name FROM dirty d JOIN service v ON v.id = d.service"           \
      " WHERE d.hour <= ?1")                                                                                           \
    X(EACH_HOUR, "SELECT DISTINCT h.hour, h.service, v.project, v.name FROM hour h JOIN service v ON v.id = h.service" \
                 " WHERE h.hour <= ?1 AND h.dead_ns = 0")                                                              \
    X(PUT_HOUR, "INSERT INTO hour(service, hour, dead_ns, first_ns, boot, grp, place, about)"                          \
                " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                                                             \
    X(PUT_HOUR_BODY, "INSERT INTO hour_body(id, body) VALUES(?1, ?2)")                                                 \
    X(END_HOURS, "UPDATE hour SET dead_ns = ?3 WHERE service = ?1 AND hour = ?2 AND dead_ns = 0")                      \
    X(BEGIN_HOUR, "UPDATE hour SET dead_ns = 0 WHERE id = ?1")                                                         \
    X(DROP_HOUR_BODIES, "DELETE FROM hour_body WHERE id IN (SELECT id FROM hour WHERE dead_ns > 0 AND dead_ns < ?1)")  \
    X(DROP_HOURS, "DELETE FROM hour WHERE dead_ns > 0 AND dead_ns < ?1")                                               \
    X(GET_HOURS, "SELECT id, hour, first_ns, boot, grp, place FROM hour"                                               \
                 " WHERE service = ?1 AND hour BETWEEN ?2 AND ?3 AND dead_ns = 0")                                     \
    X(GET_HOUR, "SELECT about FROM hour WHERE id = ?1")                                                                \
    X(GET_HOUR_BODY, "SELECT body FROM hour_body WHERE id = ?1")                                                       \
    X(ANY_DIRTY, "SELECT 1 FROM dirty WHERE hour BETWEEN ?1 AND ?2 LIMIT 1")                                           \
    X(PUT_META, "INSERT OR REPLACE INTO meta(key, value) VALUES(?1, ?2)")                                              \
    X(LAST_PROFILE, "SELECT coalesce(max(id), 0) FROM profile")                                                        \
    X(DROP_BODIES, "DELETE FROM body WHERE id IN (SELECT id FROM profile WHERE id <= ?1 ORDER BY id LIMIT ?2)")        \
    X(DROP_PROFILES, "DELETE FROM profile WHERE id IN (SELECT id FROM profile WHERE id <= ?1 ORDER BY id LIMIT ?2)")   \
    X(FREE_PAGES, "SELECT freelist_count FROM pragma_freelist_count, pragma_auto_vacuum"                               \
                  " WHERE auto_vacuum = 2 AND freelist_count > 0")                                                     \
    X(DROP_SHARES, "DELETE FROM share WHERE rowid IN (SELECT rowid FROM share LIMIT ?1)")

#endif
