/*
 * multipart/form-data as it arrives: the part `profile` goes on into a payload, `sample_type_config` is collected,
 * `prev_profile` and `jfr` are refused, all others skipped. Any order; a preamble; no line end behind the last boundary
 * needed.
 */
#ifndef CODECS_MULTIPART_H
#define CODECS_MULTIPART_H

#include "codecs/payload.h"

struct multipart;
/* NULL: in->fault is set. Copies the boundary. */
struct multipart *multipart_new(struct intake *in, struct str boundary) MUST_CHECK;
enum step multipart_feed(struct multipart *m, struct str *in, uint32_t *budget) MUST_CHECK;
enum step multipart_end(struct multipart *m, uint32_t *budget) MUST_CHECK;
struct payload *multipart_profile(const struct multipart *m); /* NULL: there was no such part */
struct str multipart_config(const struct multipart *m);       /* text of sample_type_config; empty: none */
void multipart_drop(struct multipart *m);                     /* what is not the arena's; NULL is fine */

#endif
