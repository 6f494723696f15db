/* libzstd behind our slices: whole frames with a bound on what they may say of themselves, and a decoder with a bound
 * on its window. */
#include "codecs/zstd.h"

#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { WINDOW_LOG_MAX = 23 };

static bool room(struct buf *b, size_t more)
{
    if (b->failed || more > SIZE_MAX / 2 - b->len)
        return false;
    if (b->cap - b->len >= more)
        return true;
    char *p = realloc(b->p, b->len + more);
    if (!p) {
        b->failed = true;
        return false;
    }
    b->p = p;
    b->cap = b->len + more;
    return true;
}

bool zstd_pack(struct str in, int level, struct buf *out)
{
    if (!room(out, ZSTD_compressBound(in.len)))
        return false;
    size_t n = ZSTD_compress(out->p + out->len, out->cap - out->len, in.p, in.len, level);
    if (ZSTD_isError(n)) {
        out->failed = true;
        return false;
    }
    out->len += n;
    return true;
}

bool zstd_unpack(struct str in, size_t max, struct buf *out)
{
    unsigned long long size = ZSTD_getFrameContentSize(in.p, in.len);

    if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > max)
        return false;
    if (ZSTD_findFrameCompressedSize(in.p, in.len) != in.len || !room(out, (size_t)size + 1))
        return false;
    size_t n = ZSTD_decompress(out->p + out->len, (size_t)size, in.p, in.len);
    out->failed |= ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation;
    if (ZSTD_isError(n) || n != size)
        return false;
    out->len += n;
    return true;
}

struct unzstd {
    ZSTD_DCtx *ctx;
    const char *reason;
    bool inside; /* of a frame */
};

struct unzstd *unzstd_new(void)
{
    struct unzstd *z = calloc(1, sizeof *z);

    if (!z)
        return NULL;
    z->ctx = ZSTD_createDCtx();
    if (!z->ctx || ZSTD_isError(ZSTD_DCtx_setParameter(z->ctx, ZSTD_d_windowLogMax, WINDOW_LOG_MAX))) {
        unzstd_free(z);
        return NULL;
    }
    return z;
}

enum unzstd_step unzstd_pull(struct unzstd *z, struct str *in, void *out, size_t cap, size_t *n)
{
    ZSTD_inBuffer from = {in->p, in->len, 0};
    ZSTD_outBuffer to = {out, cap, 0};

    *n = 0;
    if (in->len == 0 && !z->inside)
        return UNZSTD_OK;
    size_t r = ZSTD_decompressStream(z->ctx, &to, &from);
    if (ZSTD_isError(r)) {
        z->reason = ZSTD_getErrorName(r);
        return ZSTD_getErrorCode(r) == ZSTD_error_memory_allocation ? UNZSTD_NO_MEMORY : UNZSTD_BAD;
    }
    z->inside = r != 0;
    in->p += from.pos;
    in->len -= from.pos;
    *n = to.pos;
    return UNZSTD_OK;
}

bool unzstd_ended(const struct unzstd *z)
{
    return !z->inside;
}

const char *unzstd_reason(const struct unzstd *z)
{
    return z->reason ? z->reason : "";
}

size_t unzstd_bytes(const struct unzstd *z)
{
    return sizeof *z + ZSTD_sizeof_DCtx(z->ctx);
}

void unzstd_free(struct unzstd *z)
{
    if (!z)
        return;
    ZSTD_freeDCtx(z->ctx);
    free(z);
}
