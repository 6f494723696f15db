/* Reading the body of a record back (codecs/record_body.h). Total: any bytes give a view that holds, or E_BAD_INPUT. */
#include "codecs/pack.h"
#include "codecs/profile_pack.h"
#include "codecs/record.h"
#include "codecs/record_body.h"
#include "codecs/zstd.h"

/* A body unpacks to less than this, or is not ours: limits.decoded keeps profiles far below. */
#define UNPACKED_MAX ((size_t)512 << 20)

/* What one body is read with. Strings stay slices of the unpacked bytes until they are copied to the arena. */
struct opening {
    struct unpack u;
    struct arena *a;
    bool no_memory;
};

static struct str take_str(struct opening *o)
{
    struct str s = unpack_str(&o->u);

    if (!arena_str(o->a, s, &s)) {
        o->no_memory = true;
        return (struct str){"", 0};
    }
    return s;
}

/* Room for n elements; never NULL where n elements are then written. */
#define TAKE(o, type, n) ((type *)take((o), arena_alloc((o)->a, sizeof(type), _Alignof(type), (n) ? (n) : 1)))
static void *take(struct opening *o, void *p)
{
    o->no_memory |= !p;
    return p;
}

static bool going(const struct opening *o)
{
    return !o->no_memory && !o->u.bad;
}

static void take_series(struct opening *o, struct series *s)
{
    s->project = take_str(o);
    s->service = take_str(o);
    s->name = take_str(o);
    s->spy = take_str(o);
    uint32_t n = unpack_count(&o->u, 2);
    s->labels = TAKE(o, struct label, n);
    for (uint32_t i = 0; i < n && going(o); i++) {
        struct str name = take_str(o);
        s->labels[i] = (struct label){name, take_str(o)};
    }
    s->n_labels = n;
}

static void take_types(struct opening *o, struct record_view *v)
{
    uint32_t n = types_count(&o->u);

    v->primary = unpack_below(&o->u, n ? n : 1);
    v->types = TAKE(o, struct sample_type, n);
    for (uint32_t i = 0; i < n && going(o); i++) {
        struct sample_type *t = &v->types[i];
        t->type = take_str(o);
        t->unit = take_str(o);
        t->id = take_str(o);
        t->aggregation = unpack_below(&o->u, 2) ? AGG_AVERAGE : AGG_SUM;
        t->total = unpack_i64(&o->u);
    }
    v->n_types = n;
}

static void take_label(struct opening *o, struct sample_label *l)
{
    l->key = take_str(o);
    l->numeric = unpack_below(&o->u, 2);
    *(l->numeric ? &l->unit : &l->value) = take_str(o);
    *(l->numeric ? &l->value : &l->unit) = (struct str){"", 0};
    if (l->numeric)
        l->num = unpack_i64(&o->u);
}

/* How many labels all sets have is not written, so the array grows with them. */
static bool room_for_labels(struct opening *o, struct record_view *v, size_t *cap, size_t n)
{
    if (n <= *cap)
        return true;
    size_t more = n > *cap * 2 ? n : *cap * 2;
    struct sample_label *l = GROW(o->a, v->labels, struct sample_label, *cap, more);
    if (!take(o, l))
        return false;
    v->labels = l;
    *cap = more;
    return true;
}

static void take_sets(struct opening *o, struct record_view *v)
{
    uint32_t n = unpack_count(&o->u, 1), end = 0;
    size_t cap = 1;

    v->labels = TAKE(o, struct sample_label, cap);
    v->set_at = TAKE(o, uint32_t, (size_t)n + 1);
    for (uint32_t i = 0; i < n && going(o); i++) {
        uint32_t labels = unpack_count(&o->u, 3);
        if (!room_for_labels(o, v, &cap, (size_t)end + labels))
            return;
        for (uint32_t j = 0; j < labels && going(o); j++)
            take_label(o, &v->labels[end + j]);
        end += labels;
        v->set_at[i + 1] = end;
    }
    v->n_sets = n;
}

static void take_head(struct opening *o, struct record_view *v)
{
    take_series(o, &v->series);
    v->time_ns = unpack_i64(&o->u);
    v->duration_ns = unpack_i64(&o->u);
    v->period_type = take_str(o);
    v->period_unit = take_str(o);
    v->period = unpack_i64(&o->u);
    v->format = take_str(o);
    v->comment = take_str(o);
    take_types(o, v);
    if (going(o))
        take_sets(o, v);
    drops_unpack(&o->u, &v->drops);
}

/* Every stack is used, and new ones come in order: there is one way only to write a profile. */
static void take_stacks(struct opening *o, struct record_view *v)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < v->n_samples; i++) {
        uint32_t code = unpack_below(&o->u, (uint64_t)next + 1);
        v->sample_stack[i] = code ? code - 1 : next++;
        if (next > v->n_stacks)
            o->u.bad = true;
        if (o->u.bad)
            return;
    }
    o->u.bad |= next != v->n_stacks;
}

static void take_sample_sets(struct opening *o, struct record_view *v)
{
    int64_t set = 0;

    for (uint32_t i = 0; i < v->n_samples; i++) {
        int64_t step = unpack_i64(&o->u);
        if (step < -set || step >= (int64_t)v->n_sets - set) {
            o->u.bad = true;
            return;
        }
        set += step;
        v->sample_set[i] = (uint32_t)set;
    }
}

static void take_values(struct opening *o, int64_t *to, uint32_t n)
{
    uint64_t g = unpack_u64(&o->u), v;

    if (g == 0)
        return;
    if (g == 1) {
        for (uint32_t i = 0; i < n; i++)
            to[i] = (int64_t)unpack_u64(&o->u);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (__builtin_mul_overflow(unpack_u64(&o->u), g, &v) || v > INT64_MAX)
            o->u.bad = true;
        to[i] = (int64_t)v;
    }
}

static void take_samples(struct opening *o, struct record_view *v)
{
    uint32_t n = unpack_count(&o->u, 2);

    v->sample_stack = TAKE(o, uint32_t, n);
    v->sample_set = TAKE(o, uint32_t, n);
    v->values = TAKE(o, int64_t *, v->n_types);
    if (!going(o))
        return;
    v->n_samples = n;
    take_stacks(o, v);
    take_sample_sets(o, v);
    for (uint32_t t = 0; t < v->n_types && going(o); t++) {
        v->values[t] = TAKE(o, int64_t, n);
        if (v->values[t])
            take_values(o, v->values[t], n);
    }
}

static enum err not_ours(struct fault *f, const char *what)
{
    return fault_set(f, E_BAD_INPUT, "not a record of ours: %s", what);
}

static enum err open_packed(struct record_view *v, struct str packed, struct arena *a, struct fault *f)
{
    struct opening o = {unpack_of(packed), a, false};

    take_head(&o, v);
    if (going(&o))
        take_samples(&o, v);
    if (o.no_memory)
        return arena_error(a, f);
    if (o.u.bad)
        return not_ours(f, "its columns do not hold");
    return o.u.p == o.u.end ? E_OK : not_ours(f, "bytes behind its columns");
}

enum err record_open(struct record_view *v, struct str body, struct arena *a, struct fault *f)
{
    struct unpack u = unpack_of(body);
    struct buf packed = {0};

    *v = (struct record_view){0};
    if (!str_eq(unpack_bytes(&u, RECORD_MAGIC_BYTES), (struct str){RECORD_MAGIC, RECORD_MAGIC_BYTES}))
        return not_ours(f, "unknown magic or version");
    v->n_stacks = unpack_count(&u, 8);
    v->stack_ids = NEW(a, uint64_t, v->n_stacks ? v->n_stacks : 1);
    if (!v->stack_ids)
        return arena_error(a, f);
    unpack_ids(&u, v->stack_ids, v->n_stacks);
    struct str frame = {(const char *)u.p, (size_t)(u.end - u.p)};
    enum err e;
    if (u.bad)
        e = not_ours(f, "stack ids are cut short");
    else if (!zstd_unpack(frame, UNPACKED_MAX, &packed))
        e = packed.failed ? fault_set(f, E_NO_MEMORY, NULL) : not_ours(f, "it does not unpack");
    else
        e = open_packed(v, buf_view(&packed), a, f);
    buf_free(&packed);
    return e;
}
