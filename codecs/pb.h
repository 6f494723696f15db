/*
 * Protobuf, by hand: a bounds-checked cursor over one message in memory, and a framer that cuts a stream into top-level
 * fields. Varints may be over-long, up to ten bytes. Groups are refused. Nothing here trusts a declared length.
 */
#ifndef CODECS_PB_H
#define CODECS_PB_H

#include "codecs/base.h"

enum pb_wire { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

struct pb_field {
    uint32_t num;
    enum pb_wire wire;
    uint64_t u;       /* varint */
    struct str bytes; /* PB_BYTES: borrows what the cursor or the framer was given */
};

/* `bad` is sticky. */
struct pb {
    const uint8_t *p, *end;
    bool bad;
};
static inline struct pb pb_of(struct str msg)
{
    const uint8_t *p = (const uint8_t *)(msg.len ? msg.p : "");
    return (struct pb){p, p + msg.len, false};
}
bool pb_varint_slow(struct pb *c, uint64_t *v);
static inline bool pb_varint(struct pb *c, uint64_t *v)
{
    if (__builtin_expect(c->p < c->end && *c->p < 0x80, 1)) {
        *v = *c->p++;
        return true;
    }
    if (c->end - c->p >= 2 && c->p[1] < 0x80) {
        *v = (uint64_t)(c->p[0] & 0x7f) | (uint64_t)c->p[1] << 7;
        c->p += 2;
        return true;
    }
    return pb_varint_slow(c, v);
}
bool pb_next_slow(struct pb *c, struct pb_field *f);
/* false: at the end, or bad. Fields 1 to 15 that are a varint or bytes, nearly all there are, take the short way. */
static inline bool pb_next(struct pb *c, struct pb_field *f)
{
    if (c->p == c->end || c->bad)
        return false;
    uint8_t key = *c->p;
    if (key < 8 || key >= 0x80 || (key & 5) != 0)
        return pb_next_slow(c, f);
    c->p++;
    f->num = key >> 3;
    f->wire = (enum pb_wire)(key & 7);
    f->bytes = (struct str){NULL, 0};
    if (__builtin_expect(!pb_varint(c, &f->u), 0))
        return false;
    if (f->wire == PB_BYTES) {
        if (f->u > (uint64_t)(c->end - c->p)) {
            c->bad = true;
            return false;
        }
        f->bytes = (struct str){(const char *)c->p, (size_t)f->u};
        c->p += f->u;
    }
    return true;
}
/* How many varints a packed field holds (bytes that end one). */
size_t pb_count(struct str packed);

/* The framer. `wanted`: bit n set = field n is handed out when it is of wire type PB_BYTES; others of that type are
 * skipped. */
enum pb_step { PB_FIELD, PB_MORE, PB_BAD, PB_TOO_LONG, PB_NO_ROOM };
struct pb_framer {
    struct arena *arena; /* for a field that crosses a border of its input */
    uint32_t wanted;
    size_t max; /* bytes of a wanted field */
    enum { PB_AT_KEY, PB_AT_VARINT, PB_AT_LENGTH, PB_AT_BODY, PB_AT_SKIP } state;
    uint64_t acc, need;
    uint32_t shift;
    struct pb_field field;
    char *scratch;
    size_t have, cap;
};
/* Takes bytes off the front of *in up to the end of one field. PB_TOO_LONG: field->num is over `max`. */
enum pb_step pb_frame(struct pb_framer *fr, struct str *in, struct pb_field *f);
bool pb_framed(const struct pb_framer *fr); /* between two fields */

#endif
