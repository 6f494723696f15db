/*
 * The only user of libzstd: streaming decoding of a request's Content-Encoding, and whole frames for what we store.
 */
#ifndef CODECS_ZSTD_H
#define CODECS_ZSTD_H

#include "codecs/base.h"

/* Appends one frame to out. false: no memory (out is then as `failed` says, or as long as it was). */
bool zstd_pack(struct str in, int level, struct buf *out) MUST_CHECK;
/* Appends the content of exactly one frame that declares its size, at most `max` bytes. false: not one, or no memory:
 * out->failed. */
bool zstd_unpack(struct str in, size_t max, struct buf *out) MUST_CHECK;

/* Streaming: several frames in a row are one content. Nothing is allocated from declared sizes but the window, capped
 * at 8 MiB. */
struct unzstd;
enum unzstd_step { UNZSTD_OK, UNZSTD_BAD, UNZSTD_NO_MEMORY };
struct unzstd *unzstd_new(void) MUST_CHECK; /* NULL: no memory */
/*
 * Takes bytes off the front of *in and writes up to cap bytes to out; *n is how many. Call again while it makes
 * progress. After UNZSTD_BAD, unzstd_reason says why; the stream is dead.
 */
enum unzstd_step unzstd_pull(struct unzstd *z, struct str *in, void *out, size_t cap, size_t *n) MUST_CHECK;
bool unzstd_ended(const struct unzstd *z); /* at a frame's end: the input may stop here */
const char *unzstd_reason(const struct unzstd *z);
size_t unzstd_bytes(const struct unzstd *z); /* memory held now */
void unzstd_free(struct unzstd *z);

#endif
