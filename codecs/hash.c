/* XXH3 behind the contract of codecs/hash.h. The only file that includes xxhash.h; everything of it is inlined here. */
#include "codecs/hash.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(HASH_SECRET_BYTES >= XXH3_SECRET_SIZE_MIN, "XXH3 refuses shorter secrets");

struct hash_state {
    XXH3_state_t xxh; /* first: wants 64-byte alignment */
    const struct hash_key *key;
};

static struct hash128 canonical(XXH128_hash_t h)
{
    return (struct hash128){h.high64, h.low64};
}

uint64_t hash64(const struct hash_key *k, const void *p, size_t n)
{
    return XXH3_64bits_withSecret(p, n, k->secret, sizeof k->secret);
}

struct hash128 hash128(const struct hash_key *k, const void *p, size_t n)
{
    return canonical(XXH3_128bits_withSecret(p, n, k->secret, sizeof k->secret));
}

struct hash_state *hash_new(const struct hash_key *k)
{
    struct hash_state *h = aligned_alloc(_Alignof(struct hash_state), sizeof *h);

    if (!h)
        return NULL;
    memset(h, 0, sizeof *h);
    h->key = k;
    XXH3_128bits_reset_withSecret(&h->xxh, k->secret, sizeof k->secret);
    return h;
}

void hash_feed(struct hash_state *h, const void *p, size_t n)
{
    if (n)
        XXH3_128bits_update(&h->xxh, p, n);
}

struct hash128 hash_end(const struct hash_state *h)
{
    return canonical(XXH3_128bits_digest(&h->xxh));
}

void hash_free(struct hash_state *h)
{
    free(h);
}
