/* The inverse of codecs/pb.c, as short as it can be. */
#include "test/oracle/wire.h"

#include <stdlib.h>

#include <libdeflate.h>

void wire_varint(struct buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        buf_char(b, (char)(v | 0x80));
    buf_char(b, (char)v);
    ASSERT(!b->failed);
}

void wire_number(struct buf *b, uint32_t field, uint64_t v)
{
    wire_varint(b, (uint64_t)field << 3);
    wire_varint(b, v);
}

void wire_bytes(struct buf *b, uint32_t field, struct str s)
{
    wire_varint(b, (uint64_t)field << 3 | 2);
    wire_varint(b, s.len);
    buf_str(b, s);
    ASSERT(!b->failed);
}

void wire_message(struct buf *b, uint32_t field, struct buf *message)
{
    wire_bytes(b, field, buf_view(message));
    message->len = 0;
}

void wire_gzip(struct buf *out, struct str s)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(1);
    size_t room = libdeflate_gzip_compress_bound(c, s.len);
    char *p = malloc(room);

    ASSERT(c && p);
    buf_add(out, p, libdeflate_gzip_compress(c, s.p, s.len, p, room));
    ASSERT(!out->failed);
    free(p);
    libdeflate_free_compressor(c);
}

void wire_profile(struct buf *b)
{
    static const char *const strings[] = {"", "cpu", "nanoseconds", "f1", "f2", "file.c"};
    struct buf m = {0}, line = {0};

    wire_number(&m, 1, 1);
    wire_number(&m, 2, 2);
    wire_message(b, 1, &m);
    for (uint64_t i = 1; i <= 2; i++) {
        wire_number(&line, 1, i);
        wire_number(&m, 1, i);
        wire_message(&m, 4, &line);
        wire_message(b, 4, &m);
        wire_number(&m, 1, i);
        wire_number(&m, 2, 2 + i);
        wire_number(&m, 4, 5);
        wire_message(b, 5, &m);
    }
    for (size_t i = 0; i < COUNTOF(strings); i++)
        wire_bytes(b, 6, str_of(strings[i]));
    buf_free(&m);
    buf_free(&line);
}

void wire_sample(struct buf *b, const uint64_t *ids, size_t n_ids, const int64_t *values, size_t n_values)
{
    struct buf m = {0}, packed = {0};

    for (size_t i = 0; i < n_ids; i++)
        wire_varint(&packed, ids[i]);
    wire_message(&m, 1, &packed);
    for (size_t i = 0; i < n_values; i++)
        wire_varint(&packed, (uint64_t)values[i]);
    wire_message(&m, 2, &packed);
    wire_message(b, 2, &m);
    buf_free(&m);
    buf_free(&packed);
}

void wire_small(struct buf *b)
{
    wire_profile(b);
    wire_sample(b, &(uint64_t){1}, 1, &(int64_t){7}, 1);
}
