/*
 * The target of a request: its path in one normal form, before any rule (prefix, route, role, token) looks at it, and
 * its parameters, decoded when they are asked for.
 *
 * The normal form, as RFC 3986 6.2.2 has it, and stricter where a proxy in front could read it otherwise:
 * - an escape of a letter, digit, '-', '.', '_' or '~' is that character; others keep their form with digits in upper
 *   case, so an escaped slash stays data of its segment and never makes a route match
 * - "//" is "/"; "." and ".." segments are resolved, escaped or not, and never lead above the root
 * - refused: a fragment, a broken escape, an escaped control character, and whatever may not stand in a path (white
 *   space, bytes above ASCII, one of \ " < > ^ ` { | })
 */
#ifndef GATEWAY_TARGET_H
#define GATEWAY_TARGET_H

#include "codecs/base.h"

struct target {
    struct str path;  /* starts with '/' */
    struct str query; /* behind '?', as sent */
    char *memory;     /* of path */
};
/* Borrows `text`. An absolute form (http, https) loses scheme and authority. E_NO_MEMORY, E_BAD_REQUEST, for "*"
 * E_NO_ROUTE. */
enum err target_parse(struct target *t, struct str text, struct fault *f) MUST_CHECK;
void target_free(struct target *t);

/*
 * The first parameter of that name, percent-decoded ('+' is a space) into memory of the caller's buffer `out`, which
 * must not move afterwards: reserve query.len bytes before. Absent: empty. A broken escape: E_BAD_REQUEST.
 */
enum err target_param(const struct target *t, const char *name, struct buf *out, struct str *value,
                      struct fault *f) MUST_CHECK;

#endif
