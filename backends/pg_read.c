/* Reading by name: the symbols of a service's days; whether a profile is there at all. */
#include "backends/pg_array.h"
#include "backends/pg_sql.h"
#include "backends/postgres_read.h"
#include "backends/postgres_store.h"

enum { READ_MS = 60000 };

struct blocks {
    block_row row;
    void *ctx;
    enum err err;
};

static enum err on_block(void *ctx, const struct pg_result *r, int row)
{
    struct blocks *b = ctx;

    b->err = b->row(b->ctx, pg_bytes(r, row, 0));
    return b->err;
}

enum err pg_symbols(struct sample_store *s, struct str project, struct str service, int32_t first, int32_t last,
                    block_row row, void *ctx, struct fault *f)
{
    struct pg_statement q = {.sql = pg_sql[SQL_GET_SYMBOLS]};
    struct blocks b = {.row = row, .ctx = ctx};
    struct pg_call *c = pg_call_take(s->pool, NULL);
    enum pg_call_end end;
    struct pg_fault why;

    if (!c)
        return fault_set(f, E_NO_MEMORY, NULL);
    pg_param_int(&q, PG_INT8, pg_service_id(s->host, project, service));
    pg_param_int(&q, PG_DATE, first);
    pg_param_int(&q, PG_DATE, last);
    end = pg_call_run(c, &q, PG_SINGLE, READ_MS, on_block, &b, &why);
    pg_statement_free(&q);
    pg_call_give(c);
    if (end == PG_CALL_STOPPED)
        return b.err;
    return end ? fault_set(f, E_STORE_DOWN, "the store cannot be read: %s", why.text) : E_OK;
}

static enum err on_found(void *ctx, const struct stored *s)
{
    (void)s;
    *(bool *)ctx = true;
    return E_OK;
}

/* Replicas share the database, not a disk: originals are not kept (design.md 6). */
enum err pg_original(struct sample_store *s, struct str project, struct attempt a, enum original_state *state,
                     struct buf *out, struct fault *f)
{
    struct selection sel = {.project = project, .profile = &a};
    bool found = false;
    enum err e = pg_scan(s, &sel, SCAN_META, on_found, &found, f);

    (void)out;
    *state = ORIGINAL_OFF;
    return e || found ? e : fault_set(f, E_NOT_FOUND, "no such profile");
}
