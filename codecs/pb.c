/* Varints, fields and the framing of a stream of fields. */
#include "codecs/pb.h"

enum { VARINT_MAX = 10, LAST_SHIFT = 63, FIELD_NUMBER_MAX = (1 << 29) - 1 };

bool pb_varint_slow(struct pb *c, uint64_t *v)
{
    uint64_t acc = 0;
    const uint8_t *p = c->p;

    for (uint32_t shift = 0; p < c->end && shift < 7 * VARINT_MAX; shift += 7) {
        if (shift == LAST_SHIFT && *p > 1)
            break; /* more than 64 bits */
        acc |= (uint64_t)(*p & 0x7f) << shift;
        if (*p++ < 0x80) {
            c->p = p;
            *v = acc;
            return true;
        }
    }
    c->bad = true;
    return false;
}

static bool key_split(uint64_t key, struct pb_field *f)
{
    uint64_t num = key >> 3;
    uint32_t wire = key & 7;

    if (num == 0 || num > FIELD_NUMBER_MAX || wire == 3 || wire == 4 || wire > 5)
        return false;
    *f = (struct pb_field){.num = (uint32_t)num, .wire = (enum pb_wire)wire};
    return true;
}

static bool take(struct pb *c, uint64_t n, struct str *out)
{
    if (n > (uint64_t)(c->end - c->p))
        return false;
    *out = (struct str){(const char *)c->p, (size_t)n};
    c->p += n;
    return true;
}

bool pb_next_slow(struct pb *c, struct pb_field *f)
{
    uint64_t v;

    if (c->bad || c->p == c->end || !pb_varint(c, &v))
        return false;
    bool good = key_split(v, f);
    if (good && f->wire == PB_VARINT)
        good = pb_varint(c, &f->u);
    else if (good && f->wire == PB_BYTES)
        good = pb_varint(c, &v) && take(c, v, &f->bytes);
    else if (good)
        good = take(c, f->wire == PB_FIXED64 ? 8 : 4, &f->bytes);
    c->bad = !good;
    return good;
}

size_t pb_count(struct str packed)
{
    size_t n = 0;

    for (size_t i = 0; i < packed.len; i++)
        n += (uint8_t)packed.p[i] < 0x80;
    return n;
}

/* One varint that may arrive in pieces: PB_FIELD when it is whole. */
static enum pb_step stream_varint(struct pb_framer *fr, struct str *in, uint64_t *v)
{
    while (in->len) {
        uint8_t b = (uint8_t)*in->p;
        if (fr->shift > LAST_SHIFT || (fr->shift == LAST_SHIFT && b > 1))
            return PB_BAD;
        in->p++;
        in->len--;
        fr->acc |= (uint64_t)(b & 0x7f) << fr->shift;
        fr->shift += 7;
        if (b < 0x80) {
            *v = fr->acc;
            fr->acc = fr->shift = 0;
            return PB_FIELD;
        }
    }
    return fr->shift >= 7 * VARINT_MAX ? PB_BAD : PB_MORE;
}

static enum pb_step at_key(struct pb_framer *fr, struct str *in)
{
    uint64_t v;
    enum pb_step s = stream_varint(fr, in, &v);

    if (s != PB_FIELD)
        return s;
    if (!key_split(v, &fr->field))
        return PB_BAD;
    fr->have = 0;
    fr->need = fr->field.wire == PB_FIXED64 ? 8 : 4;
    fr->state = fr->field.wire == PB_VARINT ? PB_AT_VARINT : fr->field.wire == PB_BYTES ? PB_AT_LENGTH : PB_AT_SKIP;
    return PB_FIELD;
}

/* Lengths over 2 GiB are no protobuf message's, whatever the limits are. */
static enum pb_step at_length(struct pb_framer *fr, struct str *in)
{
    enum pb_step s = stream_varint(fr, in, &fr->need);
    bool wanted = fr->field.num < 32 && (fr->wanted & 1u << fr->field.num);

    if (s != PB_FIELD)
        return s;
    if (fr->need > INT32_MAX)
        return PB_BAD;
    if (wanted && fr->need > fr->max)
        return PB_TOO_LONG;
    fr->state = wanted ? PB_AT_BODY : PB_AT_SKIP;
    return PB_FIELD;
}

static bool keep(struct pb_framer *fr, struct str piece)
{
    if (fr->cap - fr->have < piece.len) {
        size_t cap = fr->cap * 2 > fr->have + piece.len ? fr->cap * 2 : fr->have + piece.len + 64;
        char *p = GROW(fr->arena, fr->scratch, char, fr->cap, cap);
        if (!p)
            return false;
        fr->scratch = p;
        fr->cap = cap;
    }
    if (piece.len)
        memcpy(fr->scratch + fr->have, piece.p, piece.len);
    fr->have += piece.len;
    return true;
}

static enum pb_step at_body(struct pb_framer *fr, struct str *in)
{
    size_t left = (size_t)fr->need - fr->have, n = left < in->len ? left : in->len;
    struct str piece = {in->p, n};

    if ((fr->have || n < left) && !keep(fr, piece))
        return PB_NO_ROOM;
    in->p += n;
    in->len -= n;
    if (n < left)
        return PB_MORE;
    fr->field.bytes = fr->have ? (struct str){fr->scratch, fr->have} : piece;
    fr->state = PB_AT_KEY;
    return PB_FIELD;
}

static enum pb_step at_skip(struct pb_framer *fr, struct str *in)
{
    size_t n = fr->need < in->len ? (size_t)fr->need : in->len;

    in->p += n;
    in->len -= n;
    fr->need -= n;
    if (fr->need)
        return PB_MORE;
    fr->state = PB_AT_KEY;
    return PB_FIELD;
}

bool pb_framed(const struct pb_framer *fr)
{
    return fr->state == PB_AT_KEY && fr->shift == 0;
}

/* A wanted field that lies whole in the input, which is nearly every one. false: nothing was taken. */
static bool frame_whole(const struct pb_framer *fr, struct str *in, struct pb_field *f)
{
    struct pb c = pb_of(*in);
    uint64_t key, len;

    if (!pb_varint(&c, &key) || !key_split(key, f) || f->wire != PB_BYTES || f->num >= 32 ||
        !(fr->wanted & 1u << f->num))
        return false;
    if (!pb_varint(&c, &len) || len > fr->max || !take(&c, len, &f->bytes))
        return false;
    in->len -= (size_t)((const char *)c.p - in->p);
    in->p = (const char *)c.p;
    return true;
}

enum pb_step pb_frame(struct pb_framer *fr, struct str *in, struct pb_field *f)
{
    if (pb_framed(fr) && frame_whole(fr, in, f))
        return PB_FIELD;
    for (;;) {
        enum pb_step s = PB_MORE;
        bool done = false;
        if (fr->state == PB_AT_KEY) {
            s = at_key(fr, in);
        } else if (fr->state == PB_AT_VARINT) {
            s = stream_varint(fr, in, &fr->field.u);
            done = s == PB_FIELD;
        } else if (fr->state == PB_AT_LENGTH) {
            s = at_length(fr, in);
        } else {
            done =
                fr->state == PB_AT_BODY || fr->field.wire != PB_BYTES; /* of a fixed one only the wire type matters */
            s = fr->state == PB_AT_BODY ? at_body(fr, in) : at_skip(fr, in);
        }
        if (s != PB_FIELD || done) {
            if (done && s == PB_FIELD)
                fr->state = PB_AT_KEY;
            *f = fr->field;
            return s;
        }
    }
}
