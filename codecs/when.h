/* The times of /ingest: digits tell seconds, ms, us and ns apart; "now-10s" is relative. Bad text is now, never an
 * error. */
#ifndef CODECS_WHEN_H
#define CODECS_WHEN_H

#include "codecs/base.h"

int64_t when_parse(struct str text, int64_t now_ns); /* nanoseconds since 1970, saturating */

#endif
