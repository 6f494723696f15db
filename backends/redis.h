/* The share store in Redis (backends/shares.h). */
#ifndef BACKENDS_REDIS_H
#define BACKENDS_REDIS_H

#include "backends/shares.h"

extern const struct share_store_ops share_store_redis;

#endif
