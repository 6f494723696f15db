/* Raw pprofs, whole and in pieces; what is accepted, nanopb must accept as well, and come to the same sums. */
#include "test/oracle/feed_same.h"
#include "test/oracle/nano_pprof.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void agree(const struct outcome *o, struct str body)
{
    struct arena *a = arena_new(1u << 30);
    ASSERT(a);
    struct nano_result r = nano_pprof(a, body, feed_small_limits.depth);

    if (!r.readable)
        fprintf(stderr, "nanopb: %s\n", r.why);
    ASSERT(r.readable);
    ASSERT((o->record != NULL) == (r.kept > 0));
    ASSERT(r.kept > 0 || r.broken == 0);
    if (o->record)
        ASSERT(tally_differs(r.tally, tally_record(a, o->record)) == NULL);
    arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct upload_spec spec = feed_spec(UPLOAD_PPROF);
    struct fault f = {0};

    if (n < 2)
        return 0;
    struct str body = {(const char *)data + 1, n - 1};
    struct upload *u = feed_same(&spec, body, data[0], &f);
    bool plain = !str_starts(body, STR("\x1f\x8b")) && !str_starts(body, STR("--"));
    if (u && plain && upload_outcome(u, 0)->fault.err == E_OK)
        agree(upload_outcome(u, 0), body);
    upload_free(u);
    return 0;
}
