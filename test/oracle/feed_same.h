/* One input in two ways through an upload; whatever comes of it must be the same. For fuzz targets. */
#ifndef TEST_ORACLE_FEED_SAME_H
#define TEST_ORACLE_FEED_SAME_H

#include "codecs/upload.h"

extern const struct limits feed_small_limits; /* small enough that a fuzzer meets them */
/*
 * A spec for a fuzz target; params, coding and boundary are for the caller. Feeds `body` whole and in pieces and
 * asserts equal results, sound records and memory within bounds. Returns the upload that was fed whole (NULL: refused,
 * *f says why).
 */
struct upload_spec feed_spec(enum upload_kind kind);
struct upload *feed_same(const struct upload_spec *spec, struct str body, uint8_t how, struct fault *f);

#endif
