/* Labels, types and totals as bytes: counts and strings as everywhere in our own formats (codecs/pack.h). */
#include "backends/blob.h"

#include "codecs/pack.h"

void blob_labels(struct buf *out, const struct label *labels, uint32_t n)
{
    pack_u64(out, n);
    for (uint32_t i = 0; i < n; i++) {
        pack_str(out, labels[i].name);
        pack_str(out, labels[i].value);
    }
}

void blob_types(struct buf *out, const struct sample_type *types, uint32_t n)
{
    pack_u64(out, n);
    for (uint32_t i = 0; i < n; i++) {
        pack_str(out, types[i].type);
        pack_str(out, types[i].unit);
        pack_str(out, types[i].id);
        pack_u64(out, types[i].aggregation);
    }
}

void blob_totals(struct buf *out, const struct sample_type *types, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        pack_i64(out, types[i].total);
}

static enum err damaged(struct fault *f)
{
    return fault_set(f, E_INTERNAL, "a stored row is damaged");
}

/* A string of the blob that outlives it; false: no memory. */
static bool copy_str(struct unpack *u, struct arena *a, struct str *out)
{
    return arena_str(a, unpack_str(u), out);
}

enum err blob_read_labels(struct str blob, struct arena *a, struct label **labels, uint32_t *n, struct fault *f)
{
    struct unpack u = unpack_of(blob);

    *n = unpack_count(&u, 2);
    *labels = NEW(a, struct label, *n);
    if (!*labels && *n)
        return arena_error(a, f);
    for (uint32_t i = 0; i < *n && !u.bad; i++)
        if (!copy_str(&u, a, &(*labels)[i].name) || !copy_str(&u, a, &(*labels)[i].value))
            return arena_error(a, f);
    return u.bad ? damaged(f) : E_OK;
}

enum err blob_read_types(struct str blob, struct arena *a, struct sample_type **types, uint32_t *n, struct fault *f)
{
    struct unpack u = unpack_of(blob);

    *n = unpack_count(&u, 4);
    *types = NEW(a, struct sample_type, *n);
    if (!*types && *n)
        return arena_error(a, f);
    for (uint32_t i = 0; i < *n && !u.bad; i++) {
        struct sample_type *t = &(*types)[i];

        if (!copy_str(&u, a, &t->type) || !copy_str(&u, a, &t->unit) || !copy_str(&u, a, &t->id))
            return arena_error(a, f);
        t->aggregation = unpack_below(&u, AGG_AVERAGE + 1) == AGG_AVERAGE ? AGG_AVERAGE : AGG_SUM;
    }
    return u.bad ? damaged(f) : E_OK;
}

enum err blob_read_totals(struct str blob, struct sample_type *types, uint32_t n, struct fault *f)
{
    struct unpack u = unpack_of(blob);

    for (uint32_t i = 0; i < n; i++)
        types[i].total = unpack_i64(&u);
    return u.bad ? damaged(f) : E_OK;
}
