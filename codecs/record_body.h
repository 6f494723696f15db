/*
 * The body of a record, version 1, as record.c writes and record_open.c reads it:
 *
 *   magic, version   4 bytes
 *   n_stacks         varint, then that many stack ids of 8 bytes: hashes, which no compressor makes smaller
 *   one zstd frame:
 *     series         project, service, name, spy; labels
 *     times          time, duration (zigzag); period type, unit, period
 *     format, comment
 *     types          number, primary; of each: type, unit, id, aggregation, total (zigzag)
 *     label sets     number; of each: number of labels; of each: key, kind, then value, or unit and number (zigzag)
 *     drops
 *     samples        number, then columns: stacks, label sets, the values of every type
 *
 * Stacks are numbered by first use, so that the column of stacks is nearly all zeros: 0 is the next new stack, n + 1 is
 * stack n once more. Label sets are differences (zigzag). A column of values begins with the greatest common divisor of
 * its values, by which they are divided (a sampling period, mostly); 0 means that all values are 0 and nothing follows.
 */
#ifndef CODECS_RECORD_BODY_H
#define CODECS_RECORD_BODY_H

#include "codecs/profile.h"

#define RECORD_MAGIC "FGR\x01"
enum { RECORD_MAGIC_BYTES = 4, RECORD_ZSTD_LEVEL = 1 };

/* Appends the body of a profile of which stacks need be nothing but ids: stack s is ids[s]. false: no memory. */
bool record_body(const struct profile *p, const uint64_t *ids, struct str format, int level,
                 struct buf *out) MUST_CHECK;

#endif
