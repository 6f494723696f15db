/* A keyring's inside, for the files of auth/ that read and write it. */
#ifndef AUTH_KEYRING_H
#define AUTH_KEYRING_H

#include "auth/auth.h"

enum { KEYS_MAX = 10000, KEY_NAME_MAX = 100, KEY_FILE_MAX = 8 * 1024 * 1024 };

struct keyring {
    struct key *keys; /* names and projects are malloc'd */
    size_t n, cap;
};

struct keyring *keyring_new(void) MUST_CHECK;
/* Copies k. E_BAD_INPUT: a name or a hash that is there already, or too many. */
enum err keyring_add(struct keyring *r, const struct key *k, struct fault *f) MUST_CHECK;
struct key *keyring_named(struct keyring *r, struct str name);

/* 1 to 100 bytes of printable UTF-8 without white space around it; a project's also without '/'. */
bool key_name_valid(struct str s);
bool key_project_valid(struct str s);
bool key_type_parse(struct str s, enum key_type *out);

/* "2027-01-31T00:00:00Z", UTC alone. */
enum { TIME_TEXT = 32 };
void key_time_format(int64_t unix_s, char out[TIME_TEXT]);
bool key_time_parse(struct str s, int64_t *unix_s);

/* One key as a line of the file, with its '\n'. */
void key_line(const struct key *k, struct buf *out);

#endif
