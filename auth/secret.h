/* What libsodium does for us: hashes, comparison without a clock's traces, random bytes, base64. Used nowhere else. */
#ifndef AUTH_SECRET_H
#define AUTH_SECRET_H

#include "codecs/base.h"

enum { SECRET_HASH = 32, SECRET_BYTES_MAX = 1024 };

/* Before anything else, as often as one likes. false: no source of random bytes. */
bool secret_init(void) MUST_CHECK;
void secret_hash(struct str secret, uint8_t out[SECRET_HASH]); /* BLAKE2b-256 */
bool secret_equal(const uint8_t a[SECRET_HASH], const uint8_t b[SECRET_HASH]);
void secret_random(uint8_t *out, size_t n);
void secret_wipe(void *p, size_t n);
/* Standard alphabet, padded or not. false: not base64, or more than cap bytes. */
bool secret_base64(struct str text, char *out, size_t cap, size_t *n);
/* n bytes in lower case hexadecimal, with a NUL. */
void secret_hex(const uint8_t *in, size_t n, char *out);
bool secret_unhex(struct str text, uint8_t *out, size_t n);

/* Why an imported secret is refused, NULL: it is good. It must have room for 128 bits and fit into a header. */
const char *secret_objection(struct str secret);

#endif
