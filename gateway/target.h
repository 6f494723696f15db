/* The target of a request: its path, normalised, and its parameters, decoded when they are asked for. */
#ifndef GATEWAY_TARGET_H
#define GATEWAY_TARGET_H

#include "codecs/base.h"

struct target {
    struct str path;  /* starts with '/', no "//" in it, not percent-decoded */
    struct str query; /* behind '?', as sent */
    char *memory;     /* of path */
};
/* Borrows `text`. An absolute form loses scheme and authority. E_NO_MEMORY, E_BAD_REQUEST. */
enum err target_parse(struct target *t, struct str text, struct fault *f) MUST_CHECK;
void target_free(struct target *t);

/*
 * The first parameter of that name, percent-decoded ('+' is a space) into memory of the caller's buffer `out`, which
 * must not move afterwards: reserve query.len bytes before. Absent: empty. A broken escape: E_BAD_REQUEST.
 */
enum err target_param(const struct target *t, const char *name, struct buf *out, struct str *value,
                      struct fault *f) MUST_CHECK;

#endif
