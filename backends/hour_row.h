/* What an hour row knows, as bytes: everything but the samples. See backends/hours.h. */
#ifndef BACKENDS_HOUR_ROW_H
#define BACKENDS_HOUR_ROW_H

#include "backends/hours.h"

/* s->hour has what is packed; s->body is not looked at. out->failed: no memory. */
void hour_about(const struct stored *s, struct buf *out);

#endif
