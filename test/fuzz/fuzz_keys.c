/*
 * The keys file and the credentials of a request on any bytes. A keyring that is read has valid, different keys, and
 * its lines are read again as the same ones; credentials stay inside of the header or of their own buffer, in the order
 * in which they count.
 */
#include <stdlib.h>

#include "auth/keyring.h"
#include "auth/secret.h"

static void check(bool good)
{
    if (!good)
        abort();
}

static void same(const struct keyring *a, const struct keyring *b)
{
    check(keyring_count(a) == keyring_count(b));
    for (size_t i = 0; i < keyring_count(a); i++) {
        const struct key *x = keyring_at(a, i), *y = keyring_at(b, i);
        check(str_eq(str_of(x->name), str_of(y->name)) && str_eq(str_of(x->project), str_of(y->project)));
        check(x->type == y->type && x->enabled == y->enabled && x->expires_s == y->expires_s);
        check(memcmp(x->hash, y->hash, sizeof x->hash) == 0);
    }
}

static void read_keys(struct str text)
{
    struct fault f = {0};
    struct keyring *r = keyring_parse(text, "fuzz", &f);
    struct buf lines = {0};

    check((r == NULL) == (f.err != E_OK) && (r == NULL) == (f.text[0] != '\0'));
    if (!r)
        return;
    check(keyring_count(r) >= 1);
    for (size_t i = 0; i < keyring_count(r); i++) {
        const struct key *k = keyring_at(r, i);
        check(key_name_valid(str_of(k->name)) && key_project_valid(str_of(k->project)));
        check(k->type < KEY_TYPES && k->expires_s >= 0 && keyring_named(r, str_of(k->name)) == k);
        key_line(k, &lines);
    }
    struct keyring *again = keyring_parse(buf_view(&lines), "again", &f);
    check(again != NULL);
    same(r, again);
    check(keyring_find(r, text, 0) == NULL); /* nobody's file is its own secret */
    keyring_free(again);
    keyring_free(r);
    buf_free(&lines);
}

static bool inside(struct str s, const char *p, size_t n)
{
    return s.p >= p && s.len <= n && (size_t)(s.p - p) <= n - s.len;
}

/* Each line is a header: "t…" a token, anything else an Authorization. */
static void read_credentials(struct str text)
{
    struct credentials c = {0};
    const char *end = text.p + text.len;

    for (const char *p = text.p; p < end;) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        struct str line = {p, (size_t)((eol ? eol : end) - p)};
        if (line.len && line.p[0] == 't')
            credentials_token(&c, (struct str){line.p + 1, line.len - 1});
        else
            credentials_authorization(&c, line);
        p += line.len + 1;
    }
    check(c.n <= CREDENTIALS_MAX && c.decoded_len <= sizeof c.decoded);
    for (size_t i = 0; i < c.n; i++) {
        check(c.secret[i].len >= 1 && c.secret[i].len <= SECRET_BYTES_MAX);
        check(inside(c.secret[i], text.p, text.len) || inside(c.secret[i], c.decoded, c.decoded_len));
        check(i == 0 || c.rank[i - 1] <= c.rank[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *copy = malloc(n ? n : 1); /* of the exact size, so that reading past it is seen */
    struct str text = {copy, n};
    int64_t s;
    char time_text[TIME_TEXT];

    if (!copy)
        return 0;
    if (n)
        memcpy(copy, data, n);
    read_keys(text);
    read_credentials(text);
    secret_objection(text);
    if (key_time_parse(text, &s)) {
        key_time_format(s, time_text);
        check(str_eq(str_of(time_text), text));
    }
    free(copy);
    return 0;
}
