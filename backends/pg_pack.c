/*
 * One statement per table, the same tables in the same order and each one's rows sorted by their key, in every group of
 * every replica: so no two of them ever wait for each other. Rows that groups share (services, series, type sets) are
 * sent until they are known to be there.
 */
#include "backends/pg_pack.h"

#include <stdlib.h>

#include "backends/blob.h"
#include "backends/day.h"
#include "backends/hours.h"
#include "backends/known.h"
#include "backends/pg_array.h"
#include "backends/pg_sql.h"

struct pg_stored {
    const struct store_host *host;
    uv_mutex_t lock;
    struct known *known;
    struct idset *shared;
    size_t charged;
};

/* A row of a shared table: its key, and a record that says the rest. */
struct item {
    int64_t service, id;
    const struct record *record;
};
enum { OPEN_S = 120 };
enum shared_kind { SHARED_SERVICE, SHARED_TYPESET, SHARED_SERIES, SHARED_DIRTY };

const char *const pg_sql[SQL_COUNT] = {
#define X(name, text) [SQL_##name] = text,
    PG_STATEMENTS(X)
#undef X
};

int64_t pg_hour_closes(int64_t hour)
{
    return (hour + 1) * HOUR_NS + OPEN_S * INT64_C(1000000000);
}

int64_t pg_service_id(const struct store_host *h, struct str project, struct str service)
{
    uint64_t pair[2] = {hash64(h->key, project.p, project.len), hash64(h->key, service.p, service.len)};

    return (int64_t)(hash64(h->key, pair, sizeof pair) >> 1);
}

static void charge(struct pg_stored *s)
{
    size_t bytes = (s->known ? known_bytes(s->known) : 0) + (s->shared ? idset_bytes(s->shared) : 0);

    s->host->account(s->host->ctx, "symbols", (int64_t)bytes - (int64_t)s->charged);
    s->charged = bytes;
}

struct pg_stored *pg_stored_new(const struct store_host *h)
{
    struct pg_stored *s = calloc(1, sizeof *s);

    if (!s || uv_mutex_init(&s->lock)) {
        free(s);
        return NULL;
    }
    s->host = h;
    s->known = known_new(h->symbols_memory / 2);
    if (s->known)
        return s;
    pg_stored_free(s);
    return NULL;
}

void pg_stored_free(struct pg_stored *s)
{
    if (!s)
        return;
    known_free(s->known);
    idset_free(s->shared);
    s->known = NULL;
    s->shared = NULL;
    charge(s);
    uv_mutex_destroy(&s->lock);
    free(s);
}

void pg_stored_forget_day(struct pg_stored *s, uint16_t class_days, int32_t day)
{
    uv_mutex_lock(&s->lock);
    if (s->known)
        known_forget(s->known, class_days, day);
    idset_free(s->shared);
    s->shared = NULL;
    charge(s);
    uv_mutex_unlock(&s->lock);
}

void pg_stored_forget_all(struct pg_stored *s)
{
    uv_mutex_lock(&s->lock);
    known_free(s->known);
    idset_free(s->shared);
    s->known = known_new(s->host->symbols_memory / 2); /* NULL: nothing is ever known, which only costs */
    s->shared = NULL;
    charge(s);
    uv_mutex_unlock(&s->lock);
}

bool pg_pack_wants(const struct pg_pack *p, uint16_t i)
{
    return p->group->results[i] != PUT_BAD;
}

static int order_item(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int c = (x->service > y->service) - (x->service < y->service);

    return c ? c : (x->id > y->id) - (x->id < y->id);
}

/* Sorts, and keeps one of each that is not known to be stored. */
static int pick(struct pg_pack *p, enum shared_kind kind, struct item *items, int n)
{
    int kept = 0;

    qsort(items, (size_t)n, sizeof *items, order_item);
    for (int i = 0; i < n; i++) {
        int64_t key[] = {kind, kind == SHARED_SERIES ? p->group->class_days : 0,
                         kind == SHARED_SERIES ? p->group->day : 0, items[i].service, items[i].id};
        uint64_t id = hash64(p->host->key, key, sizeof key);

        if (kept && order_item(&items[kept - 1], &items[i]) == 0)
            continue;
        if (p->stored->shared && idset_has(p->stored->shared, id))
            continue;
        p->shared[p->n_shared++] = id;
        items[kept++] = items[i];
    }
    return kept;
}

static int list_items(const struct pg_pack *p, enum shared_kind kind, const int64_t typesets[GROUP_MAX],
                      struct item items[GROUP_MAX])
{
    int n = 0;

    for (uint16_t i = p->from; i < p->from + p->n; i++) {
        const struct record *r = p->group->records[i];
        int64_t service = pg_service_id(p->host, r->series.project, r->series.service);

        if (!pg_pack_wants(p, i))
            continue;
        items[n++] = (struct item){.service = kind == SHARED_TYPESET ? 0 : service,
                                   .id = kind == SHARED_TYPESET  ? typesets[i]
                                         : kind == SHARED_SERIES ? (int64_t)r->series_id
                                                                 : 0,
                                   .record = r};
    }
    return n;
}

static void add_services(struct pg_pack *p)
{
    struct item items[GROUP_MAX];
    int n = pick(p, SHARED_SERVICE, items, list_items(p, SHARED_SERVICE, NULL, items));
    struct pg_statement *s;
    struct buf *b;

    if (!n)
        return;
    s = pg_batch_add(&p->batch, pg_sql[SQL_PUT_SERVICE]);
    b = pg_param_array(s, PG_INT8, (uint32_t)n);
    for (int i = 0; i < n; i++)
        pg_array_int(b, PG_INT8, items[i].service);
    b = pg_param_array(s, PG_TEXT, (uint32_t)n);
    for (int i = 0; i < n; i++)
        pg_array_bytes(b, items[i].record->series.project);
    b = pg_param_array(s, PG_TEXT, (uint32_t)n);
    for (int i = 0; i < n; i++)
        pg_array_bytes(b, items[i].record->series.service);
}

static void add_typesets(struct pg_pack *p, const int64_t typesets[GROUP_MAX])
{
    struct item items[GROUP_MAX];
    int n = pick(p, SHARED_TYPESET, items, list_items(p, SHARED_TYPESET, typesets, items));
    struct pg_statement *s;
    struct buf *b;

    if (!n)
        return;
    s = pg_batch_add(&p->batch, pg_sql[SQL_PUT_TYPESET]);
    b = pg_param_array(s, PG_INT8, (uint32_t)n);
    for (int i = 0; i < n; i++)
        pg_array_int(b, PG_INT8, items[i].id);
    b = pg_param_array(s, PG_BYTEA, (uint32_t)n);
    for (int i = 0; i < n; i++) {
        struct buf types = {0};

        blob_types(&types, items[i].record->types, items[i].record->n_types);
        b->failed |= types.failed;
        pg_array_bytes(b, buf_view(&types));
        buf_free(&types);
    }
}

static void add_series(struct pg_pack *p)
{
    struct item items[GROUP_MAX];
    int n = pick(p, SHARED_SERIES, items, list_items(p, SHARED_SERIES, NULL, items));
    struct pg_statement *s;
    struct buf *b;

    if (!n)
        return;
    s = pg_batch_add(&p->batch, pg_sql[SQL_PUT_SERIES]);
    pg_param_int(s, PG_INT2, p->group->class_days);
    pg_param_int(s, PG_DATE, p->group->day);
    b = pg_param_array(s, PG_INT8, (uint32_t)n);
    for (int i = 0; i < n; i++)
        pg_array_int(b, PG_INT8, items[i].service);
    b = pg_param_array(s, PG_INT8, (uint32_t)n);
    for (int i = 0; i < n; i++)
        pg_array_int(b, PG_INT8, items[i].id);
    b = pg_param_array(s, PG_TEXT, (uint32_t)n);
    for (int i = 0; i < n; i++)
        pg_array_bytes(b, items[i].record->series.name);
    b = pg_param_array(s, PG_TEXT, (uint32_t)n);
    for (int i = 0; i < n; i++)
        pg_array_bytes(b, items[i].record->series.spy);
    b = pg_param_array(s, PG_BYTEA, (uint32_t)n);
    for (int i = 0; i < n; i++) {
        struct buf labels = {0};

        blob_labels(&labels, items[i].record->series.labels, items[i].record->series.n_labels);
        b->failed |= labels.failed;
        pg_array_bytes(b, buf_view(&labels));
        buf_free(&labels);
    }
}

/* Symbols of the rows of a service. */
static uint32_t symbols_of(const struct pg_pack *p, int64_t service, const struct symbols *list[GROUP_MAX])
{
    uint32_t n = 0;

    for (uint16_t i = p->from; i < p->from + p->n; i++) {
        const struct record *r = p->group->records[i];

        if (pg_pack_wants(p, i) && r->symbols &&
            pg_service_id(p->host, r->series.project, r->series.service) == service)
            list[n++] = r->symbols;
    }
    return n;
}

/* The block of what is new of a service; nothing new: empty. false: no memory. */
static bool make_block(struct pg_pack *p, int64_t service, struct buf *block)
{
    const struct symbols *list[GROUP_MAX];
    struct known_key key = {p->group->class_days, p->group->day, service};
    struct idset *fresh = idset_new();
    bool ok = fresh && symbols_block(list, symbols_of(p, service, list),
                                     p->stored->known ? known_get(p->stored->known, key) : NULL, fresh, block);

    idset_free(fresh);
    return ok && !block->failed;
}

static bool add_symbols(struct pg_pack *p)
{
    struct buf blocks[GROUP_MAX] = {{0}}, *b;
    struct item items[GROUP_MAX];
    int n = list_items(p, SHARED_SERVICE, NULL, items);
    struct pg_statement *s;
    bool ok = true;

    qsort(items, (size_t)n, sizeof *items, order_item);
    for (int i = 0; ok && i < n; i++) {
        if (i && items[i - 1].service == items[i].service)
            continue;
        ok = make_block(p, items[i].service, &blocks[p->n_services]);
        if (ok && blocks[p->n_services].len)
            p->services[p->n_services++] = items[i].service;
    }
    if (ok && p->n_services) {
        s = pg_batch_add(&p->batch, pg_sql[SQL_PUT_SYMBOLS]);
        pg_param_int(s, PG_INT2, p->group->class_days);
        pg_param_int(s, PG_DATE, p->group->day);
        pg_param_int(s, PG_INT8, (int64_t)p->writer);
        b = pg_param_array(s, PG_INT8, (uint32_t)p->n_services);
        for (int i = 0; i < p->n_services; i++)
            pg_array_int(b, PG_INT8, p->services[i]);
        b = pg_param_array(s, PG_INT8, (uint32_t)p->n_services);
        for (int i = 0; i < p->n_services; i++)
            pg_array_int(b, PG_INT8, (int64_t)++ * p->seq);
        b = pg_param_array(s, PG_BYTEA, (uint32_t)p->n_services);
        for (int i = 0; i < p->n_services; i++)
            pg_array_bytes(b, buf_view(&blocks[i]));
    }
    for (int i = 0; i < GROUP_MAX; i++)
        buf_free(&blocks[i]);
    return ok;
}

static struct item dirty_hour(const struct pg_pack *p, const struct record *r, int64_t margin)
{
    bool over = false;

    return (struct item){.service = pg_service_id(p->host, r->series.project, r->series.service),
                         .id = hour_of(add_sat(r->time_ns, margin, &over))};
}

/*
 * The hours that these rows are in or near to. One row of this process is enough for an hour as long as no listing can
 * have begun (pg_hour_closes); whatever comes later leaves one of its own.
 */
static void add_dirty(struct pg_pack *p)
{
    struct item items[2 * GROUP_MAX];
    int64_t now = day_now_ns();
    int n = 0, kept = 0;
    struct pg_statement *s;
    struct buf *b;

    for (uint16_t i = p->from; i < p->from + p->n; i++) {
        if (!pg_pack_wants(p, i))
            continue;
        items[n++] = dirty_hour(p, p->group->records[i], -HOUR_MARGIN_NS);
        items[n++] = dirty_hour(p, p->group->records[i], HOUR_MARGIN_NS);
    }
    qsort(items, (size_t)n, sizeof *items, order_item);
    for (int i = 0; i < n; i++) {
        int64_t key[] = {SHARED_DIRTY, items[i].service, items[i].id};
        uint64_t id = hash64(p->host->key, key, sizeof key);
        bool open = now < pg_hour_closes(items[i].id);

        if (kept && order_item(&items[kept - 1], &items[i]) == 0)
            continue;
        if (open && p->stored->shared && idset_has(p->stored->shared, id))
            continue;
        if (open)
            p->shared[p->n_shared++] = id;
        items[kept++] = items[i];
    }
    if (!kept)
        return;
    s = pg_batch_add(&p->batch, pg_sql[SQL_PUT_DIRTY]);
    b = pg_param_array(s, PG_INT8, (uint32_t)kept);
    for (int i = 0; i < kept; i++)
        pg_array_int(b, PG_INT8, items[i].service);
    b = pg_param_array(s, PG_INT8, (uint32_t)kept);
    for (int i = 0; i < kept; i++)
        pg_array_int(b, PG_INT8, items[i].id);
}

/* The id of a record's set of types. false: no memory. */
static bool name_typesets(const struct pg_pack *p, int64_t typesets[GROUP_MAX])
{
    struct buf types = {0};

    for (uint16_t i = p->from; i < p->from + p->n; i++) {
        const struct record *r = p->group->records[i];

        types.len = 0;
        blob_types(&types, r->types, r->n_types);
        typesets[i] = types.failed ? 0 : (int64_t)hash64(p->host->key, types.p, types.len);
    }
    buf_free(&types);
    return !types.failed;
}

void pg_pack_run(struct pg_job *j)
{
    struct pg_pack *p = (struct pg_pack *)j;
    int64_t typesets[GROUP_MAX];

    pg_batch_free(&p->batch);
    p->n_services = p->n_shared = 0;
    uv_mutex_lock(&p->stored->lock);
    pg_batch_add(&p->batch, pg_sql[SQL_HEAD_PUT]);
    p->ok = name_typesets(p, typesets);
    add_services(p);
    add_typesets(p, typesets);
    add_series(p);
    p->ok = p->ok && add_symbols(p);
    add_dirty(p);
    pg_pack_profiles(p, typesets);
    p->ok = p->ok && !pg_batch_failed(&p->batch);
    uv_mutex_unlock(&p->stored->lock);
}

/* Bounded, like what is known of symbols: forgotten whole, which costs rows that are there already. */
static void learn_shared(struct pg_pack *p)
{
    struct pg_stored *s = p->stored;

    if (s->shared && idset_bytes(s->shared) > s->host->symbols_memory / 8) {
        idset_free(s->shared);
        s->shared = NULL;
    }
    if (!s->shared)
        s->shared = idset_new();
    for (int i = 0; s->shared && i < p->n_shared; i++)
        if (!idset_add(s->shared, p->shared[i]))
            break;
}

void pg_pack_learn(struct pg_job *j)
{
    struct pg_pack *p = (struct pg_pack *)j;

    uv_mutex_lock(&p->stored->lock);
    for (int i = 0; p->stored->known && i < p->n_services; i++) {
        const struct symbols *list[GROUP_MAX];
        uint32_t n = symbols_of(p, p->services[i], list);

        known_add(p->stored->known, (struct known_key){p->group->class_days, p->group->day, p->services[i]}, list, n);
    }
    learn_shared(p);
    charge(p->stored);
    uv_mutex_unlock(&p->stored->lock);
}
