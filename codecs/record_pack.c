/*
 * A whole record as bytes, its symbols and original included: what a spool keeps. Strings and numbers as everywhere in
 * our own formats; the symbols are zstd-1, the body is already.
 */
#include "codecs/record.h"

#include <stdlib.h>

#include "codecs/pack.h"
#include "codecs/profile_pack.h"
#include "codecs/zstd.h"

enum { ZSTD_LEVEL = 1 };
/* No profile's symbols are larger: uploads are bounded far below. */
static const size_t SYMBOLS_MAX = (size_t)1 << 30;

static void pack_symbols(struct buf *b, const struct symbols *s)
{
    struct buf plain = {0}, packed = {0};

    pack_u64(b, s != NULL);
    if (!s)
        return;
    symbols_pack(s, &plain);
    b->failed |= plain.failed || !zstd_pack(buf_view(&plain), ZSTD_LEVEL, &packed) || packed.failed;
    pack_str(b, buf_view(&packed));
    buf_free(&plain);
    buf_free(&packed);
}

void record_pack(const struct record *r, struct buf *b)
{
    uint64_t content[] = {r->content_id.hi, r->content_id.lo};

    pack_str(b, r->series.project);
    series_pack(&r->series, b);
    pack_ids(b, &r->series_id, 1);
    pack_i64(b, r->time_ns);
    pack_i64(b, r->duration_ns);
    pack_u64(b, r->n_types);
    types_pack(r->types, r->n_types, b);
    pack_u64(b, r->primary);
    pack_u64(b, r->n_samples);
    pack_str(b, r->format);
    pack_u64(b, r->original_bytes);
    pack_ids(b, content, COUNTOF(content));
    pack_u64(b, r->identity);
    pack_str(b, r->trace_id);
    drops_pack(&r->drops, b);
    pack_str(b, r->body);
    pack_str(b, r->original);
    pack_symbols(b, r->symbols);
}

/* The arrays are the caller's to free; false: no memory. */
static bool read_series(struct unpack *u, struct series *s)
{
    s->project = unpack_str(u);
    series_unpack(u, s);
    s->labels = calloc((size_t)s->n_labels + 1, sizeof *s->labels);
    if (s->labels)
        labels_unpack(u, s->labels, s->n_labels);
    return s->labels;
}

static bool read_types(struct unpack *u, struct record *r)
{
    r->n_types = types_count(u);
    r->types = calloc((size_t)r->n_types + 1, sizeof *r->types);
    if (r->types)
        types_unpack(u, r->types, r->n_types);
    r->primary = unpack_below(u, (uint64_t)r->n_types + 1);
    return r->types;
}

static void read_rest(struct unpack *u, struct record *r)
{
    uint64_t content[2];

    r->n_samples = unpack_below(u, UINT32_MAX);
    r->format = unpack_str(u);
    r->original_bytes = unpack_u64(u);
    unpack_ids(u, content, COUNTOF(content));
    r->content_id = (struct hash128){content[0], content[1]};
    r->identity = unpack_below(u, 2);
    r->trace_id = unpack_str(u);
    drops_unpack(u, &r->drops);
    r->body = unpack_str(u);
    r->original = unpack_str(u);
}

static enum err read_symbols(struct unpack *u, struct record *r, struct fault *f)
{
    bool any = unpack_below(u, 2);
    struct str packed = any ? unpack_str(u) : (struct str){"", 0};
    struct buf plain = {0};
    enum err e;

    if (u->bad || !any)
        return u->bad ? fault_set(f, E_BAD_INPUT, "not a whole record") : E_OK;
    if (!zstd_unpack(packed, SYMBOLS_MAX, &plain))
        e = fault_set(f, plain.failed ? E_NO_MEMORY : E_BAD_INPUT, "the symbols of a record cannot be unpacked");
    else
        e = symbols_unpack(buf_view(&plain), &r->symbols, f);
    buf_free(&plain);
    if (!e)
        r->bytes += r->symbols->bytes;
    return e;
}

enum err record_unpack(struct unpack *u, struct record **out, struct fault *f)
{
    struct record borrowed = {0}, *r = NULL;
    bool memory = read_series(u, &borrowed.series);
    enum err e = E_OK;

    unpack_ids(u, &borrowed.series_id, 1);
    borrowed.time_ns = unpack_i64(u);
    borrowed.duration_ns = unpack_i64(u);
    memory = read_types(u, &borrowed) && memory;
    read_rest(u, &borrowed);
    if (memory && u->bad)
        e = fault_set(f, E_BAD_INPUT, "not a whole record");
    else if (!memory || !(r = record_copy(&borrowed)))
        e = fault_set(f, E_NO_MEMORY, NULL);
    else
        e = read_symbols(u, r, f);
    free(borrowed.series.labels);
    free(borrowed.types);
    if (e)
        record_free(r);
    else
        *out = r;
    return e;
}
