/* Protobuf and gzip written by hand, for tests that need bytes of their own. Asserts that there is memory. */
#ifndef TEST_ORACLE_WIRE_H
#define TEST_ORACLE_WIRE_H

#include "codecs/base.h"

void wire_varint(struct buf *b, uint64_t v);
void wire_number(struct buf *b, uint32_t field, uint64_t v);
void wire_bytes(struct buf *b, uint32_t field, struct str s);
/* The second buffer as a field of the first; it is emptied. */
void wire_message(struct buf *b, uint32_t field, struct buf *message);
void wire_gzip(struct buf *out, struct str s);

/*
 * A pprof of one type cpu/nanoseconds and functions f1, f2 (locations 1, 2), `file.c`; strings 0.. are
 * "", cpu, nanoseconds, f1, f2, file.c. Samples and more are for the caller to add.
 */
void wire_profile(struct buf *b);
void wire_sample(struct buf *b, const uint64_t *ids, size_t n_ids, const int64_t *values, size_t n_values);
/* One sample of location 1, value 7. */
void wire_small(struct buf *b);

#endif
