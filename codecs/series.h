/* Labels as sent -> the series of a profile: sorted, unique, checked, with service_name. protocol.md 1.5, 2.8;
 * product.md F9. */
#ifndef CODECS_SERIES_H
#define CODECS_SERIES_H

#include "codecs/intake.h"

struct series_labels {
    const struct label *labels;
    uint32_t n;
    struct str app; /* names the service where no label does; empty: unknown_service */
    struct str spy; /* from a parameter; empty: none */
};
/*
 * Into *out, in arena a; names borrow from the input. `name` is __name__ or empty. *cumulative: __delta__="true" was
 * among them. Names beginning with "__" and empty values are dropped. Real clients repeat names (.NET, Rust up to 2.0):
 * equal ones are one; of different ones the first counts for service_name and __name__, the last for all others, since
 * user tags come last.
 */
enum err series_bind(struct series *out, const struct series_labels *in, const struct limits *lim, struct arena *a,
                     bool *cumulative, struct fault *f) MUST_CHECK;
/* The service that these labels name, checked or not. */
struct str series_service(const struct series_labels *in);
/* Ids of all types of a profile whose series and types are known. */
bool series_type_ids(struct profile *p, struct arena *a) MUST_CHECK;

#endif
