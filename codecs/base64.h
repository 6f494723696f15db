/* Base64 in pieces: both alphabets, padding or none, white space refused. */
#ifndef CODECS_BASE64_H
#define CODECS_BASE64_H

#include "codecs/base.h"

/* Zeroed is the beginning. */
struct base64 {
    uint32_t bits, n; /* characters of the quantum at hand */
    uint32_t padding;
};
/* Decodes all of `in` to `out`, which has room for in.len / 4 * 3 + 3 bytes. false: a character that is not of it. */
bool base64_feed(struct base64 *b, struct str in, char *out, size_t *n) MUST_CHECK;
bool base64_end(const struct base64 *b); /* whether what was fed was whole */

#endif
