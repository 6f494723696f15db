/*
 * The spool's files: segments NUMBER.spool, made at their full size, appended to, read from the oldest entry on and
 * deleted when all of them has been dealt with. Every call does its work before it returns: on the spool's own thread.
 * One process owns the directory, by a lock.
 */
#ifndef BACKENDS_SPOOL_LOG_H
#define BACKENDS_SPOOL_LOG_H

#include "backends/spool.h"
#include "backends/spool_entry.h"

struct spool_log;

/* Makes the directory where there is none. What is left in it from before is read first. NULL: f says why. */
struct spool_log *spool_log_open(const char *dir, uint64_t max_bytes, struct fault *f) MUST_CHECK;
void spool_log_close(struct spool_log *l); /* NULL is fine */

enum spool_result { SPOOL_OK, SPOOL_FULL, SPOOL_NO_SPACE, SPOOL_FAILED };
/* Written, not yet durable. Nothing of it is there, for any reader, unless SPOOL_OK. */
enum spool_result spool_log_append(struct spool_log *l, struct str payload, const struct spool_entry *e) MUST_CHECK;
/* Everything appended is durable. Not SPOOL_OK: nothing that was appended since the last call can be relied on. */
enum spool_result spool_log_sync(struct spool_log *l) MUST_CHECK;

/* Looks over the next segment left from before: counts what is in it, cuts what is torn. false: all have been. */
bool spool_log_scan(struct spool_log *l);
/*
 * The oldest entry that has not been dealt with, its payload in `bytes`; the same one until spool_log_next or
 * spool_log_put_off. SPOOL_END: none. SPOOL_TORN: no memory, or the disk does not answer; ask again later. What is
 * damaged is cut off, counted and skipped.
 */
enum spool_step spool_log_read(struct spool_log *l, struct buf *bytes, struct spool_entry *e) MUST_CHECK;
/* The entry that was read has been dealt with. */
void spool_log_next(struct spool_log *l);
/* It could not be dealt with: what is behind it is next; it stays, with its segment, until spool_log_rewind. */
void spool_log_put_off(struct spool_log *l);
/* Back to the first segment that has something put off; what else is in it will be read, and is counted, once more. */
void spool_log_rewind(struct spool_log *l);
/* The entry that was read is whole, and yet not one of ours: counted as damaged. */
void spool_log_refuse(struct spool_log *l);
/* Deletes segments of which everything has been. */
void spool_log_trim(struct spool_log *l);

/* bytes, groups, records, segments, corrupt, full. */
void spool_log_stats(const struct spool_log *l, struct spool_stats *out);
/* The last thing that went wrong, in words; empty: nothing. */
const char *spool_log_why(const struct spool_log *l);

#endif
