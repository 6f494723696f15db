/* gzip of answers and downloads, whole buffers: the only user of libdeflate. Reading gzip is codecs/inflate.h. */
#ifndef CODECS_GZIP_H
#define CODECS_GZIP_H

#include "codecs/base.h"

/* Appends one gzip member to out. false: no memory (out is then as long as it was). */
bool gzip_pack(struct str in, struct buf *out) MUST_CHECK;

#endif
