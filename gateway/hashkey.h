/* The file with the secret behind all ids (hash_key_file). */
#ifndef GATEWAY_HASHKEY_H
#define GATEWAY_HASHKEY_H

#include "codecs/hash.h"

/* Reads the key; makes it, and the folder around it, if there is none. */
enum err hashkey_load(const char *path, struct hash_key *out, struct fault *f) MUST_CHECK;

#endif
