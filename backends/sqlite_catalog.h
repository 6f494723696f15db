/*
 * Which files there are, and idle connections for reading them. Any thread. A file may be dropped while it is being
 * read: the reader goes on with what it has open, and the connection is closed when it is given back.
 */
#ifndef BACKENDS_SQLITE_CATALOG_H
#define BACKENDS_SQLITE_CATALOG_H

#include "backends/sqlite_file.h"

struct catalog;
/* Lists the folder, and opens the newest file to see that it is ours. dir and key outlive it. NULL: f says why. */
struct catalog *catalog_open(const char *dir, const struct hash_key *key, struct fault *f) MUST_CHECK;
void catalog_close(struct catalog *c); /* NULL is fine; every connection has been given back */

bool catalog_has(struct catalog *c, struct file_key key);
/* Opens for the writer, and lists it. */
struct file *catalog_open_write(struct catalog *c, struct file_key key, struct fault *f) MUST_CHECK;
/* Unlinks and forgets; the writer's connection is closed already. */
void catalog_drop(struct catalog *c, struct file_key key);
/* Files of days first..last, by day, then class. *keys is the caller's to free. false: no memory. */
bool catalog_list(struct catalog *c, int32_t first, int32_t last, struct file_key **keys, size_t *n) MUST_CHECK;

/* Visits each file of these days that is still there, until one fails. */
typedef enum err (*catalog_visit)(void *ctx, struct file *t, struct fault *f);
enum err catalog_each(struct catalog *c, int32_t first, int32_t last, catalog_visit visit, void *ctx,
                      struct fault *f) MUST_CHECK;

/* A connection of one's own until it is given back. NULL: E_NOT_FOUND in f where it has been dropped; else why. */
struct file *catalog_take(struct catalog *c, struct file_key key, struct fault *f) MUST_CHECK;
void catalog_give(struct catalog *c, struct file *t);

#endif
