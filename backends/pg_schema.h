/*
 * The tables, their versions and their partitions. Runs on a thread of its own (pg_upkeep.h): what needs a lock may
 * wait for it. All of it is done under one advisory lock of the transaction, so that any number of replicas may start,
 * make partitions and expire at once; and each piece is one statement, so that PgBouncer does not mind.
 */
#ifndef BACKENDS_PG_SCHEMA_H
#define BACKENDS_PG_SCHEMA_H

#include "backends/pg_call.h"
#include "codecs/hash.h"

struct pg_day {
    uint16_t class_days;
    int32_t day;
};

struct pg_versions {
    int64_t was, is; /* 0: no schema */
};
/* Makes or migrates the tables; fixed: refuses to. E_INTERNAL: not ours to write to (a newer schema, an older one that
 * is fixed, another key); else E_STORE_DOWN. */
enum err pg_schema_prepare(struct pg_call *c, const struct hash_key *key, bool fixed, struct pg_versions *v,
                           struct fault *f) MUST_CHECK;
/* Partitions of every table for a class's days first..last. */
enum err pg_schema_make_days(struct pg_call *c, uint16_t class_days, int32_t first, int32_t last,
                             struct fault *f) MUST_CHECK;
/* Those of all classes that exist, of any table. *days is the caller's to free. */
enum err pg_schema_list_days(struct pg_call *c, struct pg_day **days, size_t *n, struct fault *f) MUST_CHECK;
/* Detaches and drops what there is of a (class, day), or goes on with that. May wait for readers for some seconds, and
 * then gives up; nobody waits for it. */
enum err pg_schema_drop_day(struct pg_call *c, struct pg_day day, struct fault *f) MUST_CHECK;
/* Single profiles of a day, of every class, unless an hour of it is dirty by now. Gives up within a second
 * where readers hold it. */
enum err pg_schema_drop_profiles(struct pg_call *c, int32_t day, struct fault *f) MUST_CHECK;

#endif
