/*
 * Label selectors in Prometheus' syntax (protocol.md 5.2), over the labels of series, over type ids and, where a series
 * lacks the label, over the labels of samples inside a profile.
 */
#ifndef GATEWAY_QUERY_SELECTOR_H
#define GATEWAY_QUERY_SELECTOR_H

#include "codecs/profile.h"

struct selector;
/* NULL: f says what is wrong and at which byte. Borrows nothing. */
struct selector *selector_parse(struct str text, struct fault *f) MUST_CHECK;
void selector_free(struct selector *s); /* NULL is fine */

/* What the labels of a series say. OPEN: they agree, but some labels are missing there, so that samples decide. */
enum verdict { VERDICT_NO, VERDICT_YES, VERDICT_OPEN };
/* After a regular expression that needs too much work the answer is NO, and selector_error says so. */
enum verdict selector_series(struct selector *s, const struct series *series);
/* Whether a type id agrees with the matchers on __profile_type__. */
bool selector_type(struct selector *s, struct str type_id);
/* Whether a label set, of a sample in a profile of an OPEN series, agrees with the matchers that the series left open.
 */
bool selector_sample(struct selector *s, const struct series *series, const struct sample_label *labels, uint32_t n);
/* Whether any matcher could be about samples at all. */
bool selector_may_open(const struct selector *s);
/* Whether a matcher is about a label of which is() is true. */
/* Whether a matcher that this series leaves open is about one of these names. */
bool selector_reaches(const struct selector *s, const struct series *series, const struct str *names, uint32_t n);
bool selector_names(const struct selector *s, bool (*is)(struct str name));
enum err selector_error(const struct selector *s, struct fault *f);

#endif
