/*
 * Keyed hashes: XXH3 with the secret of hash_key_file. Ids of content, stacks, frames and series come from here and are
 * compared only inside one service, so that a client which finds a collision fools only itself.
 */
#ifndef CODECS_HASH_H
#define CODECS_HASH_H

#include "codecs/base.h"

enum { HASH_SECRET_BYTES = 192 };
struct hash_key {
    uint8_t secret[HASH_SECRET_BYTES];
};
struct hash128 {
    uint64_t hi, lo;
};
/* The key of a process without a file (tests, tools): derived from `seed` alone. */
void hash_key_derive(struct hash_key *k, struct str seed);
/* A key that lives no longer than the table it protects. */
void hash_key_random(struct hash_key *k);
/* Names a key without giving it away: goes into `meta` of a store, 16 hexadecimal digits and a NUL. */
void hash_key_fingerprint(const struct hash_key *k, char out[17]);
uint64_t hash64(const struct hash_key *k, const void *p, size_t n);
struct hash128 hash128(const struct hash_key *k, const void *p, size_t n);

/* The same, streaming; equals hash128 of all the bytes joined. */
struct hash_state;
struct hash_state *hash_new(const struct hash_key *k) MUST_CHECK; /* k outlives it */
void hash_feed(struct hash_state *h, const void *p, size_t n);
struct hash128 hash_end(const struct hash_state *h);
void hash_free(struct hash_state *h);

#endif
