/* ${VAR}, ${VAR:-default} and $$ in a value. Works on values alone, so a variable can never add structure. */
#ifndef CONF_EXPAND_H
#define CONF_EXPAND_H

#include "codecs/base.h"

/* out is NUL-terminated in the arena, or `in` itself if it has no '$'. E_NO_MEMORY, else E_BAD_INPUT with the reason in
 * f. */
enum err expand(struct arena *a, struct str in, struct str *out, struct fault *f) MUST_CHECK;

#endif
