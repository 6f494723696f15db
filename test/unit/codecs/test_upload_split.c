/* However a body arrives, it is the same record: cut at every byte (where it is large at 2,000 places, 40 at a time),
 * and byte by byte. */
#include "test/oracle/capture.h"
#include "test/oracle/feed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { EVERY_BYTE = 32 * 1024, PLACES = 2000, TOGETHER = 40 };
static struct hash_key key;

static bool same_symbols(const struct symbols *a, const struct symbols *b)
{
    return a->n_frames == b->n_frames && a->n_stacks == b->n_stacks && a->n_functions == b->n_functions &&
           memcmp(a->frame_ids, b->frame_ids, a->n_frames * sizeof *a->frame_ids) == 0 &&
           memcmp(a->stack_ids, b->stack_ids, a->n_stacks * sizeof *a->stack_ids) == 0;
}

static bool same_record(const struct record *a, const struct record *b)
{
    if (!a || !b)
        return a == b;
    return str_eq(a->body, b->body) && a->series_id == b->series_id && a->time_ns == b->time_ns &&
           a->content_id.hi == b->content_id.hi && a->content_id.lo == b->content_id.lo &&
           a->original_bytes == b->original_bytes && same_symbols(a->symbols, b->symbols);
}

static void compare(const struct capture *c, const struct upload *whole, const struct feed_plan *plan)
{
    struct fault f = {0};
    struct upload *u = feed_upload(&c->spec, c->body, plan, &f);

    if (!u)
        fail_msg("%s: cut %zu, piece %zu, budget %u: %s", c->name, plan->n_cuts ? plan->cuts[0] : 0, plan->piece,
                 plan->budget, f.text);
    if (upload_outcomes(u) != upload_outcomes(whole))
        fail_msg("%s: cut %zu: another number of profiles", c->name, plan->n_cuts ? plan->cuts[0] : 0);
    for (uint32_t i = 0; i < upload_outcomes(u); i++)
        if (!same_record(upload_outcome(u, i)->record, upload_outcome(whole, i)->record))
            fail_msg("%s: cut %zu, piece %zu, budget %u: another record %u", c->name, plan->n_cuts ? plan->cuts[0] : 0,
                     plan->piece, plan->budget, i);
    upload_free(u);
}

static int by_size(const void *pa, const void *pb)
{
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    return (a > b) - (a < b);
}

static void one(struct capture *c, void *ctx)
{
    uint64_t seed = c->body.len, *cuts = ctx;
    struct fault f = {0};

    if (!c->taken)
        return;
    c->spec.keep_originals = false;
    struct upload *whole = feed_upload(&c->spec, c->body, &(struct feed_plan){0}, &f);
    assert_non_null(whole);
    bool large = c->body.len > EVERY_BYTE;
    for (size_t i = 1; i < (large ? PLACES / TOGETHER : c->body.len); i++) {
        size_t cut[TOGETHER] = {i}, n = large ? TOGETHER : 1;
        for (size_t k = 0; large && k < n; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            cut[k] = 1 + (seed >> 33) % (c->body.len - 1);
        }
        qsort(cut, n, sizeof *cut, by_size);
        compare(c, whole, &(struct feed_plan){.cuts = cut, .n_cuts = n});
        *cuts += n;
    }
    compare(c, whole, &(struct feed_plan){.piece = 1});
    compare(c, whole, &(struct feed_plan){.piece = 1, .budget = 1});
    compare(c, whole, &(struct feed_plan){.budget = 7});
    compare(c, whole, &(struct feed_plan){.budget = 4096, .piece = 16384});
    upload_free(whole);
}

static void test_split(void **state)
{
    uint64_t cuts = 0;

    (void)state;
    hash_key_derive(&key, STR("split"));
    assert_true(capture_each(&key, one, &cuts) > 100);
    assert_true(cuts > 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_split)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
