/* The `name` parameter of /ingest: app{key=value,...}, by the rules of protocol.md 1.2; the application may be any
 * printable text. */
#ifndef CODECS_NAME_H
#define CODECS_NAME_H

#include "codecs/profile.h"

struct name {
    struct str app;
    struct label *labels; /* in order, one per key, as sent otherwise: __x and empty values included */
    uint32_t n_labels;
};
/* Borrows from `text`; the array is in the arena. E_BAD_NAME says what is wrong. */
enum err name_parse(struct name *n, struct str text, struct arena *a, struct fault *f) MUST_CHECK;
/* Valid UTF-8 without control characters. */
bool name_printable(struct str s);

#endif
