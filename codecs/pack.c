/* Varints, strings and ids of our own formats; see codecs/pack.h. */
#include "codecs/pack.h"

#include <endian.h>
#include <stdlib.h>

enum { FIRST_BYTES = 256 };

bool pack_room(struct buf *b, size_t n)
{
    if (b->failed)
        return false;
    if (n <= b->cap - b->len)
        return true;
    size_t cap = b->cap < FIRST_BYTES ? FIRST_BYTES : b->cap * 2;
    if (cap < b->len + n)
        cap = b->len + n;
    char *p = realloc(b->p, cap);
    if (!p) {
        b->failed = true;
        return false;
    }
    b->p = p;
    b->cap = cap;
    return true;
}

void pack_u64(struct buf *b, uint64_t v)
{
    if (pack_room(b, PACK_VARINT_MAX))
        pack_raw_u64(b, v);
}

void pack_i64(struct buf *b, int64_t v)
{
    pack_u64(b, pack_zigzag(v));
}

void pack_str(struct buf *b, struct str s)
{
    pack_u64(b, s.len);
    if (s.len)
        buf_add(b, s.p, s.len);
}

void pack_ids(struct buf *b, const uint64_t *ids, size_t n)
{
    if (!pack_room(b, n * sizeof *ids))
        return;
    for (size_t i = 0; i < n; i++) {
        uint64_t le = htole64(ids[i]);
        memcpy(b->p + b->len, &le, sizeof le);
        b->len += sizeof le;
    }
}

static uint64_t refuse(struct unpack *u)
{
    u->bad = true;
    u->p = u->end;
    return 0;
}

uint64_t unpack_u64_slow(struct unpack *u)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64 && u->p < u->end; shift += 7) {
        uint8_t c = *u->p++;
        if (shift == 63 && c > 1)
            return refuse(u);
        v |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80)
            return v;
    }
    return refuse(u);
}

uint32_t unpack_count(struct unpack *u, size_t least)
{
    uint64_t n = unpack_u64(u);

    if (n > (size_t)(u->end - u->p) / least || n >= UINT32_MAX)
        return (uint32_t)refuse(u);
    return (uint32_t)n;
}

uint32_t unpack_below(struct unpack *u, uint64_t limit)
{
    uint64_t n = unpack_u64(u);

    if (n >= limit || n >= UINT32_MAX)
        return (uint32_t)refuse(u);
    return (uint32_t)n;
}

struct str unpack_bytes(struct unpack *u, size_t n)
{
    if (n > (size_t)(u->end - u->p)) {
        refuse(u);
        return (struct str){"", 0};
    }
    struct str s = {(const char *)u->p, n};
    u->p += n;
    return s;
}

struct str unpack_str(struct unpack *u)
{
    uint64_t n = unpack_u64(u);
    return unpack_bytes(u, n > SIZE_MAX ? SIZE_MAX : (size_t)n);
}

void unpack_ids(struct unpack *u, uint64_t *ids, size_t n)
{
    struct str s = n > SIZE_MAX / 8 ? (struct str){NULL, 0} : unpack_bytes(u, n * 8);

    for (size_t i = 0; i < s.len / 8; i++) {
        uint64_t le;
        memcpy(&le, s.p + i * 8, sizeof le);
        ids[i] = le64toh(le);
    }
}
