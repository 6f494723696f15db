/* Slots of the reader, each on a thread of the query lane. */
#ifndef BACKENDS_POSTGRES_READ_H
#define BACKENDS_POSTGRES_READ_H

#include "backends/reader.h"

enum err pg_scan(struct sample_store *s, const struct selection *sel, enum scan_what what, scan_row row, void *ctx,
                 struct fault *f);
enum err pg_symbols(struct sample_store *s, struct str project, struct str service, int32_t first, int32_t last,
                    block_row row, void *ctx, struct fault *f);
enum err pg_original(struct sample_store *s, struct str project, struct attempt a, enum original_state *state,
                     struct buf *out, struct fault *f);

#endif
