/*
 * Function shares (product.md F13): what one sample type charges to each function, self and total, a function once per
 * stack however often it recurs. Additive: the shares of a minute are the sum of those of its profiles.
 */
#ifndef CODECS_SHARES_H
#define CODECS_SHARES_H

#include "codecs/record.h"

struct share {
    uint64_t function; /* identity_hash */
    int64_t self, total;
};
struct shares {
    struct share *rows; /* by function, ascending, unique */
    uint32_t n;
    int64_t total;  /* grand total: rows[].self add up to it */
    uint64_t check; /* sum of share_check of the profiles in it: tells which these are */
};

/* Of every type of a sealed record, in the arena: *out has r->n_types of them, check 0. */
enum err shares_of(const struct record *r, const struct hash_key *k, struct arena *a, struct shares **out,
                   struct fault *f) MUST_CHECK;
/* a + b in the arena; check and total are added as well. */
enum err shares_add(const struct shares *x, const struct shares *y, struct arena *a, struct shares *out,
                    struct fault *f) MUST_CHECK;

/*
 * As bytes, for stores. Unpacking is total: E_BAD_INPUT for what is not whole.
 *   varint n, zigzag total, 8 bytes check, n x 8 bytes function, n x (zigzag self, zigzag total)
 */
void shares_pack(const struct shares *s, struct buf *out); /* out->failed: no memory */
enum err shares_unpack(struct str packed, struct arena *a, struct shares *out, struct fault *f) MUST_CHECK;

/* The mark of one attempt in `check`. Attempts have random boots, so sums of a few thousand of them do not meet by
 * chance. */
uint64_t share_check(uint64_t boot, uint64_t group, uint16_t place);

#endif
