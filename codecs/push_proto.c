/* PushRequest as protobuf, descended while it arrives: raw_profile goes straight on into its payload. protocol.md 2.1.
 */
#include "codecs/push.h"

enum level { L_REQUEST, L_SERIES, L_LABEL, L_SAMPLE, LEVELS };
enum { ID_MAX = 1024, LABEL_SLACK = 64 };

struct push_proto {
    struct push *push;
    enum level path[3]; /* of the message at hand, path[depth] */
    uint64_t end[3];    /* where they end */
    uint32_t depth;
    uint64_t pos;
    enum { P_KEY, P_VARINT, P_LENGTH, P_SKIP, P_COLLECT, P_PAYLOAD, P_PAYLOAD_END } state;
    struct pb_field field;
    uint64_t acc, need;
    uint32_t shift;
    char *scratch; /* a label, or an ID */
    size_t have, cap;
    struct payload *payload;
};

static enum step bad(struct push_proto *d, const char *what)
{
    (void)fault_set(&d->push->in->fault, E_BAD_INPUT, "malformed PushRequest: %s", what);
    return STEP_FAIL;
}

struct push_proto *push_proto_new(struct push *p)
{
    struct push_proto *d = NEW(p->in->arena, struct push_proto, 1);

    if (!d) {
        (void)intake_no_room(p->in);
        return NULL;
    }
    d->push = p;
    d->path[0] = L_REQUEST;
    d->end[0] = UINT64_MAX;
    return d;
}

static char next(struct push_proto *d, struct str *in)
{
    char c = *in->p++;

    in->len--;
    d->pos++;
    return c;
}

/* STEP_AGAIN here: the varint is whole, in *v. */
static enum step varint(struct push_proto *d, struct str *in, uint64_t *v)
{
    while (in->len) {
        if (d->shift >= 70 || d->pos >= d->end[d->depth])
            return bad(d, "a varint that does not end");
        uint8_t b = (uint8_t)next(d, in);
        if (d->shift == 63 && b > 1)
            return bad(d, "a varint of more than 64 bits");
        d->acc |= (uint64_t)(b & 0x7f) << d->shift;
        d->shift += 7;
        if (b < 0x80) {
            *v = d->acc;
            d->acc = d->shift = 0;
            return STEP_AGAIN;
        }
    }
    return STEP_MORE;
}

static enum step at_key(struct push_proto *d, struct str *in)
{
    uint64_t v;
    enum step s = varint(d, in, &v);

    if (s != STEP_AGAIN)
        return s;
    uint32_t wire = v & 7;
    if (v >> 3 == 0 || v >> 3 > (1 << 29) - 1 || (wire > 2 && wire != 5))
        return bad(d, "bad field key");
    d->field = (struct pb_field){.num = (uint32_t)(v >> 3), .wire = (enum pb_wire)wire};
    d->need = wire == PB_FIXED64 ? 8 : 4;
    d->state = wire == PB_VARINT ? P_VARINT : wire == PB_BYTES ? P_LENGTH : P_SKIP;
    bool known = d->field.num <= (d->path[d->depth] == L_REQUEST ? 1u : 2u);
    if (known && wire != PB_BYTES)
        return bad(d, "a field of the wrong type");
    if (d->state == P_SKIP && d->need > d->end[d->depth] - d->pos)
        return bad(d, "a field longer than its message");
    return STEP_MORE;
}

static enum step descend(struct push_proto *d, enum level level)
{
    d->depth++;
    d->path[d->depth] = level;
    d->end[d->depth] = d->pos + d->need;
    d->state = P_KEY;
    return level == L_SERIES ? push_series_begin(d->push) : push_sample_begin(d->push);
}

static enum step begin_payload(struct push_proto *d)
{
    d->payload = push_payload(d->push);
    d->state = d->need ? P_PAYLOAD : P_PAYLOAD_END;
    return d->payload ? STEP_MORE : STEP_FAIL;
}

static enum step begin_collect(struct push_proto *d, size_t max, const char *what)
{
    if (d->need > max) {
        (void)fault_set(&d->push->in->fault, E_LABEL_VALUE_LONG, "%s is longer than %zu bytes: %llu", what, max,
                        (unsigned long long)d->need);
        return STEP_FAIL;
    }
    d->have = 0;
    d->state = P_COLLECT;
    return STEP_MORE;
}

static enum step at_length(struct push_proto *d, struct str *in)
{
    const struct limits *lim = d->push->in->limits;
    enum step s = varint(d, in, &d->need);

    if (s != STEP_AGAIN)
        return s;
    if (d->need > d->end[d->depth] - d->pos || d->need > INT32_MAX)
        return bad(d, "a field longer than its message");
    enum level level = d->path[d->depth];
    uint32_t num = d->field.num;
    if (level == L_REQUEST && num == 1)
        return descend(d, L_SERIES);
    if (level == L_SERIES && num == 2)
        return descend(d, L_SAMPLE);
    if (level == L_SERIES && num == 1)
        return begin_collect(d, (size_t)lim->label_name + lim->label_value + LABEL_SLACK,
                             "a label (see limits.label_name and limits.label_value)");
    if (level == L_SAMPLE && num == 1)
        return begin_payload(d);
    if (level == L_SAMPLE && num == 2)
        return begin_collect(d, ID_MAX, "a sample ID");
    d->state = P_SKIP;
    return STEP_MORE;
}

static enum step take_label(struct push_proto *d, struct str msg)
{
    struct pb c = pb_of(msg);
    struct pb_field f;
    struct str pair[2] = {{"", 0}, {"", 0}};

    while (pb_next(&c, &f)) {
        if (f.num > 2)
            continue;
        if (f.wire != PB_BYTES)
            return bad(d, "a label has a field of the wrong type");
        pair[f.num - 1] = f.bytes;
    }
    return c.bad ? bad(d, "a label is broken") : push_label(d->push, pair[0], pair[1]);
}

static enum step collect(struct push_proto *d, struct str *in)
{
    size_t left = (size_t)d->need - d->have, n = left < in->len ? left : in->len;

    if (d->cap < d->need + 1) {
        char *p = GROW(d->push->in->arena, d->scratch, char, d->cap, (size_t)d->need * 2 + 64);
        if (!p)
            return intake_no_room(d->push->in);
        d->scratch = p;
        d->cap = (size_t)d->need * 2 + 64;
    }
    if (n)
        memcpy(d->scratch + d->have, in->p, n);
    d->have += n;
    d->pos += n;
    in->p += n;
    in->len -= n;
    if (n < left)
        return STEP_MORE;
    d->state = P_KEY;
    struct str msg = {d->scratch, d->have};
    return d->path[d->depth] == L_SERIES ? take_label(d, msg) : push_sample_id(d->push, msg);
}

static enum step pass_on(struct push_proto *d, struct str *in, uint32_t *budget)
{
    struct str slice = {in->p, d->need < in->len ? (size_t)d->need : in->len};
    size_t given = slice.len;
    enum step s = payload_feed(d->payload, &slice, budget);
    size_t taken = given - slice.len;

    in->p += taken;
    in->len -= taken;
    d->pos += taken;
    d->need -= taken;
    if (s != STEP_FAIL && d->need == 0) /* what the payload still holds, its end flushes */
        d->state = P_PAYLOAD_END;
    return s;
}

static enum step skip(struct push_proto *d, struct str *in)
{
    size_t n = d->need < in->len ? (size_t)d->need : in->len;

    in->p += n;
    in->len -= n;
    d->pos += n;
    d->need -= n;
    if (d->need == 0)
        d->state = P_KEY;
    return STEP_MORE;
}

static void close_levels(struct push_proto *d)
{
    while (d->state == P_KEY && d->shift == 0 && d->depth && d->pos == d->end[d->depth])
        if (d->path[d->depth--] == L_SERIES)
            push_series_end(d->push);
}

static enum step step_once(struct push_proto *d, struct str *in, uint32_t *budget)
{
    uint64_t before = d->pos, v;
    enum step s = STEP_MORE;

    if (d->state == P_PAYLOAD)
        return pass_on(d, in, budget);
    if (d->state == P_PAYLOAD_END) {
        s = payload_end(d->payload, budget);
        if (s == STEP_MORE)
            d->state = P_KEY;
        return s;
    }
    if (d->state == P_KEY)
        s = at_key(d, in);
    else if (d->state == P_LENGTH)
        s = at_length(d, in);
    else if (d->state == P_COLLECT)
        s = collect(d, in);
    else if (d->state == P_SKIP)
        s = skip(d, in);
    else if ((s = varint(d, in, &v)) == STEP_AGAIN) {
        d->state = P_KEY;
        s = STEP_MORE;
    }
    budget_take(budget, (size_t)(d->pos - before));
    return s;
}

/* States that can go on without input. */
static bool ready(const struct push_proto *d)
{
    return d->state == P_PAYLOAD_END ||
           ((d->state == P_COLLECT || d->state == P_SKIP) && d->need == (d->state == P_SKIP ? 0 : d->have));
}

enum step push_proto_feed(struct push_proto *d, struct str *in, uint32_t *budget)
{
    while (in->len || ready(d)) {
        if (*budget == 0)
            return STEP_AGAIN;
        struct str slice = budget_slice(*in, *budget);
        size_t given = slice.len;
        enum step s = step_once(d, &slice, budget);
        in->p += given - slice.len;
        in->len -= given - slice.len;
        if (s != STEP_MORE)
            return s;
        close_levels(d);
    }
    return STEP_MORE;
}

enum step push_proto_end(struct push_proto *d, uint32_t *budget)
{
    struct str nothing = {"", 0};
    enum step s = push_proto_feed(d, &nothing, budget);

    if (s != STEP_MORE)
        return s;
    return d->depth || d->state != P_KEY || d->shift ? bad(d, "it ends inside a field") : STEP_MORE;
}
