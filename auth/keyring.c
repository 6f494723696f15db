/* A set of keys in memory, and the one question that every request asks of it. */
#include "auth/keyring.h"

#include <stdlib.h>

#include "auth/secret.h"

const char *const key_type_names[KEY_TYPES] = {"server", "browser", "reader", "admin"};
const char *const key_type_titles[KEY_TYPES] = {"Server", "Browser", "Reader", "Admin"};

bool key_type_parse(struct str s, enum key_type *out)
{
    for (int i = 0; i < KEY_TYPES; i++)
        if (str_eq(s, str_of(key_type_names[i]))) {
            *out = (enum key_type)i;
            return true;
        }
    return false;
}

static bool printable(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool c1 = c == 0xc2 && i + 1 < s.len && (unsigned char)s.p[i + 1] < 0xa0;
        if (c < ' ' || c == 0x7f || c1)
            return false;
    }
    return s.len >= 1 && s.len <= KEY_NAME_MAX && utf8_valid(s) && str_eq(str_trim(s), s);
}

bool key_name_valid(struct str s)
{
    return printable(s);
}

bool key_project_valid(struct str s)
{
    return printable(s) && !memchr(s.p, '/', s.len);
}

struct keyring *keyring_new(void)
{
    return secret_init() ? calloc(1, sizeof(struct keyring)) : NULL;
}

void keyring_free(struct keyring *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++) {
        free(r->keys[i].name);
        free(r->keys[i].project);
    }
    free(r->keys);
    free(r);
}

size_t keyring_count(const struct keyring *r)
{
    return r->n;
}

const struct key *keyring_at(const struct keyring *r, size_t i)
{
    ASSERT(i < r->n);
    return &r->keys[i];
}

struct key *keyring_named(struct keyring *r, struct str name)
{
    for (size_t i = 0; i < r->n; i++)
        if (str_eq(str_of(r->keys[i].name), name))
            return &r->keys[i];
    return NULL;
}

static bool grow(struct keyring *r)
{
    size_t cap = r->cap ? 2 * r->cap : 16;
    struct key *keys = realloc(r->keys, cap * sizeof *keys);

    if (!keys)
        return false;
    r->keys = keys;
    r->cap = cap;
    return true;
}

enum err keyring_add(struct keyring *r, const struct key *k, struct fault *f)
{
    if (r->n == KEYS_MAX)
        return fault_set(f, E_BAD_INPUT, "more than %d keys", KEYS_MAX);
    for (size_t i = 0; i < r->n; i++) {
        if (str_eq(str_of(r->keys[i].name), str_of(k->name)))
            return fault_set(f, E_BAD_INPUT, "there is a key named \"%s\" already", k->name);
        if (memcmp(r->keys[i].hash, k->hash, sizeof k->hash) == 0)
            return fault_set(f, E_BAD_INPUT, "the keys \"%s\" and \"%s\" have the same secret", r->keys[i].name,
                             k->name);
    }
    if (r->n == r->cap && !grow(r))
        return fault_set(f, E_NO_MEMORY, NULL);
    struct key *to = &r->keys[r->n];
    *to = *k;
    to->name = strdup(k->name);
    to->project = strdup(k->project);
    if (!to->name || !to->project) {
        free(to->name);
        free(to->project);
        return fault_set(f, E_NO_MEMORY, NULL);
    }
    r->n++;
    return E_OK;
}

/* Every key is compared, and each in constant time: how long it takes says nothing about which one, or how much of it,
 * is right. */
const struct key *keyring_find(const struct keyring *r, struct str secret, int64_t now_s)
{
    uint8_t hash[SECRET_HASH];
    const struct key *found = NULL;

    secret_hash(secret, hash);
    for (size_t i = 0; i < r->n; i++)
        if (secret_equal(hash, r->keys[i].hash))
            found = &r->keys[i];
    if (!found || !found->enabled || (found->expires_s && found->expires_s <= now_s))
        return NULL;
    return found;
}
