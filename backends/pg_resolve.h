/*
 * The hosts of an address as numbers, asked for without blocking: libpq itself would stop the loop until the name
 * server answers. Sockets of the file system and numbers given by the operator are left as they are.
 */
#ifndef BACKENDS_PG_RESOLVE_H
#define BACKENDS_PG_RESOLVE_H

#include <uv.h>

#include "backends/pg_wire.h"

struct pg_resolve;
/* o outlives it. NULL: no memory. */
struct pg_resolve *pg_resolve_new(uv_loop_t *loop, const struct pg_options *o) MUST_CHECK;
/* done, later: ok: `to` says host, hostaddr and port (or the same as o). One at a time. */
void pg_resolve_start(struct pg_resolve *r, void (*done)(void *ctx, bool ok, const struct pg_options *to), void *ctx);
/* Then freed, and closed, once; a resolution under way is not told any more. */
void pg_resolve_close(struct pg_resolve *r, void (*closed)(void *ctx), void *ctx);

#endif
