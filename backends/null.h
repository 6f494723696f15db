/* The store for benchmarks: counts and drops what it is given, gives nothing back. */
#ifndef BACKENDS_NULL_H
#define BACKENDS_NULL_H

#include "backends/backend.h"

extern const struct backend backend_null;

#endif
