/* Every allocation of a whole upload fails in turn, once and from then on: an error, no crash, no leak. */
#include "test/oracle/capture.h"
#include "test/oracle/feed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "test/oracle/failing_malloc.h"

static size_t walks;
static struct hash_key key;

/* Whether the walk met no failure. */
static bool walk(const struct upload_spec *spec, struct str body, const char *name)
{
    struct fault f = {0};
    struct upload *u = feed_upload(spec, body, &(struct feed_plan){.piece = 1000}, &f);
    long made = fail_no_more();

    walks++;
    if (u) {
        for (uint32_t i = 0; i < upload_outcomes(u); i++) {
            enum err e = upload_outcome(u, i)->fault.err;
            if (e != E_OK && e != E_NO_MEMORY)
                fail_msg("%s, allocation %ld: %s", name, made, upload_outcome(u, i)->fault.text);
        }
        upload_free(u);
        return true;
    }
    if (f.err != E_NO_MEMORY)
        fail_msg("%s, allocation %ld: %s", name, made, f.text);
    return false;
}

static void each_allocation(const struct capture *c)
{
    for (int mode = 0; mode < 2; mode++) {
        bool done = false;
        for (long at = 0; !done; at++) {
            fail_from(at, mode);
            bool good = walk(&c->spec, c->body, c->name);
            done = good && calls <= at;
            assert_true(at < 5000);
        }
    }
}

static void one(struct capture *c, void *ctx)
{
    size_t *n = ctx;

    if (!c->taken || c->body.len > 16 * 1024)
        return;
    ++*n;
    each_allocation(c);
}

static void zstd_body(void)
{
    static const char frame[] = "\x28"
                                "\xb5"
                                "\x2f"
                                "\xfd"
                                "\x04"
                                "\x58"
                                "\x39"
                                "\x00"
                                "\x00"
                                "\x61"
                                "\x3b"
                                "\x62"
                                "\x20"
                                "\x31"
                                "\x32"
                                "\x0a"
                                "\xe4"
                                "\x6b"
                                "\x58"
                                "\xec";
    struct capture c = {.name = "zstd", .body = {frame, sizeof frame - 1}};

    c.spec = (struct upload_spec){.kind = UPLOAD_FOLDED,
                                  .coding = CODING_ZSTD,
                                  .params = {.name = STR("app.cpu{a=b}")},
                                  .window_past_ns = -1,
                                  .window_future_ns = -1,
                                  .limits = &feed_limits,
                                  .key = &key};
    assert_true(walk(&c.spec, c.body, c.name));
    each_allocation(&c);
}

static void test_faults(void **state)
{
    size_t n = 0;

    (void)state;
    hash_key_derive(&key, STR("fault"));
    assert_true(capture_each(&key, one, &n) > 100);
    assert_true(n > 60);
    zstd_body();
    print_message("%zu requests, %zu walks\n", n, walks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_faults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
