/* What a row keeps of labels, of sample types and of their totals, as bytes. The same for every store. */
#ifndef BACKENDS_BLOB_H
#define BACKENDS_BLOB_H

#include "codecs/profile.h"

/* Appended to out; out->failed says whether memory ran out. */
void blob_labels(struct buf *out, const struct label *labels, uint32_t n);
void blob_types(struct buf *out, const struct sample_type *types, uint32_t n); /* all but the totals */
void blob_totals(struct buf *out, const struct sample_type *types, uint32_t n);

/* Into the arena; strings are copied. E_INTERNAL for what is not whole (a damaged file), E_NO_MEMORY. */
enum err blob_read_labels(struct str blob, struct arena *a, struct label **labels, uint32_t *n,
                          struct fault *f) MUST_CHECK;
enum err blob_read_types(struct str blob, struct arena *a, struct sample_type **types, uint32_t *n,
                         struct fault *f) MUST_CHECK;
/* Into types[0..n). */
enum err blob_read_totals(struct str blob, struct sample_type *types, uint32_t n, struct fault *f) MUST_CHECK;

#endif
