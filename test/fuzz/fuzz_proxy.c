/*
 * Bytes to the PROXY header's parser: whole and one at a time they are taken for the same, never for more than was
 * there, and a header that was taken is never followed back: what it leaves begins where it ended.
 */
#include <stdlib.h>

#include "gateway/proxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static enum proxy_step run(const uint8_t *data, size_t n, size_t chunk, struct proxy *x, size_t *at)
{
    enum proxy_step step = PROXY_NEED_MORE;

    *x = (struct proxy){.n = 0};
    for (*at = 0; *at < n && step == PROXY_NEED_MORE;) {
        size_t m = chunk < n - *at ? chunk : n - *at, used;
        char *piece = malloc(m); /* exact, so that an over-read is seen */
        if (!piece)
            abort();
        memcpy(piece, data + *at, m);
        step = proxy_feed(x, piece, m, &used);
        free(piece);
        if (used > m || (step == PROXY_NEED_MORE && used != m))
            abort();
        *at += used;
    }
    return step;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct proxy whole, bytes;
    size_t whole_at, bytes_at;
    enum proxy_step step = run(data, n, n ? n : 1, &whole, &whole_at);

    if (step != run(data, n, 1, &bytes, &bytes_at))
        abort();
    if (step == PROXY_NEED_MORE && whole_at > PROXY_BYTES_MAX)
        abort();
    if (step != PROXY_DONE)
        return 0;
    if (whole_at != bytes_at || whole_at > PROXY_BYTES_MAX || whole.has_source != bytes.has_source)
        abort();
    if (memcmp(&whole.source, &bytes.source, sizeof whole.source) != 0)
        abort();
    return 0;
}
