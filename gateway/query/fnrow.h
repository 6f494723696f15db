/* The row of a function as answers carry it (api.md, functions). */
#ifndef GATEWAY_QUERY_FNROW_H
#define GATEWAY_QUERY_FNROW_H

#include "gateway/query/stacks.h"

/* Opens an object and leaves it open, for more fields. own: with `own` and `own_share`. */
void fnrow_put(struct json *j, const struct fn *f, int64_t whole, bool own);

#endif
