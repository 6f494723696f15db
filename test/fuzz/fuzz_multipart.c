/* Multipart bodies with boundary "xx", with and without their type. The first byte says how it is cut, its top bit
 * which way. */
#include "test/oracle/feed_same.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct upload_spec spec = feed_spec(n && data[0] & 0x80 ? UPLOAD_PPROF : UPLOAD_MULTIPART);
    struct fault f = {0};

    if (n)
        upload_free(feed_same(&spec, (struct str){(const char *)data + 1, n - 1}, data[0], &f));
    return 0;
}
