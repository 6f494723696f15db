/* Every allocation on the way from bytes to a decided target and a rendered reply fails in turn: an error, no crash, no
 * leak. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gateway/admit.h"
#include "gateway/http.h"
#include "gateway/input.h"
#include "gateway/reply.h"
#include "gateway/target.h"

#include "test/oracle/failing_malloc.h"

static const char request[] =
    "POST //ingest?name=a%7Bb=c%7D&from=1 HTTP/1.1\r\nHost: a\r\nX-1: 1\r\nX-2: 2\r\nX-3: 3\r\nX-4: 4\r\n"
    "X-5: 5\r\nX-6: 6\r\nX-7: 7\r\nX-8: 8\r\nX-9: 9\r\nX-10: 10\r\nX-11: 11\r\nX-12: 12\r\nX-13: 13\r\n"
    "X-14: 14\r\nX-15: 15\r\nX-16: 16\r\nX-17: 17\r\n\r\n";

static bool use_head(struct head *head)
{
    struct fault f = {.err = E_OK};
    struct target t;
    struct buf out = {0};
    struct str value;
    struct reply r = {0};
    struct buf wire = {0};

    bool ok = target_parse(&t, head->target, &f) == E_OK && target_param(&t, "name", &out, &value, &f) == E_OK;
    if (!ok)
        assert_int_equal(f.err, E_NO_MEMORY);
    fault_set(&f, E_NO_ROUTE, NULL);
    reply_fault(&r, &f);
    reply_header(&r, "Allow", "POST");
    ok = reply_render(&r, 0, true, &wire) && ok;
    reply_free(&r);
    buf_free(&wire);
    buf_free(&out);
    target_free(&t);
    head_free(head);
    return ok;
}

/* true: nothing failed. */
static bool parse_once(void)
{
    struct http_limits limits = {4096, 1024, 64};
    struct http *h = http_new(&limits);
    char slice[sizeof request];
    size_t at = 0, used, body;
    enum http_step step = HTTP_NEED_MORE;
    bool ok = false;

    while (h && step == HTTP_NEED_MORE && at < sizeof request - 1) {
        size_t n = sizeof request - 1 - at < 7 ? sizeof request - 1 - at : 7;
        memcpy(slice, request + at, n);
        step = http_feed(h, slice, n, &used, &body);
        at += used;
    }
    if (h && step == HTTP_REFUSED)
        assert_int_equal(http_fault(h)->err, E_NO_MEMORY);
    if (h && step == HTTP_HEAD_DONE) {
        struct head *head = http_take_head(h);
        ok = head && use_head(head);
    }
    http_free(h);
    return ok;
}

static void each_failure(bool (*once)(void))
{
    for (int stick = 0; stick < 2; stick++) {
        sticky = stick;
        for (fail_at = 0;; fail_at++) {
            calls = 0;
            bool ok = once();
            long seen = calls;
            if (seen <= fail_at) {
                assert_true(ok);
                break;
            }
            assert_false(ok);
        }
        assert_true(fail_at > 1);
        fail_at = -1;
    }
}

static void test_parse(void **state)
{
    (void)state;
    each_failure(parse_once);
}

static bool input_once(void)
{
    struct ledger l;
    struct input in = {0};
    char shared[8] = "abcdefg";

    ledger_init(&l, 1000);
    input_lend(&in, shared, 7);
    in.body_len = 2;
    in.raw += 3;
    in.raw_len = 4;
    bool ok = input_keep(&in, &l) && input_add(&in, "xyz", 3, &l);
    if (ok) {
        assert_memory_equal(in.body, "ab", 2);
        assert_memory_equal(in.raw, "defgxyz", 7);
    }
    input_free(&in, &l);
    assert_int_equal(ledger_total(&l), 0);
    return ok;
}

static void test_input(void **state)
{
    (void)state;
    each_failure(input_once);
}

static void on_ticket(struct ticket *t)
{
    (void)t;
}

static bool admit_once(void)
{
    static const struct admit_events events = {on_ticket, on_ticket};
    struct ticket a = {0}, b = {0};
    struct admit *ad = admit_new(4, 4, 4, 10, &events);

    if (!ad)
        return false;
    bool ok = admit_arrive(ad, &a, STR("p"), 0) == ADMIT_YES && admit_arrive(ad, &b, STR("p"), 0) == ADMIT_WAIT;
    if (ok)
        admit_leave(ad, &b);
    else
        assert_int_equal(b.state, TICKET_NONE);
    admit_leave(ad, &a);
    admit_free(ad);
    return ok;
}

static void test_admit(void **state)
{
    (void)state;
    each_failure(admit_once);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parse), cmocka_unit_test(test_input),
                                       cmocka_unit_test(test_admit)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
