/* The secrets that a request carries: token headers, Bearer, the password of Basic. */
#include "auth/auth.h"
#include "auth/secret.h"

enum { RANK_HEADER, RANK_BEARER, RANK_BASIC };

/* Behind those of its rank and before those that count less. The secrets of a request are few: what is beyond them is
 * not looked at. */
static void add(struct credentials *c, struct str secret, uint8_t rank)
{
    size_t at = c->n;

    if (secret.len == 0 || secret.len > SECRET_BYTES_MAX || c->n == CREDENTIALS_MAX)
        return;
    for (; at > 0 && c->rank[at - 1] > rank; at--) {
        c->secret[at] = c->secret[at - 1];
        c->rank[at] = c->rank[at - 1];
    }
    c->secret[at] = secret;
    c->rank[at] = rank;
    c->n++;
}

static void add_basic(struct credentials *c, struct str text)
{
    char *out = c->decoded + c->decoded_len;
    size_t n;

    if (!secret_base64(text, out, sizeof c->decoded - c->decoded_len, &n))
        return;
    const char *colon = n ? memchr(out, ':', n) : NULL;
    if (!colon)
        return;
    c->decoded_len += n;
    add(c, (struct str){colon + 1, n - (size_t)(colon + 1 - out)}, RANK_BASIC);
}

void credentials_authorization(struct credentials *c, struct str value)
{
    struct str s = str_trim(value);
    const char *space = s.len ? memchr(s.p, ' ', s.len) : NULL;

    if (!space)
        return;
    struct str scheme = {s.p, (size_t)(space - s.p)};
    struct str rest = str_trim((struct str){space, s.len - scheme.len});
    if (str_eq_nocase(scheme, STR("bearer")))
        add(c, rest, RANK_BEARER);
    else if (str_eq_nocase(scheme, STR("basic")))
        add_basic(c, rest);
}

void credentials_token(struct credentials *c, struct str value)
{
    add(c, str_trim(value), RANK_HEADER);
}
