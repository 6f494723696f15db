/*
 * Segments of a spool, as they may be found after a crash. The first byte chooses: the rest as a segment; as payloads
 * of frames whose checksums are right, so that what is behind the checksum is reached; as a packed record alone.
 */
#include "backends/spool_file.h"
#include "codecs/pack.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void read_entry(struct str payload)
{
    struct spool_entry e;
    struct fault f = {0};

    if (!spool_entry_read(payload, &e))
        return;
    ASSERT(e.group.n && e.group.n <= GROUP_MAX);
    if (e.kind != SPOOL_GROUP)
        return;
    enum err err = spool_entry_records(&e, &f);
    ASSERT(err == E_OK || err == E_BAD_INPUT);
    struct buf again = {0};
    if (err == E_OK)
        spool_pack_group(&again, &e.group, e.at_ns);
    ASSERT(!again.failed);
    buf_free(&again);
    for (uint16_t i = 0; i < e.group.n; i++)
        record_free(e.group.records[i]);
}

static void read_segment(struct str bytes)
{
    struct str payload;
    size_t at;
    enum spool_step step = spool_file_begin(bytes, &at);

    while (step == SPOOL_ENTRY) {
        step = spool_frame_next(bytes, &at, &payload);
        ASSERT(at <= bytes.len);
        if (step == SPOOL_ENTRY)
            read_entry(payload);
    }
}

static void frame(struct str payload)
{
    struct buf segment = {0};
    uint8_t head[SPOOL_FRAME_BYTES];

    if (!payload.len)
        return;
    spool_frame_head(payload, head);
    buf_add(&segment, SPOOL_MAGIC, SPOOL_MAGIC_BYTES);
    buf_add(&segment, head, sizeof head);
    buf_str(&segment, payload);
    ASSERT(!segment.failed);
    read_segment(buf_view(&segment));
    buf_free(&segment);
}

static void read_symbols(struct str bytes)
{
    struct symbols *s = NULL;
    struct fault f = {0};
    struct buf again = {0};

    if (symbols_unpack(bytes, &s, &f) == E_OK) {
        symbols_pack(s, &again);
        ASSERT(!again.failed);
    }
    buf_free(&again);
    symbols_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    /* An exact copy, so that the sanitizer sees a read outside. */
    char *copy = malloc(n);
    ASSERT(copy);
    memcpy(copy, data + 1, n - 1);
    struct str rest = {copy, n - 1};
    if (data[0] % 4 == 0)
        read_segment(rest);
    else if (data[0] % 4 == 1)
        frame(rest);
    else
        read_symbols(rest);
    free(copy);
    return 0;
}
