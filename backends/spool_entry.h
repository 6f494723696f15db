/*
 * What a spool's segment is made of, without files. A segment begins with SPOOL_MAGIC; then frames: length and CRC-32C
 * of the payload, 32 bits each, little-endian, the CRC over the length too; zeros behind the last one, since segments
 * are made at their full size. A payload is an entry: a group with its records, or the mark of one.
 */
#ifndef BACKENDS_SPOOL_ENTRY_H
#define BACKENDS_SPOOL_ENTRY_H

#include "backends/backend.h"

#define SPOOL_MAGIC "FGSPOOL1"
enum { SPOOL_MAGIC_BYTES = 8, SPOOL_FRAME_BYTES = 8 };

enum spool_step { SPOOL_ENTRY, SPOOL_END, SPOOL_TORN };

/* The head of a frame around this payload. */
void spool_frame_head(struct str payload, uint8_t head[SPOOL_FRAME_BYTES]);
/* The payload's length by its frame's head; 0: the end. */
uint32_t spool_frame_length(const uint8_t head[SPOOL_FRAME_BYTES]);
bool spool_frame_whole(const uint8_t head[SPOOL_FRAME_BYTES], struct str payload);
/* The next payload of a segment's bytes from *at on, which moves behind it. Borrowed. */
enum spool_step spool_frame_next(struct str segment, size_t *at, struct str *payload);

enum spool_kind { SPOOL_GROUP = 1, SPOOL_MARK = 2 };
struct spool_entry {
    enum spool_kind kind;
    struct group group; /* without records: boot, id, class, day, n */
    int64_t at_ns;      /* wall clock, when it was written */
    uint64_t told;      /* MARK */
    struct str rest;    /* GROUP: n packed records */
};
/* Appended to out; out->failed says whether memory ran out. */
void spool_pack_group(struct buf *out, const struct group *g, int64_t at_ns);
void spool_pack_mark(struct buf *out, const struct group *g, uint64_t told, int64_t at_ns);
/* What a payload is. false: not one of ours. */
bool spool_entry_read(struct str payload, struct spool_entry *e) MUST_CHECK;
/* The records of a group, into e->group.records; all or none. E_BAD_INPUT, E_NO_MEMORY. */
enum err spool_entry_records(struct spool_entry *e, struct fault *f) MUST_CHECK;

#endif
