/* An hour's function shares, computed from its rows and their symbols, for a share store that stands apart. */
#ifndef BACKENDS_HOUR_SHARES_H
#define BACKENDS_HOUR_SHARES_H

#include "backends/hours.h"
#include "backends/shares.h"

/* Puts the shares of each type; nothing where the hour is dirty by now. */
enum err hour_shares_put(const struct backend *b, struct sample_store *s, const struct hash_key *k,
                         const struct hour_todo *t, const struct share_store_ops *ops, struct share_store *to,
                         struct fault *f) MUST_CHECK;

#endif
