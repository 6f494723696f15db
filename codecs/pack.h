/*
 * How our own formats (records, symbol blocks) write numbers and strings: LEB128 varints, zigzag where a number may be
 * negative, strings behind their length, ids as eight bytes, little-endian.
 */
#ifndef CODECS_PACK_H
#define CODECS_PACK_H

#include "codecs/base.h"

enum { PACK_VARINT_MAX = 10 };

/* Room for n more bytes, so that what follows needs no check of its own. false: out of memory, b->failed. */
bool pack_room(struct buf *b, size_t n) MUST_CHECK;
/* Writes where pack_room has been asked for. */
static inline void pack_raw_u64(struct buf *b, uint64_t v)
{
    while (v >= 0x80) {
        b->p[b->len++] = (char)(uint8_t)(v | 0x80);
        v >>= 7;
    }
    b->p[b->len++] = (char)v;
}
static inline uint64_t pack_zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

void pack_u64(struct buf *b, uint64_t v);
void pack_i64(struct buf *b, int64_t v);
void pack_str(struct buf *b, struct str s);
void pack_ids(struct buf *b, const uint64_t *ids, size_t n);

/* Reads back. `bad` is sticky: every read after the first bad one gives 0 or nothing, so that a reader checks once. */
struct unpack {
    const uint8_t *p, *end;
    bool bad;
};
static inline struct unpack unpack_of(struct str s)
{
    return (struct unpack){(const uint8_t *)s.p, (const uint8_t *)s.p + s.len, false};
}
uint64_t unpack_u64_slow(struct unpack *u);
static inline uint64_t unpack_u64(struct unpack *u)
{
    if (u->p < u->end && *u->p < 0x80)
        return *u->p++;
    return unpack_u64_slow(u);
}
static inline int64_t unpack_i64(struct unpack *u)
{
    uint64_t v = unpack_u64(u);
    return (int64_t)(v >> 1 ^ -(v & 1));
}
/* A number of things to come, each of at least `least` bytes: more than what is left can hold is bad. */
uint32_t unpack_count(struct unpack *u, size_t least);
/* A number below `limit`. */
uint32_t unpack_below(struct unpack *u, uint64_t limit);
struct str unpack_str(struct unpack *u); /* borrows the bytes that are read */
struct str unpack_bytes(struct unpack *u, size_t n);
void unpack_ids(struct unpack *u, uint64_t *ids, size_t n);

#endif
