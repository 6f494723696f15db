/* PushRequests as JSON, whole and in pieces. The first byte says how it is cut. */
#include "test/oracle/feed_same.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct upload_spec spec = feed_spec(UPLOAD_PUSH_JSON);
    struct fault f = {0};

    if (n)
        upload_free(feed_same(&spec, (struct str){(const char *)data + 1, n - 1}, data[0], &f));
    return 0;
}
