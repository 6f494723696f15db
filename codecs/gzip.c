/* libdeflate behind a slice and a buffer. */
#include "codecs/gzip.h"

#include "codecs/pack.h"

#include <libdeflate.h>

enum { LEVEL = 6 };

bool gzip_pack(struct str in, struct buf *out)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(LEVEL);

    if (!c)
        return false;
    size_t n = 0;
    if (pack_room(out, libdeflate_gzip_compress_bound(c, in.len)))
        n = libdeflate_gzip_compress(c, in.p, in.len, out->p + out->len, out->cap - out->len);
    out->len += n;
    libdeflate_free_compressor(c);
    return n != 0;
}
