/*
 * Keys: who may do what, in which project. They live in a YAML file of hashes (product.md F2-F4, api.md); secrets are
 * shown once. No clock, no log, no HTTP in here.
 */
#ifndef AUTH_AUTH_H
#define AUTH_AUTH_H

#include "codecs/base.h"

enum key_type { KEY_SERVER, KEY_BROWSER, KEY_READER, KEY_ADMIN, KEY_TYPES };
extern const char *const key_type_names[KEY_TYPES];  /* server, browser, reader, admin */
extern const char *const key_type_titles[KEY_TYPES]; /* Server, Browser, ...: keyType of validate */

struct key {
    char *name, *project;
    enum key_type type;
    bool enabled;
    int64_t expires_s; /* Unix time; 0: never */
    uint8_t hash[32];  /* BLAKE2b-256 of the secret */
};

/* An immutable set of keys; a reload makes a new one. */
struct keyring;
/* A missing, empty or invalid file: NULL, f names file, line and what. */
struct keyring *keyring_load(const char *path, struct fault *f) MUST_CHECK;
struct keyring *keyring_parse(struct str yaml, const char *file_name, struct fault *f) MUST_CHECK;
void keyring_free(struct keyring *k);
size_t keyring_count(const struct keyring *k);
const struct key *keyring_at(const struct keyring *k, size_t i);
/* The usable key with this secret, in time independent of how much of it is right. NULL: unknown, disabled or expired.
 */
const struct key *keyring_find(const struct keyring *k, struct str secret, int64_t now_s);

/* The credentials of one request, in the order in which they count: header, bearer, basic password. Adds nothing for an
 * unusable header. */
enum { CREDENTIALS_MAX = 16 };
struct credentials {
    struct str secret[CREDENTIALS_MAX]; /* borrow the headers, or decoded[] */
    uint8_t rank[CREDENTIALS_MAX];      /* which of the three it came from; sorted */
    size_t n;
    char decoded[1024]; /* of Basic */
    size_t decoded_len;
};
/* In any order of headers. One Authorization value: Bearer or Basic, scheme in any case. */
void credentials_authorization(struct credentials *c, struct str value);
void credentials_token(struct credentials *c, struct str value);

/*
 * The key file's side of the command line. Secrets have 256 random bits; `secret` is "" for an imported one. With
 * print_only the file is not touched. `line` gets the key as a line of the file. f says what is wrong; E_NOT_FOUND: no
 * such key or file.
 */
enum { SECRET_TEXT = 64 };
enum err key_create(const char *path, const struct key *k, struct str imported_secret, bool print_only,
                    char secret[SECRET_TEXT + 1], struct buf *line, struct fault *f) MUST_CHECK;
/* Disables it; the line stays, so that the name is not given away again. */
enum err key_revoke(const char *path, struct str name, struct fault *f) MUST_CHECK;
void key_hash(struct str secret, uint8_t out[32]);

#endif
