/* The part sample_type_config: {"type": {"display-name": ..., "cumulative": ..., ...}, ...}; what is unknown in it is
 * ignored. */
#ifndef CODECS_TYPE_CONFIG_H
#define CODECS_TYPE_CONFIG_H

#include "codecs/pprof.h"

/* Copies into the arena. Empty text: none. E_BAD_INPUT when it is not such JSON. */
enum err type_config_parse(struct str text, struct arena *a, struct type_config **out, uint32_t *n,
                           struct fault *f) MUST_CHECK;
/* __name__ of an /ingest pprof, from its types as sent; protocol.md 1.6. config NULL: what the incumbent has built in.
 */
struct str type_config_name(const struct pprof *d, const struct type_config *config, uint32_t n);
/* __name__ of a Push series that has none: by its first type; protocol.md 1.5. */
struct str type_first_name(const struct pprof *d);

#endif
