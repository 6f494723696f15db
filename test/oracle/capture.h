/* Captured requests of test/corpus as specs for an upload. */
#ifndef TEST_ORACLE_CAPTURE_H
#define TEST_ORACLE_CAPTURE_H

#include "codecs/upload.h"

#include <jansson.h>

struct capture {
    char name[128]; /* folder/NNN */
    json_t *wire, *expect;
    struct str body;
    bool taken;              /* of a kind that this gateway reads */
    struct upload_spec spec; /* strings live as long as the capture */
    char *memory[8];
};
/* Calls `each` for every capture, in order; the capture lives as long as the call. Returns how many there were. */
size_t capture_each(const struct hash_key *key, void (*each)(struct capture *c, void *ctx), void *ctx);
/* A whole file; the caller frees it. Asserts that it is there. */
struct str capture_file(const char *path);

#endif
