/* Entries of the upload ledger as bytes. */
#include "backends/uploads.h"
#include "codecs/pack.h"

enum { VERSION = 1 };

const char *const upload_verdict_names[UPLOAD_VERDICTS] = {
#define X(id, name) name,
    UPLOAD_VERDICT_MAP(X)
#undef X
};

static void pack_names(struct buf *out, const struct str *names, uint32_t n, uint32_t more)
{
    pack_u64(out, n);
    for (uint32_t i = 0; i < n; i++)
        pack_str(out, names[i]);
    pack_u64(out, more);
}

void upload_entry_pack(const struct upload_entry *e, struct buf *out)
{
    const uint64_t numbers[] = {e->writer,   e->number,   e->verdict, e->status, e->content, e->bytes,
                                e->inflated, e->profiles, e->stored,  e->empty,  e->refused, e->failed};
    const struct str texts[] = {e->key, e->reason, e->message, e->route, e->format, e->client, e->name, e->profile};

    buf_char(out, VERSION);
    for (size_t i = 0; i < COUNTOF(numbers); i++)
        pack_u64(out, numbers[i]);
    pack_i64(out, e->time_ns);
    pack_i64(out, e->first_ns);
    pack_i64(out, e->last_ns);
    for (size_t i = 0; i < COUNTOF(texts); i++)
        pack_str(out, texts[i]);
    pack_names(out, e->services, e->n_services, e->more_services);
    pack_names(out, e->types, e->n_types, e->more_types);
}

static void unpack_names(struct unpack *u, struct str *names, uint32_t *n, uint32_t *more)
{
    *n = unpack_below(u, UPLOAD_NAMES_MAX + 1);
    for (uint32_t i = 0; i < *n; i++)
        names[i] = unpack_str(u);
    *more = unpack_below(u, UINT32_MAX);
}

bool upload_entry_unpack(struct str packed, struct upload_entry *e)
{
    struct unpack u = unpack_of(packed);
    struct str *texts[] = {&e->key, &e->reason, &e->message, &e->route, &e->format, &e->client, &e->name, &e->profile};
    uint32_t *counts[] = {&e->profiles, &e->stored, &e->empty, &e->refused, &e->failed};

    *e = (struct upload_entry){0};
    if (unpack_u64(&u) != VERSION)
        return false;
    e->writer = unpack_u64(&u);
    e->number = unpack_u64(&u);
    e->verdict = unpack_below(&u, UPLOAD_VERDICTS);
    e->status = unpack_below(&u, 1000);
    e->content = unpack_u64(&u);
    e->bytes = unpack_u64(&u);
    e->inflated = unpack_u64(&u);
    for (size_t i = 0; i < COUNTOF(counts); i++)
        *counts[i] = unpack_below(&u, UINT32_MAX);
    e->time_ns = unpack_i64(&u);
    e->first_ns = unpack_i64(&u);
    e->last_ns = unpack_i64(&u);
    for (size_t i = 0; i < COUNTOF(texts); i++)
        *texts[i] = unpack_str(&u);
    unpack_names(&u, e->services, &e->n_services, &e->more_services);
    unpack_names(&u, e->types, &e->n_types, &e->more_types);
    return !u.bad && u.p == u.end;
}
