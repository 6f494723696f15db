/* nanopb with a callback for each repeated field, into arrays that only grow; then the rules one after another. */
#include "test/oracle/nano_pprof.h"

#include "test/proto/pprof.pb.h"

#include <inttypes.h>
#include <pb_decode.h>
#include <stdio.h>

struct list {
    void *p;
    size_t n, cap;
};
struct nano_sample {
    struct list ids, values; /* uint64_t, int64_t */
    struct list labels;      /* pprof_Label */
};
struct nano_location {
    pprof_Location l;
    struct list lines; /* pprof_Line */
};
struct nano {
    struct arena *a;
    struct list types, samples, mappings, locations, functions, strings, comments;
    pprof_Profile p;
    const char *why;
};
/* What a callback needs: where to put it and the arena. */
struct into {
    struct nano *n;
    struct list *list;
};

static void *push(struct arena *a, struct list *l, size_t size)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 8;
        l->p = arena_grow(a, l->p, size, 16, l->cap, cap);
        ASSERT(l->p);
        l->cap = cap;
    }
    return (char *)l->p + size * l->n++;
}

static bool on_number(pb_istream_t *s, const pb_field_t *field, void **arg)
{
    struct into *in = *arg;
    uint64_t v;

    (void)field;
    if (s->bytes_left == 0) /* an empty packed field gets its call too */
        return true;
    if (!pb_decode_varint(s, &v))
        return false;
    *(uint64_t *)push(in->n->a, in->list, sizeof v) = v;
    return true;
}

static bool on_string(pb_istream_t *s, const pb_field_t *field, void **arg)
{
    struct into *in = *arg;
    size_t n = s->bytes_left;
    char *p = NEW(in->n->a, char, n + 1);

    (void)field;
    ASSERT(p);
    if (!pb_read(s, (pb_byte_t *)p, n))
        return false;
    *(struct str *)push(in->n->a, in->list, sizeof(struct str)) = (struct str){p, n};
    return true;
}

#define ON_PLAIN(name, type)                                                                                           \
    static bool name(pb_istream_t *s, const pb_field_t *field, void **arg)                                             \
    {                                                                                                                  \
        struct into *in = *arg;                                                                                        \
        type m = type##_init_zero;                                                                                     \
        (void)field;                                                                                                   \
        if (!pb_decode(s, type##_fields, &m))                                                                          \
            return false;                                                                                              \
        *(type *)push(in->n->a, in->list, sizeof m) = m;                                                               \
        return true;                                                                                                   \
    }
ON_PLAIN(on_type, pprof_ValueType)
ON_PLAIN(on_mapping, pprof_Mapping)
ON_PLAIN(on_function, pprof_Function)
ON_PLAIN(on_line, pprof_Line)
ON_PLAIN(on_label, pprof_Label)

static bool on_location(pb_istream_t *s, const pb_field_t *field, void **arg)
{
    struct into *in = *arg;
    struct nano_location l = {pprof_Location_init_zero, {0}};
    struct into lines = {in->n, &l.lines};

    (void)field;
    l.l.line.funcs.decode = on_line;
    l.l.line.arg = &lines;
    if (!pb_decode(s, pprof_Location_fields, &l.l))
        return false;
    *(struct nano_location *)push(in->n->a, in->list, sizeof l) = l;
    return true;
}

static bool on_sample(pb_istream_t *s, const pb_field_t *field, void **arg)
{
    struct into *in = *arg;
    struct nano_sample out = {{0}, {0}, {0}};
    struct into ids = {in->n, &out.ids}, values = {in->n, &out.values}, labels = {in->n, &out.labels};
    pprof_Sample m = pprof_Sample_init_zero;

    (void)field;
    m.location_id.funcs.decode = m.value.funcs.decode = on_number;
    m.location_id.arg = &ids;
    m.value.arg = &values;
    m.label.funcs.decode = on_label;
    m.label.arg = &labels;
    if (!pb_decode(s, pprof_Sample_fields, &m))
        return false;
    *(struct nano_sample *)push(in->n->a, in->list, sizeof out) = out;
    return true;
}

static bool read_all(struct nano *n, struct str bytes)
{
    pb_istream_t s = pb_istream_from_buffer((const pb_byte_t *)bytes.p, bytes.len);
    struct {
        pb_callback_t *to;
        bool (*decode)(pb_istream_t *, const pb_field_t *, void **);
        struct into into;
    } all[] = {
        {&n->p.sample_type, on_type, {n, &n->types}},      {&n->p.sample, on_sample, {n, &n->samples}},
        {&n->p.mapping, on_mapping, {n, &n->mappings}},    {&n->p.location, on_location, {n, &n->locations}},
        {&n->p.function, on_function, {n, &n->functions}}, {&n->p.string_table, on_string, {n, &n->strings}},
        {&n->p.comment, on_number, {n, &n->comments}},
    };

    for (size_t i = 0; i < COUNTOF(all); i++) {
        all[i].to->funcs.decode = all[i].decode;
        all[i].to->arg = &all[i].into;
    }
    if (pb_decode(&s, pprof_Profile_fields, &n->p))
        return true;
    n->why = PB_GET_ERROR(&s);
    return false;
}

static bool has_string(const struct nano *n, int64_t i)
{
    return i >= 0 && (uint64_t)i < n->strings.n;
}

static struct str text(const struct nano *n, int64_t i)
{
    return ((struct str *)n->strings.p)[i];
}

#define EACH(type, v, list) for (type *v = (list).p, *v##_end = v ? v + (list).n : v; v < v##_end; v++)

static const char *wrong_tables(const struct nano *n)
{
    EACH(pprof_ValueType, t, n->types)
    if (!has_string(n, t->type) || !has_string(n, t->unit))
        return "type index";
    EACH(pprof_Function, f, n->functions)
    if (!has_string(n, f->name) || !has_string(n, f->system_name) || !has_string(n, f->filename) || f->id == 0)
        return "function";
    EACH(pprof_Mapping, m, n->mappings)
    if (!has_string(n, m->filename) || !has_string(n, m->build_id))
        return "mapping";
    EACH(struct nano_location, l, n->locations)
    if (l->l.id == 0)
        return "location id";
    EACH(int64_t, c, n->comments)
    if (!has_string(n, *c))
        return "comment";
    return NULL;
}

static const char *wrong(const struct nano *n)
{
    if (n->types.n == 0)
        return "no types";
    if (n->strings.n == 0 || text(n, 0).len)
        return "string 0";
    EACH(struct str, s, n->strings)
    if (!utf8_valid(*s))
        return "utf-8";
    if (!has_string(n, n->p.period_type.type) || !has_string(n, n->p.period_type.unit))
        return "period type";
    EACH(struct nano_sample, s, n->samples)
    {
        if (s->values.n != n->types.n)
            return "value count";
        EACH(pprof_Label, l, s->labels)
        if ((l->str || l->num || l->num_unit) &&
            (!has_string(n, l->key) || !has_string(n, l->str) || !has_string(n, l->num_unit)))
            return "label";
    }
    return wrong_tables(n);
}

static const pprof_Function *function(const struct nano *n, uint64_t id)
{
    for (size_t i = n->functions.n; id && i-- > 0;)
        if (((pprof_Function *)n->functions.p)[i].id == id)
            return &((pprof_Function *)n->functions.p)[i];
    return NULL;
}

static const pprof_Mapping *mapping(const struct nano *n, uint64_t id)
{
    for (size_t i = n->mappings.n; id && i-- > 0;)
        if (((pprof_Mapping *)n->mappings.p)[i].id == id)
            return &((pprof_Mapping *)n->mappings.p)[i];
    return NULL;
}

static const struct nano_location *location(const struct nano *n, uint64_t id)
{
    for (size_t i = n->locations.n; id && i-- > 0;)
        if (((struct nano_location *)n->locations.p)[i].l.id == id)
            return &((struct nano_location *)n->locations.p)[i];
    return NULL;
}

static struct tally_frame bare(const struct nano *n, const pprof_Location *l, const pprof_Mapping *m)
{
    struct tally_frame f = {{"", 0}, {"", 0}};
    uint64_t at = l->address;
    char hex[32];

    if (m && at >= m->memory_start && at < m->memory_limit)
        at = at - m->memory_start + m->file_offset;
    int len = snprintf(hex, sizeof hex, "0x%" PRIx64, at);
    ASSERT(arena_str(n->a, (struct str){hex, (size_t)len}, &f.name));
    if (m)
        f.file = text(n, m->filename);
    return f;
}

/* Frames of a location, leaf first, behind out. false: a function does not exist. */
static bool expand(const struct nano *n, const struct nano_location *l, struct list *out)
{
    const pprof_Mapping *m = mapping(n, l->l.mapping_id);

    if (l->lines.n == 0)
        *(struct tally_frame *)push(n->a, out, sizeof(struct tally_frame)) = bare(n, &l->l, m);
    EACH(pprof_Line, line, l->lines)
    {
        const pprof_Function *f = function(n, line->function_id);
        if (!f)
            return false;
        struct str file = text(n, f->filename);
        if (file.len == 0 && m)
            file = text(n, m->filename);
        *(struct tally_frame *)push(n->a, out, sizeof(struct tally_frame)) =
            (struct tally_frame){text(n, f->name), file};
    }
    return true;
}

/* With a stack cut as soon as it is too deep: what lies beyond is not looked at. false: broken. */
static bool stack(const struct nano *n, const struct nano_sample *s, uint32_t depth, struct list *out)
{
    for (size_t i = 0; i < s->ids.n; i++) {
        const struct nano_location *l = location(n, ((uint64_t *)s->ids.p)[i]);
        if (!l || !expand(n, l, out))
            return false;
        if (out->n > depth || (out->n == depth && i + 1 < s->ids.n)) {
            out->n = depth;
            ((struct tally_frame *)out->p)[depth - 1] = (struct tally_frame){STR("[truncated]"), {"", 0}};
            return true;
        }
    }
    return true;
}

static void name_types(const struct nano *n, struct tally *t, int64_t *factor)
{
    struct unit period = unit_normal(text(n, n->p.period_type.unit));
    bool over = false, cpu = false;
    int64_t per = unit_scale(n->p.period, period.factor, &over);

    EACH(pprof_ValueType, v, n->types)
    cpu |= str_eq(text(n, v->type), STR("cpu"));
    EACH(pprof_ValueType, v, n->types)
    {
        struct unit u = unit_normal(text(n, v->unit));
        struct str name = text(n, v->type);
        if (!cpu && str_eq(name, STR("samples")) && str_eq(u.name, STR("count")) && per > 0 &&
            str_eq(text(n, n->p.period_type.type), STR("cpu")) && str_eq(period.name, STR("nanoseconds"))) {
            name = STR("cpu");
            u = (struct unit){STR("nanoseconds"), per};
        }
        factor[t->n_types] = u.factor;
        t->types[t->n_types].type = name;
        t->types[t->n_types++].unit = u.name;
    }
}

static void sum(const struct nano *n, uint32_t depth, struct nano_result *r)
{
    int64_t factor[TALLY_TYPES], values[TALLY_TYPES];

    r->tally = tally_new(n->a);
    name_types(n, r->tally, factor);
    EACH(struct nano_sample, s, n->samples)
    {
        struct list frames = {0};
        bool any = false;
        for (uint32_t k = 0; k < r->tally->n_types; k++) {
            int64_t v = ((int64_t *)s->values.p)[k];
            values[k] = v < 0 ? 0 : unit_scale(v, factor[k], &r->tally->over);
            any |= values[k] != 0;
        }
        if (!any)
            continue;
        if (!stack(n, s, depth, &frames)) {
            r->broken++;
            continue;
        }
        r->kept++;
        tally_sample(r->tally, frames.p, (uint32_t)frames.n, values);
    }
}

struct nano_result nano_pprof(struct arena *a, struct str bytes, uint32_t depth)
{
    struct nano n = {.a = a, .p = pprof_Profile_init_zero};
    struct nano_result r = {0};

    if (!read_all(&n, bytes)) {
        r.why = n.why;
        return r;
    }
    r.why = wrong(&n);
    if (!r.why && n.types.n > TALLY_TYPES)
        r.why = "too many types";
    if (r.why)
        return r;
    sum(&n, depth, &r);
    for (uint32_t i = 0; i < r.tally->n_types; i++)
        for (uint32_t k = 0; k < i; k++)
            if (str_eq(r.tally->types[i].type, r.tally->types[k].type) &&
                str_eq(r.tally->types[i].unit, r.tally->types[k].unit))
                r.why = "two equal types";
    r.readable = r.why == NULL;
    return r;
}
