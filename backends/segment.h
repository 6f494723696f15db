/*
 * Originals: the inner bytes of uploads exactly as sent, appended to segment files, a folder per project. A segment
 * belongs to one (retention class, day) and goes with it; beyond max_bytes of a project its oldest segments go first.
 *
 * An entry is a header (length, keyed checksum, attempt) and the bytes; a row of the store says where its entry is.
 * What a crash leaves behind the last synced entry is never pointed at. Written by one thread, read by any.
 */
#ifndef BACKENDS_SEGMENT_H
#define BACKENDS_SEGMENT_H

#include "backends/backend.h"

struct segment_place {
    int64_t segment; /* counts up per project from 1 */
    int64_t at;
};

struct segments;
/* dir is made if it is not there; key outlives it. NULL: f says why. */
struct segments *segments_open(const char *dir, const struct hash_key *key, uint64_t max_bytes,
                               struct fault *f) MUST_CHECK;
void segments_close(struct segments *s); /* NULL is fine */

/* false: full, an I/O error or no memory; what was written then is not pointed at. Larger than max_bytes: true, and
 * segment is -1. */
bool segments_append(struct segments *s, struct str project, uint16_t class_days, int32_t day, struct attempt a,
                     struct str bytes, struct segment_place *place) MUST_CHECK;
bool segments_sync(struct segments *s) MUST_CHECK; /* everything appended so far is on the disk */
void segments_expire(struct segments *s, int32_t today);

/* Appends the entry to out. E_NOT_FOUND: its segment is gone. E_INTERNAL: damaged. E_NO_MEMORY. Any thread. */
enum err segments_read(const struct segments *s, struct str project, uint16_t class_days, int32_t day,
                       struct segment_place place, struct attempt a, struct buf *out, struct fault *f) MUST_CHECK;

#endif
