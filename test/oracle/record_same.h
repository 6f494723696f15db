/* Whether a record read back says what its profile said. */
#ifndef TEST_ORACLE_RECORD_SAME_H
#define TEST_ORACLE_RECORD_SAME_H

#include "codecs/record.h"

/* NULL, or what differs. */
const char *record_differs(const struct record_view *v, const struct profile *p, const struct record *r);
/* The profile that a view tells of, with the symbols of `p`, whose record it was read from: sealing it gives the same
 * body. */
struct profile *record_again(struct arena *a, const struct record_view *v, const struct profile *p,
                             const struct record *r);

#endif
