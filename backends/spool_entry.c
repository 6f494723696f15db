/* Frames and entries of a spool, as bytes. */
#include "backends/spool_entry.h"

#include "codecs/crc32c.h"
#include "codecs/pack.h"

static void write_u32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static uint32_t read_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t crc_of(const uint8_t head[SPOOL_FRAME_BYTES], struct str payload)
{
    return crc32c(crc32c(0, head, 4), payload.p, payload.len);
}

void spool_frame_head(struct str payload, uint8_t head[SPOOL_FRAME_BYTES])
{
    ASSERT(payload.len && payload.len <= UINT32_MAX);
    write_u32(head, (uint32_t)payload.len);
    write_u32(head + 4, crc_of(head, payload));
}

uint32_t spool_frame_length(const uint8_t head[SPOOL_FRAME_BYTES])
{
    return read_u32(head);
}

bool spool_frame_whole(const uint8_t head[SPOOL_FRAME_BYTES], struct str payload)
{
    return read_u32(head) == payload.len && read_u32(head + 4) == crc_of(head, payload);
}

enum spool_step spool_frame_next(struct str segment, size_t *at, struct str *payload)
{
    const uint8_t *head = (const uint8_t *)segment.p + *at;
    size_t left = segment.len - *at;

    if (*at == segment.len)
        return SPOOL_END;
    if (left < SPOOL_FRAME_BYTES)
        return SPOOL_TORN;
    *payload = (struct str){(const char *)head + SPOOL_FRAME_BYTES, spool_frame_length(head)};
    if (!payload->len)
        return read_u32(head + 4) ? SPOOL_TORN : SPOOL_END;
    if (payload->len > left - SPOOL_FRAME_BYTES || !spool_frame_whole(head, *payload))
        return SPOOL_TORN;
    *at += SPOOL_FRAME_BYTES + payload->len;
    return SPOOL_ENTRY;
}

static void pack_head(struct buf *b, enum spool_kind kind, const struct group *g, int64_t at_ns)
{
    uint64_t name[] = {g->boot, g->id};

    pack_u64(b, kind);
    pack_ids(b, name, COUNTOF(name));
    pack_u64(b, g->class_days);
    pack_i64(b, g->day);
    pack_i64(b, at_ns);
    pack_u64(b, g->n);
}

void spool_pack_group(struct buf *b, const struct group *g, int64_t at_ns)
{
    pack_head(b, SPOOL_GROUP, g, at_ns);
    for (uint16_t i = 0; i < g->n; i++)
        record_pack(g->records[i], b);
}

void spool_pack_mark(struct buf *b, const struct group *g, uint64_t told, int64_t at_ns)
{
    pack_head(b, SPOOL_MARK, g, at_ns);
    pack_ids(b, &told, 1);
}

bool spool_entry_read(struct str payload, struct spool_entry *e)
{
    struct unpack u = unpack_of(payload);
    uint64_t name[2];
    int64_t day;

    *e = (struct spool_entry){.kind = unpack_below(&u, SPOOL_MARK + 1)};
    unpack_ids(&u, name, COUNTOF(name));
    e->group.boot = name[0];
    e->group.id = name[1];
    e->group.class_days = (uint16_t)unpack_below(&u, UINT16_MAX);
    day = unpack_i64(&u);
    e->group.day = (int32_t)day;
    e->at_ns = unpack_i64(&u);
    e->group.n = (uint16_t)unpack_below(&u, GROUP_MAX + 1);
    if (e->kind == SPOOL_MARK)
        unpack_ids(&u, &e->told, 1);
    else
        e->rest = (struct str){(const char *)u.p, (size_t)(u.end - u.p)};
    return !u.bad && e->kind && e->group.n && day == e->group.day && (e->kind == SPOOL_GROUP || u.p == u.end);
}

enum err spool_entry_records(struct spool_entry *e, struct fault *f)
{
    struct unpack u = unpack_of(e->rest);
    struct group *g = &e->group;
    enum err err = E_OK;
    uint16_t n = 0;

    while (!err && n < g->n) {
        err = record_unpack(&u, &g->records[n], f);
        n += !err;
    }
    if (!err && u.p != u.end)
        err = fault_set(f, E_BAD_INPUT, "more than the records of a group");
    for (uint16_t i = 0; err && i < n; i++) {
        record_free(g->records[i]);
        g->records[i] = NULL;
    }
    return err;
}
