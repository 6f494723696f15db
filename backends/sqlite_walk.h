/*
 * Everything that an embedded store holds, group by group as it was put, with its marks and symbols: for carrying it
 * over into another store.
 */
#ifndef BACKENDS_SQLITE_WALK_H
#define BACKENDS_SQLITE_WALK_H

#include "backends/backend.h"

/* g and its records are the walk's, for the call. told: as its mark says; 0 where it has none. Not E_OK ends the walk.
 * Where a row of a group was never stored, those behind it move up. */
typedef enum err (*walk_group)(void *ctx, struct group *g, uint64_t told, struct fault *f);

/*
 * dir: the data_dir of a gateway, which must not be running (it is locked for as long as this reads). Blocks. Days in
 * their order; ids come out as they are, so the key must be the one that the store was written with. *hours_only: how
 * many (class, day) there are of which retention.raw has left hours alone; those are not given.
 */
enum err sqlite_walk(const char *dir, const struct hash_key *key, walk_group group, void *ctx, uint64_t *hours_only,
                     struct fault *f);

#endif
