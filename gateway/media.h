/* Media types as RFC 9110 says: type and subtype in any case, parameters parsed, quoted or not. */
#ifndef GATEWAY_MEDIA_H
#define GATEWAY_MEDIA_H

#include "codecs/base.h"

/* Whether the value of a Content-Type has this type/subtype. */
bool media_is(struct str value, struct str type);
struct str media_type(struct str value); /* without parameters, as spelled */
/* The parameter of that name, without its quotes, into out (escapes undone); empty if absent. false: it does not fit.
 */
bool media_param(struct str value, struct str name, char *out, size_t cap, struct str *found) MUST_CHECK;

#endif
