/* A whole body through an upload, cut as asked. */
#ifndef TEST_ORACLE_FEED_H
#define TEST_ORACLE_FEED_H

#include "codecs/upload.h"

/* cuts: borders after so many bytes, ascending; piece: borders every so many (0: none); budget: of each call (0:
 * plenty). */
struct feed_plan {
    const size_t *cuts;
    size_t n_cuts, piece;
    uint32_t budget;
};
/* The finished upload, or NULL with *f saying why it was refused as a whole. */
struct upload *feed_upload(const struct upload_spec *spec, struct str body, const struct feed_plan *plan,
                           struct fault *f);
/* Limits as the gateway has them by default. */
extern const struct limits feed_limits;

#endif
