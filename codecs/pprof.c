/* The streaming half of reading a pprof: fields into tables, every element charged to the request's arena when it
 * arrives. */
#include "codecs/pprof_fields.h"

enum {
    F_SAMPLE_TYPE = 1,
    F_SAMPLE,
    F_MAPPING,
    F_LOCATION,
    F_FUNCTION,
    F_STRING,
    F_TIME = 9,
    F_DURATION,
    F_PERIOD_TYPE,
    F_PERIOD,
    F_COMMENT
};
enum {
    WANTED = 1 << F_SAMPLE_TYPE | 1 << F_SAMPLE | 1 << F_MAPPING | 1 << F_LOCATION | 1 << F_FUNCTION | 1 << F_STRING |
             1 << F_PERIOD_TYPE | 1 << F_COMMENT
};
enum { CHUNK_MIN = 2048, CHUNK_MAX = 128 * 1024, HEX_BYTES = 32 };

enum step pprof_malformed(struct pprof *d, const char *what)
{
    (void)fault_set(d->fault, E_BAD_INPUT, "malformed pprof: %s", what);
    return STEP_FAIL;
}

/* An id of more than 31 bits gets the next number, or the one it has. false: no room. */
bool pprof_wide(struct pprof *d, uint64_t id, uint32_t *code)
{
    uint64_t hash = hash64(d->in->spec->key, &id, sizeof id);
    struct probe at;

    for (uint32_t i = index_first(&d->wides, hash, &at); i != INDEX_NONE; i = index_next(&d->wides, &at)) {
        if (d->wide.p[i] == id) {
            *code = PPROF_WIDE + i;
            return true;
        }
    }
    if (d->wide.n >= PPROF_WIDE - 2 || !VEC_ROOM(d->in->arena, &d->wide, 1) ||
        !index_add(&d->wides, d->in->arena, hash, d->wide.n))
        return false;
    *code = PPROF_WIDE + d->wide.n;
    d->wide.p[d->wide.n++] = id;
    return true;
}

static bool id_code(struct pprof *d, uint64_t id, uint32_t *code)
{
    *code = (uint32_t)id;
    return id < PPROF_WIDE || pprof_wide(d, id, code);
}

/* Into what is there already: a message that is sent in two pieces is merged. */
static enum step read_type(struct pprof *d, struct str msg, struct pprof_type *t)
{
    struct pb c = pb_of(msg);
    struct pb_field f;

    while (pb_next(&c, &f)) {
        if (f.num > 2)
            continue;
        if (f.wire != PB_VARINT)
            return pprof_malformed(d, "a ValueType has a field of the wrong type");
        *(f.num == 1 ? &t->type_s : &t->unit_s) = pprof_string_index(f.u);
    }
    return c.bad ? pprof_malformed(d, "a ValueType is broken") : STEP_MORE;
}

static enum step add_type(struct pprof *d, struct str msg)
{
    struct pprof_type t = {0};
    enum step s = read_type(d, msg, &t);

    if (s != STEP_MORE)
        return s;
    if (!VEC_ROOM(d->in->arena, &d->types, 1))
        return intake_no_room(d->in);
    d->types.p[d->types.n++] = t;
    return STEP_MORE;
}

static enum step add_mapping(struct pprof *d, struct str msg)
{
    struct pprof_mapping m = {0};
    struct pb c = pb_of(msg);
    struct pb_field f;

    while (pb_next(&c, &f)) {
        if (f.num <= 6 && f.wire != PB_VARINT)
            return pprof_malformed(d, "a Mapping has a field of the wrong type");
        if (f.num == 1 && !id_code(d, f.u, &m.id))
            return intake_no_room(d->in);
        if (f.num == 2)
            m.start = f.u;
        else if (f.num == 3)
            m.limit = f.u;
        else if (f.num == 4)
            m.offset = f.u;
        else if (f.num == 5)
            m.file_s = pprof_string_index(f.u);
        else if (f.num == 6)
            m.build_id_s = pprof_string_index(f.u);
    }
    if (c.bad)
        return pprof_malformed(d, "a Mapping is broken");
    if (!VEC_ROOM(d->in->arena, &d->mappings, 1))
        return intake_no_room(d->in);
    d->mappings.p[d->mappings.n++] = m;
    return STEP_MORE;
}

static enum step add_function(struct pprof *d, struct str msg)
{
    struct pprof_function fn = {0};
    struct pb c = pb_of(msg);
    struct pb_field f;

    while (pb_next(&c, &f)) {
        if (f.num <= 5 && f.wire != PB_VARINT)
            return pprof_malformed(d, "a Function has a field of the wrong type");
        if (f.num == 1 && !id_code(d, f.u, &fn.id))
            return intake_no_room(d->in);
        if (f.num == 2)
            fn.name_s = pprof_string_index(f.u);
        else if (f.num == 3)
            fn.system_name_s = pprof_string_index(f.u);
        else if (f.num == 4)
            fn.file_s = pprof_string_index(f.u);
        else if (f.num == 5)
            fn.start_line = (int64_t)f.u;
    }
    if (c.bad)
        return pprof_malformed(d, "a Function is broken");
    if (!VEC_ROOM(d->in->arena, &d->functions, 1))
        return intake_no_room(d->in);
    d->functions.p[d->functions.n++] = fn;
    return STEP_MORE;
}

static enum step add_line(struct pprof *d, struct str msg)
{
    struct pprof_line l = {0};
    struct pb c = pb_of(msg);
    struct pb_field f;

    while (pb_next(&c, &f)) {
        if (f.num <= 3 && f.wire != PB_VARINT)
            return pprof_malformed(d, "a Line has a field of the wrong type");
        if (f.num == 1 && !id_code(d, f.u, &l.function))
            return intake_no_room(d->in);
        if (f.num == 2)
            l.line = (int64_t)f.u;
        else if (f.num == 3)
            l.column = (int64_t)f.u;
    }
    if (c.bad)
        return pprof_malformed(d, "a Line is broken");
    if (!VEC_ROOM(d->in->arena, &d->lines, 1))
        return intake_no_room(d->in);
    d->lines.p[d->lines.n++] = l;
    return STEP_MORE;
}

static enum step add_location(struct pprof *d, struct str msg)
{
    struct pprof_location l = {.line_at = d->lines.n};
    struct pb c = pb_of(msg);
    struct pb_field f;

    while (pb_next(&c, &f)) {
        enum step s = STEP_MORE;
        if (f.num <= 5 && f.wire != (f.num == 4 ? PB_BYTES : PB_VARINT))
            return pprof_malformed(d, "a Location has a field of the wrong type");
        if (f.num <= 2 && !id_code(d, f.u, f.num == 1 ? &l.id : &l.mapping))
            return intake_no_room(d->in);
        if (f.num == 3)
            l.address = f.u;
        else if (f.num == 4)
            s = add_line(d, f.bytes);
        else if (f.num == 5)
            l.folded = f.u != 0;
        if (s != STEP_MORE)
            return s;
    }
    if (c.bad)
        return pprof_malformed(d, "a Location is broken");
    if (!VEC_ROOM(d->in->arena, &d->locations, 1))
        return intake_no_room(d->in);
    d->locations.p[d->locations.n++] = l;
    return STEP_MORE;
}

static enum step bad_utf8(struct pprof *d, struct str s)
{
    char hex[2 * HEX_BYTES + 1] = "";

    for (size_t i = 0; i < s.len && i < HEX_BYTES; i++) {
        hex[2 * i] = "0123456789abcdef"[(uint8_t)s.p[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[(uint8_t)s.p[i] & 15];
        hex[2 * i + 2] = 0;
    }
    (void)fault_set(d->fault, E_BAD_INPUT, "invalid UTF-8 in string_table[%u], hex: %s%s", d->strings.n, hex,
                    s.len > HEX_BYTES ? "..." : "");
    return STEP_FAIL;
}

/* Short strings share pieces of memory that grow with the profile. */
static char *string_room(struct pprof *d, size_t n)
{
    if (n > (size_t)(d->chunk_end - d->chunk)) {
        if (n >= CHUNK_MAX / 4)
            return NEW(d->in->arena, char, n);
        size_t bytes = d->chunk_bytes ? d->chunk_bytes * 2 : CHUNK_MIN;
        bytes = bytes > CHUNK_MAX ? CHUNK_MAX : bytes;
        bytes = bytes < n ? n : bytes;
        char *p = NEW(d->in->arena, char, bytes);
        if (!p)
            return NULL;
        d->chunk = p;
        d->chunk_end = p + bytes;
        d->chunk_bytes = bytes;
    }
    char *p = d->chunk;
    d->chunk += n;
    return p;
}

static enum step add_string(struct pprof *d, struct str s)
{
    if (d->strings.n == 0 && s.len)
        return pprof_malformed(d, "string_table[0] is not the empty string");
    if (d->in->limits->strings && d->strings.n >= d->in->limits->strings) {
        (void)fault_set(d->fault, E_TOO_MANY_STRINGS, "profile has more strings than limits.strings (%u): %u seen",
                        d->in->limits->strings, d->strings.n + 1);
        return STEP_FAIL;
    }
    if (!utf8_valid(s))
        return bad_utf8(d, s);
    if (!VEC_ROOM(d->in->arena, &d->strings, 1))
        return intake_no_room(d->in);
    char *p = s.len ? string_room(d, s.len) : NULL;
    if (s.len && !p)
        return intake_no_room(d->in);
    if (p)
        memcpy(p, s.p, s.len);
    d->strings.p[d->strings.n++] = (struct str){p, s.len};
    return STEP_MORE;
}

static enum step add_comments(struct pprof *d, const struct pb_field *f)
{
    struct pb c = pb_of(f->bytes);
    uint64_t v = f->u;

    if (f->wire != PB_VARINT && f->wire != PB_BYTES)
        return pprof_malformed(d, "comment is of the wrong type");
    bool more = f->wire == PB_VARINT || (c.p < c.end && pb_varint(&c, &v));
    while (more) {
        if (!VEC_ROOM(d->in->arena, &d->comments, 1))
            return intake_no_room(d->in);
        d->comments.p[d->comments.n++] = pprof_string_index(v);
        more = f->wire == PB_BYTES && c.p < c.end && pb_varint(&c, &v);
    }
    return c.bad ? pprof_malformed(d, "comment is broken") : STEP_MORE;
}

static enum step take_number(struct pprof *d, const struct pb_field *f)
{
    if (f->num == F_TIME)
        d->time_ns = (int64_t)f->u;
    else if (f->num == F_DURATION)
        d->duration_ns = (int64_t)f->u;
    else if (f->num == F_PERIOD)
        d->period = (int64_t)f->u;
    return STEP_MORE;
}

static enum step take_field(struct pprof *d, const struct pb_field *f)
{
    bool number = f->num == F_TIME || f->num == F_DURATION || f->num == F_PERIOD;

    if (f->num == F_COMMENT)
        return add_comments(d, f);
    if (number && f->wire == PB_VARINT)
        return take_number(d, f);
    bool wanted = f->num < 32 && (WANTED & 1u << f->num);
    if (number || (wanted && f->wire != PB_BYTES))
        return pprof_malformed(d, "a field of Profile is of the wrong type");
    switch (f->num) {
    case F_SAMPLE_TYPE:
        return add_type(d, f->bytes);
    case F_SAMPLE:
        return pprof_add_sample(d, f->bytes);
    case F_MAPPING:
        return add_mapping(d, f->bytes);
    case F_LOCATION:
        return add_location(d, f->bytes);
    case F_FUNCTION:
        return add_function(d, f->bytes);
    case F_STRING:
        return add_string(d, f->bytes);
    case F_PERIOD_TYPE:
        return read_type(d, f->bytes, &d->period_type);
    default:
        return STEP_MORE;
    }
}

struct pprof *pprof_new(struct intake *in, struct fault *f)
{
    struct pprof *d = NEW(in->arena, struct pprof, 1);

    /* Arrays that are pointed into exist, however empty. */
    if (!d || !VEC_ROOM(in->arena, &d->set_at, 2) || !VEC_ROOM(in->arena, &d->sample_at, 1) ||
        !VEC_ROOM(in->arena, &d->sample_ids, 1) || !VEC_ROOM(in->arena, &d->values, 1) ||
        !VEC_ROOM(in->arena, &d->labels, 1) || !VEC_ROOM(in->arena, &d->lines, 1)) {
        (void)intake_no_room(in);
        return NULL;
    }
    d->in = in;
    d->fault = f;
    d->framer.arena = in->arena;
    d->framer.wanted =
        WANTED | 1 << F_TIME | 1 << F_DURATION | 1 << F_PERIOD; /* the numbers, to refuse them as bytes */
    d->framer.max = in->limits->field;
    d->set_at.n = 2; /* set 0: no labels */
    d->n_sets = 1;
    d->sample_at.n = 1;
    return d;
}

static enum step frame_fault(struct pprof *d, enum pb_step s, uint32_t num)
{
    if (s == PB_NO_ROOM)
        return intake_no_room(d->in);
    if (s == PB_BAD)
        return pprof_malformed(d, "bad field key or length");
    (void)fault_set(d->fault, E_PROFILE_TOO_LARGE,
                    "field %u of the pprof is longer than limits.field (%zu bytes): %llu", num, d->in->limits->field,
                    (unsigned long long)d->framer.need);
    return STEP_FAIL;
}

enum step pprof_feed(struct pprof *d, struct str *in, uint32_t *budget)
{
    struct str left = budget_slice(*in, *budget);
    size_t given = left.len;
    enum pb_step s = PB_FIELD;
    enum step r = STEP_MORE;

    d->any |= given != 0;
    while (s == PB_FIELD && r == STEP_MORE && left.len) {
        struct pb_field f;
        s = pb_frame(&d->framer, &left, &f);
        if (s == PB_FIELD)
            r = take_field(d, &f);
        else if (s != PB_MORE)
            r = frame_fault(d, s, f.num);
    }
    in->p += given - left.len;
    in->len -= given - left.len;
    budget_take(budget, given - left.len);
    if (r != STEP_MORE)
        return r;
    return in->len ? STEP_AGAIN : STEP_MORE;
}

enum step pprof_end(struct pprof *d)
{
    return pb_framed(&d->framer) ? STEP_MORE : pprof_malformed(d, "ends inside a field");
}

size_t pprof_build_memory(const struct pprof *d)
{
    size_t per_sample = 4 * sizeof(uint32_t) + 2 * sizeof(uint64_t) * 2 + d->n_values * sizeof(int64_t);

    return d->n_samples * per_sample + (size_t)d->sample_ids.n * 2 * sizeof(uint32_t) + (size_t)d->lines.n * 96 +
           (size_t)d->functions.n * 112 + (size_t)d->locations.n * 48 + (size_t)d->strings.n * 28 +
           (size_t)d->labels.n * 80 + 128 * 1024;
}
