/*
 * The embedded sample store: "sqlite:" keeps its files in data_dir, "sqlite:DIR" in DIR.
 * One SQLite file per (retention class, day) under DIR/samples, originals in segments under DIR/originals.
 */
#ifndef BACKENDS_SQLITE_H
#define BACKENDS_SQLITE_H

#include "backends/backend.h"

extern const struct backend backend_sqlite;

#endif
