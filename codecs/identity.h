/*
 * Which function a frame is shown and summed as (design.md 4): (name, file); anonymous names by start line too; a bare
 * address by build id and file offset, so that ASLR does not multiply it. Reading and function shares use the same
 * rule, so that they agree.
 */
#ifndef CODECS_IDENTITY_H
#define CODECS_IDENTITY_H

#include "codecs/hash.h"
#include "codecs/profile.h"

struct identity {
    struct str name, file, build_id; /* borrowed */
    uint64_t address;                /* of bare addresses; else 0 */
    int64_t start_line;              /* of anonymous functions; else -1 */
};

enum { IDENTITY_TEXT = 24 };
/* function NULL: a bare address, whose name is written to `text`. mapping NULL: none. */
struct identity identity_of(const struct function *function, const struct mapping *mapping, uint64_t address,
                            char text[IDENTITY_TEXT]);
/* Rows of their own: "[no stack]", "[unknown]". */
struct identity identity_lone(const char *name);
uint64_t identity_hash(const struct identity *i, const struct hash_key *k);
bool identity_eq(const struct identity *a, const struct identity *b);

#endif
