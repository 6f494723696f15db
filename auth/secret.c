/* Secrets and their hashes. The only file that knows libsodium. */
#include "auth/secret.h"

#include <sodium.h>

bool secret_init(void)
{
    return sodium_init() >= 0;
}

void secret_hash(struct str secret, uint8_t out[SECRET_HASH])
{
    int r = crypto_generichash(out, SECRET_HASH, (const unsigned char *)secret.p, secret.len, NULL, 0);
    ASSERT(r == 0); /* fails only for a wrong length of `out` */
}

bool secret_equal(const uint8_t a[SECRET_HASH], const uint8_t b[SECRET_HASH])
{
    return sodium_memcmp(a, b, SECRET_HASH) == 0;
}

void secret_random(uint8_t *out, size_t n)
{
    randombytes_buf(out, n);
}

void secret_wipe(void *p, size_t n)
{
    sodium_memzero(p, n);
}

bool secret_base64(struct str text, char *out, size_t cap, size_t *n)
{
    int variant = str_ends(text, STR("=")) || text.len % 4 == 0 ? sodium_base64_VARIANT_ORIGINAL
                                                                : sodium_base64_VARIANT_ORIGINAL_NO_PADDING;
    const char *end = NULL;

    return sodium_base642bin((unsigned char *)out, cap, text.p, text.len, NULL, n, &end, variant) == 0 &&
           end == text.p + text.len;
}

void secret_hex(const uint8_t *in, size_t n, char *out)
{
    sodium_bin2hex(out, 2 * n + 1, in, n);
}

bool secret_unhex(struct str text, uint8_t *out, size_t n)
{
    size_t got;
    const char *end = NULL;

    return text.len == 2 * n && sodium_hex2bin(out, n, text.p, text.len, NULL, &got, &end) == 0 && got == n &&
           end == text.p + text.len;
}

/* What could be guessed is judged by the alphabet: digits hold 3.3 bits each, hexadecimal ones 4, others at most 6. */
static size_t least_length(struct str s)
{
    bool digits = true, hex = true;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        bool digit = c >= '0' && c <= '9';
        digits = digits && digit;
        hex = hex && (digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'));
    }
    return digits ? 39 : hex ? 32 : 22;
}

const char *secret_objection(struct str secret)
{
    bool seen[256] = {false};
    size_t different = 0;

    if (secret.len > SECRET_BYTES_MAX)
        return "the secret is longer than 1024 characters";
    for (size_t i = 0; i < secret.len; i++) {
        unsigned char c = (unsigned char)secret.p[i];
        if (c <= ' ' || c > '~')
            return "the secret may hold only visible ASCII characters, so that it fits into a header";
        different += !seen[c];
        seen[c] = true;
    }
    if (secret.len < least_length(secret))
        return "the secret has under 128 bits: it needs 22 characters (32 if they are all hexadecimal digits, 39 if "
               "all "
               "are decimal)";
    return different < 8 ? "the secret repeats a few characters: it must be random" : NULL;
}
