/* Function shares beside the profiles of the embedded store. */
#ifndef BACKENDS_SQLITE_SHARES_H
#define BACKENDS_SQLITE_SHARES_H

#include "backends/shares.h"
#include "backends/sqlite_store.h"

extern const struct share_reader_ops shares_sqlite;

/* On the lane, inside the transaction of the put: adds the rows of the group whose bit is set. false: the group has to
 * come again. */
bool sqlite_put_shares(struct sample_store *s, struct file *file, const struct group *g, const int64_t *services,
                       uint64_t inserted) MUST_CHECK;

#endif
