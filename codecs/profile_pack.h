/*
 * What the body of a record, a packed record and an hour's row say in the same bytes: a series (all but its project),
 * sample types, drops. How many labels or types there are is read first, since the reader has to find room for them;
 * strings are borrowed from the bytes that are read.
 */
#ifndef CODECS_PROFILE_PACK_H
#define CODECS_PROFILE_PACK_H

#include "codecs/pack.h"
#include "codecs/profile.h"

void series_pack(const struct series *s, struct buf *b);
void series_unpack(struct unpack *u, struct series *s); /* up to n_labels; then: */
void labels_unpack(struct unpack *u, struct label *labels, uint32_t n);

void types_pack(const struct sample_type *t, uint32_t n, struct buf *b); /* without their number */
uint32_t types_count(struct unpack *u);
void types_unpack(struct unpack *u, struct sample_type *t, uint32_t n);

void drops_pack(const struct drops *d, struct buf *b);
void drops_unpack(struct unpack *u, struct drops *d);

#endif
