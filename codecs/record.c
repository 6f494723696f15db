/* Sealing a profile into its record: the packed body (codecs/record_body.h), the symbols beside it, ids, and copies. */
#include "codecs/record.h"

#include "codecs/pack.h"
#include "codecs/profile_pack.h"
#include "codecs/record_body.h"
#include "codecs/zstd.h"

#include <stdlib.h>

static void pack_sets(struct buf *b, const struct profile *p)
{
    pack_u64(b, p->n_sets);
    for (uint32_t i = 0; i < p->n_sets; i++) {
        pack_u64(b, p->set_at[i + 1] - p->set_at[i]);
        for (uint32_t j = p->set_at[i]; j < p->set_at[i + 1]; j++) {
            const struct sample_label *l = &p->labels[j];
            pack_str(b, l->key);
            pack_u64(b, l->numeric);
            pack_str(b, l->numeric ? l->unit : l->value);
            if (l->numeric)
                pack_i64(b, l->num);
        }
    }
}

static void pack_head(struct buf *b, const struct profile *p, struct str format)
{
    pack_str(b, p->series.project);
    series_pack(&p->series, b);
    pack_i64(b, p->time_ns);
    pack_i64(b, p->duration_ns);
    pack_str(b, p->period_type);
    pack_str(b, p->period_unit);
    pack_i64(b, p->period);
    pack_str(b, format);
    pack_str(b, p->comment);
    pack_u64(b, p->n_types);
    pack_u64(b, p->primary);
    types_pack(p->types, p->n_types, b);
    pack_sets(b, p);
    drops_pack(&p->drops, b);
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* 1 as soon as a value is negative (none should be), so that it is kept as it is. */
static uint64_t common_divisor(const int64_t *v, uint32_t n)
{
    uint64_t g = 0;

    for (uint32_t i = 0; i < n && g != 1; i++) {
        if (v[i] < 0)
            return 1;
        if (v[i])
            g = gcd((uint64_t)v[i], g);
    }
    return g;
}

static void pack_values(struct buf *b, const int64_t *v, uint32_t n)
{
    uint64_t g = common_divisor(v, n);

    pack_u64(b, g);
    if (g == 0 || !pack_room(b, (size_t)n * PACK_VARINT_MAX))
        return;
    if (g == 1)
        for (uint32_t i = 0; i < n; i++)
            pack_raw_u64(b, (uint64_t)v[i]);
    else
        for (uint32_t i = 0; i < n; i++)
            pack_raw_u64(b, (uint64_t)v[i] / g);
}

/* The column of stacks; puts the ids of those in use into ids, in the order of first use. */
static uint32_t pack_stacks(struct buf *b, const struct profile *p, const uint64_t *stack_ids, uint32_t *number,
                            uint64_t *ids)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < p->n_samples; i++) {
        uint32_t stack = p->sample_stack[i];
        pack_raw_u64(b, number[stack]);
        if (number[stack])
            continue;
        ids[next++] = stack_ids[stack];
        number[stack] = next;
    }
    return next;
}

static void pack_columns(struct buf *b, const struct profile *p)
{
    if (!pack_room(b, (size_t)p->n_samples * PACK_VARINT_MAX))
        return;
    for (uint32_t i = 0, last = 0; i < p->n_samples; last = p->sample_set[i++])
        pack_raw_u64(b, pack_zigzag((int64_t)p->sample_set[i] - last));
    for (uint32_t t = 0; t < p->n_types; t++)
        pack_values(b, p->values[t], p->n_samples);
}

bool record_body(const struct profile *p, const uint64_t *stack_ids, struct str format, int level, struct buf *out)
{
    struct buf packed = {0};
    uint32_t *number = calloc((size_t)p->n_stacks + 1, sizeof *number);
    uint64_t *ids = malloc(((size_t)p->n_stacks + 1) * sizeof *ids);
    bool ok = number && ids;

    if (ok) {
        pack_head(&packed, p, format);
        pack_u64(&packed, p->n_samples);
        ok = pack_room(&packed, (size_t)p->n_samples * PACK_VARINT_MAX);
    }
    if (ok) {
        uint32_t n = pack_stacks(&packed, p, stack_ids, number, ids);
        pack_columns(&packed, p);
        buf_add(out, RECORD_MAGIC, RECORD_MAGIC_BYTES);
        pack_u64(out, n);
        pack_ids(out, ids, n);
        ok = !packed.failed && !out->failed && zstd_pack(buf_view(&packed), level, out);
    }
    free(ids);
    free(number);
    buf_free(&packed);
    return ok;
}

/* Of project, __name__ and labels: each behind its length, so that no two series read alike. False: no memory. */
static bool series_id(const struct series *s, const struct hash_key *k, uint64_t *id)
{
    struct buf b = {0};

    pack_str(&b, s->project);
    pack_str(&b, s->name);
    for (uint32_t i = 0; i < s->n_labels; i++) {
        pack_str(&b, s->labels[i].name);
        pack_str(&b, s->labels[i].value);
    }
    bool ok = !b.failed;
    if (ok)
        *id = hash64(k, b.p, b.len) >> 1;
    if (ok && *id == 0)
        *id = 1;
    buf_free(&b);
    return ok;
}

/* At most as long as any tracer makes them. */
static bool is_trace_id(struct str s)
{
    enum { HEX_DIGITS_MAX = 64 };

    for (size_t i = 0; i < s.len; i++)
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f') || (s.p[i] >= 'A' && s.p[i] <= 'F')))
            return false;
    return s.len <= HEX_DIGITS_MAX;
}

static struct str trace_of_set(const struct profile *p, uint32_t set)
{
    for (uint32_t j = p->set_at[set]; j < p->set_at[set + 1]; j++)
        if (!p->labels[j].numeric && label_link(p->labels[j].key) == LINK_TRACE && is_trace_id(p->labels[j].value))
            return p->labels[j].value;
    return (struct str){"", 0};
}

/* The trace of the first sample that has one. Neighbours share a set mostly, so only changes are looked at. */
static struct str first_trace(const struct profile *p)
{
    for (uint32_t i = 0; i < p->n_samples; i++) {
        if (p->sample_set[i] == 0 || (i && p->sample_set[i] == p->sample_set[i - 1]))
            continue;
        struct str trace = trace_of_set(p, p->sample_set[i]);
        if (trace.len)
            return trace;
    }
    return (struct str){"", 0};
}

static bool seal_body(struct record *r, const struct profile *p)
{
    struct buf body = {0};

    if (!record_body(p, r->symbols->stack_ids, r->format, RECORD_ZSTD_LEVEL, &body)) {
        buf_free(&body);
        return false;
    }
    char *fit = realloc(body.p, body.len);
    r->body = (struct str){fit ? fit : body.p, body.len};
    r->bytes += (fit ? body.len : body.cap) + r->symbols->bytes;
    return true;
}

struct record *record_seal(const struct profile *p, const struct record_origin *o, const struct hash_key *k)
{
    struct record *r = record_copy(&(struct record){
        .series = p->series,
        .time_ns = p->time_ns,
        .duration_ns = p->duration_ns,
        .types = p->types,
        .n_types = p->n_types,
        .primary = p->primary,
        .n_samples = p->n_samples,
        .format = o->format,
        .original_bytes = o->original_bytes,
        .content_id = o->content_id,
        .identity = o->identity,
        .trace_id = first_trace(p),
        .drops = p->drops,
        .original = o->keep_original ? o->original : (struct str){NULL, 0},
    });

    if (!r)
        return NULL;
    r->symbols = symbols_seal(p, k);
    if (r->symbols && series_id(&p->series, k, &r->series_id) && seal_body(r, p))
        return r;
    record_free(r);
    return NULL;
}

void record_free(struct record *r)
{
    if (!r)
        return;
    symbols_free(r->symbols);
    free((char *)(uintptr_t)r->body.p);
    free(r);
}
