/* Samples: the fields there are most of, so the numbers of a packed field are read in one tight loop. */
#include "codecs/pprof_fields.h"

/* A label that says nothing (no text, no number, no unit) is left out, as google/pprof does. */
static enum step add_label(struct pprof *d, struct str msg)
{
    struct pprof_label l = {0};
    struct pb c = pb_of(msg);
    struct pb_field f;

    while (pb_next(&c, &f)) {
        if (f.num <= 4 && f.wire != PB_VARINT)
            return pprof_malformed(d, "a Label has a field of the wrong type");
        if (f.num == 1)
            l.key_s = pprof_string_index(f.u);
        else if (f.num == 2)
            l.str_s = pprof_string_index(f.u);
        else if (f.num == 3)
            l.num = (int64_t)f.u;
        else if (f.num == 4)
            l.unit_s = pprof_string_index(f.u);
    }
    if (c.bad)
        return pprof_malformed(d, "a Label is broken");
    if (l.str_s == 0 && l.num == 0 && l.unit_s == 0)
        return STEP_MORE;
    if (!VEC_ROOM(d->in->arena, &d->labels, 1))
        return intake_no_room(d->in);
    d->labels.p[d->labels.n++] = l;
    return STEP_MORE;
}

static bool add_ids(struct pprof *d, struct pb *c, size_t n)
{
    if (!VEC_ROOM(d->in->arena, &d->sample_ids, n))
        return false;
    uint32_t *out = d->sample_ids.p + d->sample_ids.n;
    uint64_t id;
    while (c->p < c->end && pb_varint(c, &id)) {
        *out = (uint32_t)id;
        if (__builtin_expect(id >= PPROF_WIDE, 0) && !pprof_wide(d, id, out))
            return false;
        out++;
    }
    d->sample_ids.n = (uint32_t)(out - d->sample_ids.p);
    return true;
}

static bool add_values(struct pprof *d, struct pb *c, size_t n)
{
    if (!VEC_ROOM(d->in->arena, &d->values, n))
        return false;
    int64_t *out = d->values.p + d->values.n;
    uint64_t v;
    while (c->p < c->end && pb_varint(c, &v))
        *out++ = (int64_t)v;
    d->values.n = (uint32_t)(out - d->values.p);
    return true;
}

/* A repeated number, packed or one of many. */
static enum step add_numbers(struct pprof *d, const struct pb_field *f)
{
    struct pb c = pb_of(f->bytes);
    uint8_t one[10];
    size_t n = 1;

    if (f->wire == PB_VARINT) {
        uint64_t v = f->u;
        size_t len = 0;
        for (; v >= 0x80; v >>= 7)
            one[len++] = (uint8_t)(v | 0x80);
        one[len++] = (uint8_t)v;
        c = (struct pb){one, one + len, false};
    } else if (f->wire == PB_BYTES) {
        n = pb_count(f->bytes);
    } else {
        return pprof_malformed(d, "a Sample has a field of the wrong type");
    }
    if (!(f->num == 1 ? add_ids(d, &c, n) : add_values(d, &c, n)))
        return intake_no_room(d->in);
    return c.bad ? pprof_malformed(d, "a Sample is broken") : STEP_MORE;
}

/* The labels behind set_at[n_sets] become a set of their own, unless there is an equal one. */
static bool close_set(struct pprof *d, uint32_t *set)
{
    uint32_t at = d->set_at.p[d->n_sets], n = d->labels.n - at;
    size_t bytes = n * sizeof(struct pprof_label);
    struct probe pr;

    *set = 0;
    if (n == 0)
        return true;
    const struct pprof_label *mine = d->labels.p + at;
    uint64_t hash = hash64(d->in->spec->key, mine, bytes);
    for (uint32_t i = index_first(&d->sets, hash, &pr); i != INDEX_NONE; i = index_next(&d->sets, &pr)) {
        if (d->set_at.p[i + 1] - d->set_at.p[i] == n && memcmp(d->labels.p + d->set_at.p[i], mine, bytes) == 0) {
            *set = i;
            d->labels.n = at;
            return true;
        }
    }
    if (!VEC_ROOM(d->in->arena, &d->set_at, 1) || !index_add(&d->sets, d->in->arena, hash, d->n_sets))
        return false;
    *set = d->n_sets++;
    d->set_at.p[d->set_at.n++] = d->labels.n;
    return true;
}

static enum step close_sample(struct pprof *d, uint32_t n_values)
{
    const struct limits *lim = d->in->limits;
    struct arena *a = d->in->arena;
    uint32_t n_labels = d->labels.n - d->set_at.p[d->n_sets], set;

    if (d->n_samples >= lim->samples) {
        (void)fault_set(d->fault, E_TOO_MANY_SAMPLES, "profile has more samples than limits.samples (%u): %u seen",
                        lim->samples, d->n_samples + 1);
        return STEP_FAIL;
    }
    if (n_labels > lim->sample_labels) {
        (void)fault_set(d->fault, E_TOO_MANY_SAMPLE_LABELS, "sample %u has %u labels, limits.sample_labels is %u",
                        d->n_samples, n_labels, lim->sample_labels);
        return STEP_FAIL;
    }
    if (d->n_samples && n_values != d->n_values) {
        (void)fault_set(d->fault, E_BAD_INPUT, "sample value length mismatch: sample %u has %u values, those before %u",
                        d->n_samples, n_values, d->n_values);
        return STEP_FAIL;
    }
    d->n_values = n_values;
    if (!close_set(d, &set) || !VEC_ROOM(a, &d->sample_set, 1) || !VEC_ROOM(a, &d->sample_at, 1))
        return intake_no_room(d->in);
    d->sample_set.p[d->sample_set.n++] = set;
    d->sample_at.p[d->sample_at.n++] = d->sample_ids.n;
    d->n_samples++;
    return STEP_MORE;
}

enum step pprof_add_sample(struct pprof *d, struct str msg)
{
    uint32_t values_before = d->values.n;
    struct pb c = pb_of(msg);
    struct pb_field f;

    while (pb_next(&c, &f)) {
        enum step s = STEP_MORE;
        if (f.num <= 2)
            s = add_numbers(d, &f);
        else if (f.num == 3 && f.wire != PB_BYTES)
            s = pprof_malformed(d, "a Sample has a field of the wrong type");
        else if (f.num == 3)
            s = add_label(d, f.bytes);
        if (s != STEP_MORE)
            return s;
    }
    if (c.bad)
        return pprof_malformed(d, "a Sample is broken");
    return close_sample(d, d->values.n - values_before);
}
