/*
 * Streaming gunzip; the only user of ISA-L. Several members are one content; zero bytes may follow the last one,
 * nothing else may.
 */
#ifndef CODECS_INFLATE_H
#define CODECS_INFLATE_H

#include "codecs/base.h"

struct inflate;
struct inflate *inflate_new(void) MUST_CHECK; /* NULL: no memory */
void inflate_reset(struct inflate *z);        /* as new */
/*
 * Takes bytes off the front of *in and writes up to cap bytes to out; *n is how many. Call again while it makes
 * progress. false: not a gzip stream, inflate_reason says why; the stream is dead.
 */
bool inflate_pull(struct inflate *z, struct str *in, void *out, size_t cap, size_t *n) MUST_CHECK;
bool inflate_ended(const struct inflate *z); /* behind a whole member: the input may stop here */
const char *inflate_reason(const struct inflate *z);
size_t inflate_bytes(void); /* memory of one */
void inflate_free(struct inflate *z);

#endif
