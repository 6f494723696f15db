/*
 * Files that may change under us. They are looked at by their paths, four times a second, so that it makes no
 * difference how they change: written in place, renamed over, a ConfigMap's link moved, on a file system that tells
 * nobody. A change counts when two looks agree on it, so that no half-written file is read.
 */
#ifndef GATEWAY_WATCH_H
#define GATEWAY_WATCH_H

#include <sys/stat.h>

#include "codecs/base.h"

enum { WATCH_FILES = 128, WATCH_LOOK_MS = 250 };
enum watch_kind { WATCH_CONF, WATCH_KEYS, WATCH_CERTS };

struct watch {
    struct watched {
        const char *path; /* borrowed */
        enum watch_kind kind;
        struct stat read, seen; /* when it was read; at the last look. Zeroed: it was not there */
    } files[WATCH_FILES];
    size_t n;
};
/* Each is looked at now: add before reading. NULL is fine; more than WATCH_FILES are left to SIGHUP. */
void watch_add(struct watch *w, enum watch_kind kind, const char *path);
/* `next` has the paths from now on; of those in both, what was seen of them stays. */
void watch_replace(struct watch *w, const struct watch *next);
/* All of a kind are read now. */
void watch_mark(struct watch *w, enum watch_kind kind);
/* A set of bits, 1 << kind: something of it has changed and come to rest. Marked. */
unsigned watch_look(struct watch *w) MUST_CHECK;

#endif
