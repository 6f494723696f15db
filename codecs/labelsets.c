/* Label sets by content; see codecs/labelsets.h. Senders choose labels, so the table's key is random. */
#include "codecs/labelsets.h"

#include "codecs/hash.h"
#include "codecs/idmap.h"
#include "codecs/pack.h"

#include <stdlib.h>

enum { FIRST_SETS = 16, FIRST_LABELS = 64 };

struct labelsets {
    struct arena *a;
    struct hash_key key;
    struct idmap number_of;
    struct buf scratch;
    uint32_t *set_at;
    struct sample_label *labels;
    uint32_t n_sets, sets_cap;
    size_t labels_cap;
};

struct labelsets *labelsets_new(struct arena *a)
{
    struct labelsets *s = calloc(1, sizeof *s);
    uint32_t zero;

    if (!s)
        return NULL;
    s->a = a;
    hash_key_random(&s->key);
    s->sets_cap = FIRST_SETS;
    s->set_at = NEW(a, uint32_t, FIRST_SETS + 1);
    if (s->set_at && labelsets_add(s, NULL, 0, &zero))
        return s;
    labelsets_free(s);
    return NULL;
}

/* Everything of a set behind its lengths: two sets read alike only if they are equal. */
static bool content_hash(struct labelsets *s, const struct sample_label *l, uint32_t n, uint64_t *hash)
{
    struct buf *b = &s->scratch;

    b->len = 0;
    pack_u64(b, n);
    for (uint32_t i = 0; i < n; i++) {
        pack_str(b, l[i].key);
        pack_u64(b, l[i].numeric);
        pack_str(b, l[i].numeric ? l[i].unit : l[i].value);
        pack_i64(b, l[i].numeric ? l[i].num : 0);
    }
    if (b->failed)
        return false;
    *hash = hash64(&s->key, b->p, b->len);
    return true;
}

static bool room(struct labelsets *s, uint32_t n)
{
    size_t end = s->set_at[s->n_sets], cap = s->labels_cap ? s->labels_cap : FIRST_LABELS;

    if (s->n_sets == s->sets_cap) {
        uint32_t *at = GROW(s->a, s->set_at, uint32_t, s->sets_cap + (size_t)1, s->sets_cap * (size_t)2 + 1);
        if (!at)
            return false;
        s->set_at = at;
        s->sets_cap *= 2;
    }
    while (cap < end + n)
        cap *= 2;
    if (cap == s->labels_cap)
        return true;
    struct sample_label *l = GROW(s->a, s->labels, struct sample_label, s->labels_cap, cap);
    if (!l)
        return false;
    s->labels = l;
    s->labels_cap = cap;
    return true;
}

static bool append(struct labelsets *s, const struct sample_label *from, uint32_t n)
{
    struct sample_label *to = s->labels + s->set_at[s->n_sets];

    for (uint32_t i = 0; i < n; i++) {
        to[i] = from[i];
        if (!arena_str(s->a, from[i].key, &to[i].key) || !arena_str(s->a, from[i].value, &to[i].value) ||
            !arena_str(s->a, from[i].unit, &to[i].unit))
            return false;
    }
    s->n_sets++;
    s->set_at[s->n_sets] = s->set_at[s->n_sets - 1] + n;
    return true;
}

bool labelsets_add(struct labelsets *s, const struct sample_label *labels, uint32_t n, uint32_t *number)
{
    uint64_t hash;

    if (!content_hash(s, labels, n, &hash))
        return false;
    *number = idmap_add(&s->number_of, hash, s->n_sets);
    if (*number != s->n_sets)
        return *number != IDMAP_NONE;
    return room(s, n) && append(s, labels, n);
}

void labelsets_view(const struct labelsets *s, uint32_t **set_at, struct sample_label **labels, uint32_t *n_sets)
{
    *set_at = s->set_at;
    *labels = s->labels;
    *n_sets = s->n_sets;
}

void labelsets_free(struct labelsets *s)
{
    if (!s)
        return;
    idmap_free(&s->number_of);
    buf_free(&s->scratch);
    free(s);
}
