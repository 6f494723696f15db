/* Where hash keys come from: BLAKE2b, so that neither a fingerprint nor an id tells anything of the key's source. */
#include "codecs/hash.h"

#include <sodium.h>
#include <stdio.h>

_Static_assert(HASH_SECRET_BYTES % crypto_generichash_BYTES_MAX == 0, "a secret is whole blocks");

static void blake(struct str purpose, uint8_t counter, struct str in, uint8_t *out, size_t n)
{
    crypto_generichash_state s;

    crypto_generichash_init(&s, NULL, 0, n);
    crypto_generichash_update(&s, (const uint8_t *)purpose.p, purpose.len);
    crypto_generichash_update(&s, &counter, 1);
    crypto_generichash_update(&s, (const uint8_t *)in.p, in.len);
    crypto_generichash_final(&s, out, n);
}

void hash_key_derive(struct hash_key *k, struct str seed)
{
    enum { BLOCK = crypto_generichash_BYTES_MAX };

    for (uint8_t i = 0; i < HASH_SECRET_BYTES / BLOCK; i++)
        blake(STR("flamegate hash secret"), i, seed, k->secret + i * BLOCK, BLOCK);
}

void hash_key_random(struct hash_key *k)
{
    randombytes_buf(k->secret, sizeof k->secret);
}

void hash_key_fingerprint(const struct hash_key *k, char out[17])
{
    uint8_t digest[crypto_generichash_BYTES_MIN];

    blake(STR("flamegate hash fingerprint"), 0, (struct str){(const char *)k->secret, sizeof k->secret}, digest,
          sizeof digest);
    for (int i = 0; i < 8; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
}
