/*
 * Lines of a head or of trailers, as strictly as a proxy in front might read them: the ways in which llhttp is more
 * generous are those in which requests are smuggled. Pure, byte by byte.
 */
#ifndef GATEWAY_LINES_H
#define GATEWAY_LINES_H

#include "codecs/base.h"

struct lines {
    char last; /* byte */
    uint8_t where, matched;
};
/* For a head, empty lines in front of it included; for trailers, which have no request line. */
void lines_head(struct lines *l);
void lines_trailers(struct lines *l);
/* The next bytes. NULL: all is well; else what is wrong. */
const char *lines_wrong(struct lines *l, const char *p, size_t n);
/* More than empty lines has come. */
bool lines_begun(const struct lines *l);

#endif
