/* Label sets of samples by content: each is there once, set 0 is the empty one. */
#ifndef CODECS_LABELSETS_H
#define CODECS_LABELSETS_H

#include "codecs/profile.h"

struct labelsets;
struct labelsets *
labelsets_new(struct arena *a) MUST_CHECK; /* what it keeps is in a, which outlives it; NULL: no memory */
/* The number of a set of n labels, copied if it is new. Order counts: sets come sorted. False: no memory, see a. */
bool labelsets_add(struct labelsets *s, const struct sample_label *labels, uint32_t n, uint32_t *number) MUST_CHECK;
/* As in struct profile; valid until the next labelsets_add. */
void labelsets_view(const struct labelsets *s, uint32_t **set_at, struct sample_label **labels, uint32_t *n_sets);
void labelsets_free(struct labelsets *s);

#endif
