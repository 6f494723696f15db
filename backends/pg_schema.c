/* The versions of the schema, and the statements that keep its partitions. */
#include "backends/pg_schema.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/day.h"
#include "backends/pg_array.h"

enum { VERSION = 2, DDL_MS = 30000, DROP_MS = 5000 };

/* "flamegat", the lock of every change to tables. */
#define LOCK "PERFORM pg_advisory_xact_lock(7380381011834003828); "
#define MIGRATE_HEAD                                                                                                   \
    "DO $do$ BEGIN " LOCK "CREATE TABLE IF NOT EXISTS meta(key text PRIMARY KEY, value text NOT NULL);"                \
    " IF coalesce((SELECT value::int FROM meta WHERE key = 'version'), 0) < "
#define MIGRATE_TAIL(version)                                                                                          \
    " INSERT INTO meta VALUES('version', '" version "') ON CONFLICT (key) DO UPDATE SET value = excluded.value;"       \
    " END IF; END $do$"

/*
 * What leads from each version to the next; a step once released never changes. A profile's key starts with its
 * attempt, by which single ones are asked for, and which grows: inserts go to the end of the index. Bodies are
 * compressed already. Marks only ever lose bits.
 */
static const char *const steps[VERSION] = {
    MIGRATE_HEAD
    "1 THEN"
    " INSERT INTO meta VALUES('store', md5(random()::text || clock_timestamp()::text));"
    " CREATE TABLE service(id bigint PRIMARY KEY, project text NOT NULL, name text NOT NULL);"
    " CREATE INDEX service_project ON service(project, name);"
    " CREATE TABLE typeset(id bigint PRIMARY KEY, types bytea NOT NULL);"
    " CREATE TABLE series(class smallint NOT NULL, day date NOT NULL, service bigint NOT NULL, id bigint NOT NULL,"
    " name text NOT NULL, spy text NOT NULL, labels bytea NOT NULL, PRIMARY KEY(service, id, class, day))"
    " PARTITION BY LIST(class);"
    " CREATE TABLE symbols(class smallint NOT NULL, day date NOT NULL, service bigint NOT NULL, writer bigint NOT NULL,"
    " seq bigint NOT NULL, block bytea NOT NULL, PRIMARY KEY(service, writer, seq, class, day))"
    " PARTITION BY LIST(class);"
    " ALTER TABLE symbols ALTER block SET STORAGE EXTERNAL;"
    " CREATE TABLE profile(class smallint NOT NULL, time_ns bigint NOT NULL, boot bigint NOT NULL, grp bigint NOT NULL,"
    " place smallint NOT NULL, service bigint NOT NULL, series bigint NOT NULL, content bytea NOT NULL,"
    " has_identity boolean NOT NULL, duration_ns bigint NOT NULL, stored_ns bigint NOT NULL, n_samples bigint NOT NULL,"
    " typeset bigint NOT NULL, totals bytea NOT NULL, main_type smallint NOT NULL, format text NOT NULL,"
    " trace text NOT NULL, original_bytes bigint NOT NULL, body bytea NOT NULL,"
    " PRIMARY KEY(boot, grp, place, class, time_ns)) PARTITION BY LIST(class);"
    " ALTER TABLE profile ALTER body SET STORAGE EXTERNAL;"
    " CREATE INDEX profile_window ON profile(service, time_ns);"
    " CREATE TABLE mark(class smallint NOT NULL, day date NOT NULL, boot bigint NOT NULL, grp bigint NOT NULL,"
    " told bigint NOT NULL, PRIMARY KEY(boot, grp, class, day)) PARTITION BY LIST(class);"
    " DECLARE t text; c text; BEGIN"
    " FOREACH t IN ARRAY ARRAY['series', 'symbols', 'profile', 'mark'] LOOP"
    " FOREACH c IN ARRAY ARRAY['1', '3', '7', '15', '30', '90'] LOOP"
    " EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES IN (%s) PARTITION BY RANGE(%s)', t || '_c' || c, t, c,"
    " CASE t WHEN 'profile' THEN 'time_ns' ELSE 'day' END);"
    " END LOOP; END LOOP; END;" MIGRATE_TAIL("1"),
    /* Hours (backends/pg_hours.c). dead_ns 0: readers take it; else it was replaced then, and stays for those who have
     * listed it. A dirty row's token is its own. raw_gone: days whose single profiles are gone, or will be. */
    MIGRATE_HEAD
    "2 THEN"
    " CREATE SEQUENCE hour_id;"
    " CREATE TABLE hour(class smallint NOT NULL, day date NOT NULL, id bigint NOT NULL DEFAULT nextval('hour_id'),"
    " service bigint NOT NULL, hour bigint NOT NULL, dead_ns bigint NOT NULL DEFAULT 0, first_ns bigint NOT NULL,"
    " boot bigint NOT NULL, grp bigint NOT NULL, place smallint NOT NULL, about bytea NOT NULL, body bytea NOT NULL,"
    " PRIMARY KEY(id, class, day)) PARTITION BY LIST(class);"
    " ALTER TABLE hour ALTER body SET STORAGE EXTERNAL;"
    " CREATE INDEX hour_window ON hour(service, hour);"
    " CREATE INDEX hour_dead ON hour(dead_ns) WHERE dead_ns > 0;"
    " CREATE TABLE dirty_hour(service bigint NOT NULL, hour bigint NOT NULL,"
    " token uuid NOT NULL DEFAULT gen_random_uuid(), PRIMARY KEY(service, hour, token));"
    " CREATE TABLE raw_gone(day date PRIMARY KEY, told_ns bigint NOT NULL, gone boolean NOT NULL);"
    " INSERT INTO dirty_hour(service, hour) SELECT DISTINCT service, time_ns / 3600000000000 FROM profile;"
    " DECLARE c text; BEGIN"
    " FOREACH c IN ARRAY ARRAY['1', '3', '7', '15', '30', '90'] LOOP"
    " EXECUTE format('CREATE TABLE %I PARTITION OF hour FOR VALUES IN (%s) PARTITION BY RANGE(day)', 'hour_c' || c, c);"
    " END LOOP; END;" MIGRATE_TAIL("2"),
};

/*
 * A partition is made alone and attached, which leaves readers and writers of its parent alone; CREATE ... PARTITION OF
 * would wait for all of them. The lock comes first: a detach under way waits for whoever has touched the parent. $1 to
 * $3 are put in by hand, since DO takes no parameters.
 */
static const char make_days[] =
    "DO $do$ DECLARE t text; d int; child text; BEGIN " LOCK "SET LOCAL lock_timeout = '10s';"
    " FOREACH t IN ARRAY ARRAY['series', 'symbols', 'profile', 'mark', 'hour'] LOOP FOR d IN %d..%d LOOP"
    " child := format('%%s_c%u_%%s', t, to_char(date '1970-01-01' + d, 'YYYYMMDD'));"
    " CONTINUE WHEN to_regclass(child) IS NOT NULL;"
    " EXECUTE format('LOCK TABLE %%I IN SHARE UPDATE EXCLUSIVE MODE', t || '_c%u');"
    " EXECUTE format('CREATE TABLE %%I (LIKE %%I INCLUDING ALL)', child, t || '_c%u');"
    " IF t = 'profile' THEN"
    " EXECUTE format('ALTER TABLE %%I ATTACH PARTITION %%I FOR VALUES FROM (%%s) TO (%%s)', t || '_c%u', child,"
    " d * 86400000000000::bigint, (d + 1) * 86400000000000::bigint);"
    " ELSE EXECUTE format('ALTER TABLE %%I ATTACH PARTITION %%I FOR VALUES FROM (%%L) TO (%%L)', t || '_c%u', child,"
    " date '1970-01-01' + d, date '1970-01-01' + d + 1);"
    " END IF; END LOOP; END LOOP; END $do$";

/*
 * DETACH ... CONCURRENTLY waits for who uses the parent, and keeps nobody from using it; it has to be a statement of
 * its own, and what a crash leaves of it has to be finished. Then the table is alone and can be dropped.
 */
static const char *const tables[] = {"series", "symbols", "profile", "mark", "hour"};
enum { STEPS_MAX = 6 };
enum table_state { TABLE_NONE, TABLE_ALONE, TABLE_ATTACHED, TABLE_PENDING };
static const char state_of_table[] =
    "SELECT CASE WHEN i.inhrelid IS NULL THEN 1 WHEN i.inhdetachpending THEN 3 ELSE 2 END"
    " FROM pg_class d LEFT JOIN pg_inherits i ON i.inhrelid = d.oid WHERE d.oid = to_regclass('%s')";

/* With the locks nobody can put anything of that day; what has been put before has left its dirty rows. */
static const char drop_profiles[] =
    "DO $do$ DECLARE d date := date '1970-01-01' + %d; t text; BEGIN " LOCK "SET LOCAL lock_timeout = '500ms';"
    " FOR t IN SELECT c.relname FROM pg_class c WHERE c.oid = to_regclass(c.relname::text)"
    " AND c.relname ~ ('^(profile|mark)_c[0-9]+_' || to_char(d, 'YYYYMMDD') || '$') ORDER BY c.relname DESC LOOP"
    " EXECUTE format('LOCK TABLE %%I IN ACCESS EXCLUSIVE MODE', t); END LOOP;"
    " IF EXISTS (SELECT FROM dirty_hour WHERE hour >= %d * 24::bigint AND hour < (%d + 1) * 24::bigint) THEN RETURN;"
    " END IF; UPDATE raw_gone SET gone = true WHERE day = d;"
    " FOR t IN SELECT c.relname FROM pg_class c WHERE c.oid = to_regclass(c.relname::text)"
    " AND c.relname ~ ('^(profile|mark)_c[0-9]+_' || to_char(d, 'YYYYMMDD') || '$') LOOP"
    " EXECUTE format('TRUNCATE %%I', t); END LOOP; END $do$";

/* Also of those that are detached and not dropped. */
static const char list_days[] =
    "SELECT DISTINCT substring(relname from '_c([0-9]+)_')::int, to_date(right(relname, 8), 'YYYYMMDD') - date"
    " '1970-01-01' FROM pg_class WHERE relkind = 'r' AND oid = to_regclass(relname::text)"
    " AND relname ~ '^(series|symbols|profile|mark|hour)_c[0-9]+_[0-9]{8}$'";

static enum err run(struct pg_call *c, const char *sql, int64_t deadline_ms, pg_row row, void *ctx, struct fault *f)
{
    struct pg_statement s = {.sql = sql};
    struct pg_fault why;

    switch (pg_call_run(c, &s, PG_WHOLE, deadline_ms, row, ctx, &why)) {
    case PG_CALL_OK:
        return E_OK;
    case PG_CALL_STOPPED:
        return fault_set(f, E_NO_MEMORY, NULL);
    default:
        return fault_set(f, E_STORE_DOWN, "%s%s%s", why.state, why.state[0] ? ": " : "", why.text);
    }
}

/* What meta says. */
struct meta {
    int64_t version;
    bool any_key, same_key;
    char key[17];
};

static enum err on_meta(void *ctx, const struct pg_result *r, int row)
{
    struct meta *m = ctx;

    m->version = pg_int(r, row, 0);
    m->any_key = pg_bytes(r, row, 1).len > 0;
    m->same_key = str_eq(pg_bytes(r, row, 1), str_of(m->key));
    return E_OK;
}

static enum err on_version(void *ctx, const struct pg_result *r, int row)
{
    *(int64_t *)ctx = pg_int(r, row, 0);
    return E_OK;
}

/* 0: there is none. */
static enum err read_version(struct pg_call *c, int64_t *version, struct fault *f)
{
    static const char there[] = "SELECT (to_regclass('meta') IS NOT NULL)::int";
    static const char of_meta[] = "SELECT value::int FROM meta WHERE key = 'version'";
    enum err e = run(c, there, DDL_MS, on_version, version, f);

    return e || !*version ? e : (*version = 0, run(c, of_meta, DDL_MS, on_version, version, f));
}

static enum err claim_key(struct pg_call *c, const struct meta *m, struct fault *f)
{
    char sql[160];

    snprintf(sql, sizeof sql, "INSERT INTO meta VALUES('hash_key', '%s') ON CONFLICT DO NOTHING", m->key);
    return run(c, sql, DDL_MS, NULL, NULL, f);
}

static enum err judge(const struct meta *m, struct fault *f)
{
    if (m->version > VERSION)
        return fault_set(
            f, E_INTERNAL,
            "samples: the schema in PostgreSQL is version %lld, newer than %d, the last that this program knows",
            (long long)m->version, VERSION);
    if (m->any_key && !m->same_key)
        return fault_set(f, E_INTERNAL,
                         "samples: what is stored in PostgreSQL was written with another key (hash_key_file); its ids "
                         "would not match");
    return E_OK;
}

/* Older, and not to be changed here. */
static enum err refuse_older(int64_t version, struct fault *f)
{
    if (!version)
        return fault_set(f, E_INTERNAL,
                         "samples: there is no schema in PostgreSQL, version %d is needed; migrate is manual: run "
                         "`flamegate migrate` first",
                         VERSION);
    return fault_set(f, E_INTERNAL,
                     "samples: the schema in PostgreSQL is version %lld, %d is needed; migrate is manual: run "
                     "`flamegate migrate` first",
                     (long long)version, VERSION);
}

enum err pg_schema_prepare(struct pg_call *c, const struct hash_key *key, bool fixed, struct pg_versions *v,
                           struct fault *f)
{
    static const char read_meta[] = "SELECT (SELECT value::int FROM meta WHERE key = 'version'),"
                                    " (SELECT value FROM meta WHERE key = 'hash_key')";
    struct meta m = {0};
    enum err e = read_version(c, &m.version, f);

    v->was = v->is = m.version;
    hash_key_fingerprint(key, m.key);
    if (!e && fixed && m.version < VERSION)
        return refuse_older(m.version, f);
    for (int64_t step = m.version; !e && step < VERSION; step++)
        e = run(c, steps[step], DDL_MS, NULL, NULL, f);
    if (!e && m.version <= VERSION)
        e = claim_key(c, &m, f);
    if (!e)
        e = run(c, read_meta, DDL_MS, on_meta, &m, f);
    v->is = m.version;
    return e ? e : judge(&m, f);
}

enum err pg_schema_make_days(struct pg_call *c, uint16_t class_days, int32_t first, int32_t last, struct fault *f)
{
    char sql[sizeof make_days + 64];
    unsigned k = class_days;

    snprintf(sql, sizeof sql, make_days, (int)first, (int)last, k, k, k, k, k);
    return run(c, sql, DDL_MS, NULL, NULL, f);
}

struct listing {
    struct pg_day *days;
    size_t n, cap;
};

static enum err on_day(void *ctx, const struct pg_result *r, int row)
{
    struct listing *l = ctx;

    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 64;
        struct pg_day *days = realloc(l->days, cap * sizeof *days);

        if (!days)
            return E_NO_MEMORY;
        l->days = days;
        l->cap = cap;
    }
    l->days[l->n++] = (struct pg_day){(uint16_t)pg_int(r, row, 0), (int32_t)pg_int(r, row, 1)};
    return E_OK;
}

enum err pg_schema_list_days(struct pg_call *c, struct pg_day **days, size_t *n, struct fault *f)
{
    struct listing l = {0};
    enum err e = run(c, list_days, DROP_MS, on_day, &l, f);

    if (e) {
        free(l.days);
        return e;
    }
    *days = l.days;
    *n = l.n;
    return E_OK;
}

static enum err on_state(void *ctx, const struct pg_result *r, int row)
{
    *(enum table_state *)ctx = (enum table_state)pg_int(r, row, 0);
    return E_OK;
}

/* One step towards a table's end. *gone: there is none. */
static enum err drop_step(struct pg_call *c, const char *parent, const char *child, bool *gone, struct fault *f)
{
    enum table_state state = TABLE_NONE;
    char sql[512];
    enum err e;

    snprintf(sql, sizeof sql, state_of_table, child);
    e = run(c, sql, DROP_MS, on_state, &state, f);
    *gone = !e && state == TABLE_NONE;
    if (e || *gone)
        return e;
    if (state == TABLE_ALONE)
        snprintf(sql, sizeof sql, "DROP TABLE IF EXISTS %s", child);
    else
        snprintf(sql, sizeof sql, "ALTER TABLE %s DETACH PARTITION %s %s", parent, child,
                 state == TABLE_PENDING ? "FINALIZE" : "CONCURRENTLY");
    return run(c, sql, DROP_MS, NULL, NULL, f);
}

/* What fails may have been done by another replica meanwhile. */
static enum err drop_table(struct pg_call *c, const char *table, struct pg_day day, struct fault *f)
{
    char text[DAY_TEXT], parent[32], child[48];
    bool gone = false;
    int failed = 0;

    day_format(day.day, text);
    snprintf(parent, sizeof parent, "%s_c%u", table, (unsigned)day.class_days);
    snprintf(child, sizeof child, "%s_%.4s%.2s%.2s", parent, text, text + 5, text + 8);
    for (int step = 0; step < STEPS_MAX && failed < 2 && !gone; step++) {
        *f = (struct fault){0};
        failed += drop_step(c, parent, child, &gone, f) != E_OK;
    }
    return gone ? E_OK : f->err ? f->err : fault_set(f, E_STORE_DOWN, "%s is still there", child);
}

enum err pg_schema_drop_day(struct pg_call *c, struct pg_day day, struct fault *f)
{
    enum err e = E_OK;

    for (size_t i = 0; !e && i < COUNTOF(tables); i++)
        e = drop_table(c, tables[i], day, f);
    return e;
}

enum err pg_schema_drop_profiles(struct pg_call *c, int32_t day, struct fault *f)
{
    char sql[sizeof drop_profiles + 64];

    snprintf(sql, sizeof sql, drop_profiles, (int)day, (int)day, (int)day);
    return run(c, sql, DROP_MS, NULL, NULL, f);
}
