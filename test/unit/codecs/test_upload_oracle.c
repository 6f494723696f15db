/* Every pprof of the corpus, read by the decoder and by nanopb: the same totals per type, self and total per function
 * and file. */
#include "test/oracle/capture.h"
#include "test/oracle/feed.h"
#include "test/oracle/nano_pprof.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <libdeflate.h>

#include <cmocka.h>

enum { PLAIN_MAX = 64 << 20 };
static struct hash_key key;

static struct str plain(struct arena *a, struct str sent)
{
    if (!str_starts(sent, STR("\x1f\x8b")))
        return sent;
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    char *p = NEW(a, char, PLAIN_MAX);
    size_t n;

    assert_non_null(p);
    assert_int_equal(libdeflate_gzip_decompress(d, sent.p, sent.len, p, PLAIN_MAX, &n), LIBDEFLATE_SUCCESS);
    libdeflate_free_decompressor(d);
    return plain(a, (struct str){p, n});
}

static void one(struct capture *c, void *ctx)
{
    size_t *compared = ctx;
    struct fault f = {0};

    if (!c->taken || c->spec.kind == UPLOAD_FOLDED)
        return;
    struct upload *u = feed_upload(&c->spec, c->body, &(struct feed_plan){0}, &f);
    if (!u)
        fail_msg("%s: %s", c->name, f.text);
    for (uint32_t i = 0; i < upload_outcomes(u); i++) {
        const struct record *r = upload_outcome(u, i)->record;
        if (!r)
            continue;
        struct arena *a = arena_new(1u << 30);
        struct nano_result n = nano_pprof(a, plain(a, r->original), feed_limits.depth);
        if (!n.readable)
            fail_msg("%s: nanopb: %s", c->name, n.why);
        const char *differs = tally_differs(n.tally, tally_record(a, r));
        if (differs)
            fail_msg("%s: %s", c->name, differs);
        ++*compared;
        arena_free(a);
    }
    upload_free(u);
}

static void test_oracle(void **state)
{
    size_t compared = 0;

    (void)state;
    hash_key_derive(&key, STR("oracle"));
    assert_true(capture_each(&key, one, &compared) > 100);
    assert_true(compared >= 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
