/* What an upload is, from its head: format, coding, parameters; and what is refused by name before the body
 * (protocol.md 1.4). */
#ifndef GATEWAY_INGEST_SPEC_H
#define GATEWAY_INGEST_SPEC_H

#include "codecs/upload.h"
#include "gateway/request.h"

enum { BOUNDARY_MAX = 256 };
/* Everything that the strings of an upload_spec point into. */
struct spec {
    struct upload_spec upload;
    struct buf params;
    char boundary[BOUNDARY_MAX];
    bool known;   /* kind and coding are */
    bool charset; /* the JSON type of the request says utf-8 */
};
/* Fills s for the request. Not E_OK: f says what is wrong. Free in any case. */
enum err spec_make(struct spec *s, const struct request *r, struct fault *f) MUST_CHECK;
void spec_free(struct spec *s);

#endif
