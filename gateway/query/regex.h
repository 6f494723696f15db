/* Regular expressions of selectors: whole-string matches with bounds on time, depth and memory. */
#ifndef GATEWAY_QUERY_REGEX_H
#define GATEWAY_QUERY_REGEX_H

#include "codecs/base.h"

struct regex;
/* NULL: f says what is wrong and where. */
struct regex *regex_new(struct str pattern, struct fault *f) MUST_CHECK;
/* Whether all of `text` matches. E_BAD_REQUEST: the pattern needs more work than it may have. */
enum err regex_match(struct regex *r, struct str text, bool *matches, struct fault *f) MUST_CHECK;
void regex_free(struct regex *r);

#endif
