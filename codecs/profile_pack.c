/* The parts that our formats have in common (profile_pack.h), written and read back. */
#include "codecs/profile_pack.h"

void series_pack(const struct series *s, struct buf *b)
{
    pack_str(b, s->service);
    pack_str(b, s->name);
    pack_str(b, s->spy);
    pack_u64(b, s->n_labels);
    for (uint32_t i = 0; i < s->n_labels; i++) {
        pack_str(b, s->labels[i].name);
        pack_str(b, s->labels[i].value);
    }
}

void series_unpack(struct unpack *u, struct series *s)
{
    s->service = unpack_str(u);
    s->name = unpack_str(u);
    s->spy = unpack_str(u);
    s->n_labels = unpack_count(u, 2);
}

void labels_unpack(struct unpack *u, struct label *labels, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        labels[i].name = unpack_str(u);
        labels[i].value = unpack_str(u);
    }
}

void types_pack(const struct sample_type *t, uint32_t n, struct buf *b)
{
    for (uint32_t i = 0; i < n; i++) {
        pack_str(b, t[i].type);
        pack_str(b, t[i].unit);
        pack_str(b, t[i].id);
        pack_u64(b, t[i].aggregation);
        pack_i64(b, t[i].total);
    }
}

uint32_t types_count(struct unpack *u)
{
    return unpack_count(u, 5);
}

void types_unpack(struct unpack *u, struct sample_type *t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        t[i].type = unpack_str(u);
        t[i].unit = unpack_str(u);
        t[i].id = unpack_str(u);
        t[i].aggregation = unpack_below(u, 2) ? AGG_AVERAGE : AGG_SUM;
        t[i].total = unpack_i64(u);
    }
}

void drops_pack(const struct drops *d, struct buf *b)
{
    pack_u64(b, d->broken_references);
    pack_u64(b, d->negative_values);
    pack_u64(b, d->zero_samples);
    pack_u64(b, d->truncated_stacks);
    pack_u64(b, d->saturated);
}

void drops_unpack(struct unpack *u, struct drops *d)
{
    d->broken_references = unpack_below(u, UINT64_MAX);
    d->negative_values = unpack_below(u, UINT64_MAX);
    d->zero_samples = unpack_below(u, UINT64_MAX);
    d->truncated_stacks = unpack_below(u, UINT64_MAX);
    d->saturated = unpack_below(u, 2);
}
