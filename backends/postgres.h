/*
 * Samples in PostgreSQL, 14 or later: "postgres://..." or "postgresql://...", given to libpq as it is, so that TLS
 * (sslmode, sslrootcert, ...) and a password file (passfile) are parameters of the address. Originals are not kept.
 */
#ifndef BACKENDS_POSTGRES_H
#define BACKENDS_POSTGRES_H

#include "backends/backend.h"

extern const struct backend backend_postgres;

#endif
