/* Counters and their text, the log line, replies. */
#include "gateway/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gateway/ingest/verdict.h"
#include "gateway/log.h"
#include "gateway/reply.h"

static bool has(struct buf *b, const char *line)
{
    buf_char(b, 0);
    b->len--;
    return strstr(b->p, line) != NULL;
}

static void test_text(void **state)
{
    static struct metrics m;
    static const char *const states[] = {"idle", "head"}, *const accounts[] = {"requests"};
    uint64_t bytes[] = {77};
    struct metrics_scrape s = {states, 2, "null", "9", true, accounts, bytes, 1};
    struct buf b = {0};

    (void)state;
    m.plain[M_requests_received] = 5;
    metrics_answered(&m, ROUTE_INGEST, STR("POST"), 200, 0.002);
    metrics_answered(&m, ROUTE_INGEST, STR("POST"), 200, 20);
    metrics_answered(&m, ROUTE_NONE, STR("BREW"), 418, 0);
    m.cut[CLOSE_PEER] = 2;
    m.closed[CLOSE_IDLE] = 3;
    m.profiles_refused[UPLOAD_PPROF][E_TOO_MANY_SAMPLES] = 4;
    assert_int_equal(metrics_finished(&m), 5);
    assert_int_equal(metrics_closed(&m), 3);
    metrics_text(&m, &s, &b);
    assert_true(has(&b, "\nflamegate_requests_received_total 5\n"));
    assert_true(has(&b, "\nflamegate_requests_total{route=\"ingest\",method=\"POST\",code=\"200\"} 2\n"));
    assert_true(has(&b, "\nflamegate_requests_total{route=\"none\",method=\"other\",code=\"0\"} 1\n"));
    assert_true(has(&b, "\nflamegate_requests_cut_total{reason=\"peer\"} 2\n"));
    assert_true(has(&b, "format=\"pprof\",reason=\"samples_limit\""));
    assert_true(has(&b, "flamegate_request_duration_seconds_bucket{route=\"ingest\",le=\"0.0025\"} 1\n"));
    assert_true(has(&b, "flamegate_request_duration_seconds_bucket{route=\"ingest\",le=\"+Inf\"} 2\n"));
    assert_true(has(&b, "\nflamegate_memory_bytes{account=\"requests\"} 77\n"));
    buf_free(&b);
}

/* Every family has one head, in front of all its rows. */
static void test_families_stand_together(void **state)
{
    static struct metrics m;
    struct metrics_scrape s = {NULL, 0, "null", "9", false, NULL, NULL, 0};
    struct buf b = {0};

    (void)state;
    metrics_text(&m, &s, &b);
    buf_char(&b, 0);
    for (char *p = strstr(b.p, "# TYPE "); p; p = strstr(p + 1, "# TYPE ")) {
        char head[128];
        size_t n = strcspn(p, "\n");
        assert_true(n < sizeof head - 1);
        snprintf(head, sizeof head, "%.*s", (int)n + 1, p);
        assert_null(strstr(p + 1, head));
    }
    buf_free(&b);
}

static void line_is(bool json, struct str value, const char *want)
{
    const struct log_field fields[] = {LOG_STR("k", value), LOG_NUM("n", -5)};
    char out[512];
    size_t n = log_render(out, sizeof out, json, INT64_C(1700000000123000000), LOG_WARN, "two words", fields, 2);

    out[n] = 0;
    assert_string_equal(out, want);
}

static void test_log(void **state)
{
    (void)state;
    line_is(false, STR("plain"), "time=2023-11-14T22:13:20.123Z level=warn event=\"two words\" k=plain n=-5\n");
    line_is(
        false, STR("a\nb\"\xc2\x85\xff"),
        "time=2023-11-14T22:13:20.123Z level=warn event=\"two words\" k=\"a\\u000ab\\\"\\u00c2\\u0085\\u00ff\" n=-5\n");
    line_is(true, STR("a=\xc2\x85 \xc3\xa4"),
            "{\"time\":\"2023-11-14T22:13:20.123Z\",\"level\":\"warn\",\"event\":\"two words\",\"k\":\"a=\\u0085 "
            "\xc3\xa4\",\"n\":-5}\n");
}

static void test_log_line_stays_whole(void **state)
{
    char big[9000], out[4096];
    const struct log_field f[] = {LOG_STR("k", ((struct str){big, sizeof big}))};

    (void)state;
    memset(big, 'x', sizeof big);
    size_t n = log_render(out, sizeof out, false, 0, LOG_INFO, "e", f, 1);
    assert_true(n <= sizeof out && out[n - 1] == '\n');
    n = log_render(out, sizeof out, true, 0, LOG_INFO, "e", f, 1);
    assert_true(n <= sizeof out && memcmp(out + n - 5, "xx\"}\n", 5) == 0); /* JSON still */
}

static void test_errors(void **state)
{
    struct reply r = {0};
    struct fault f = {.err = E_OK};
    struct buf head = {0};

    (void)state;
    fault_set(&f, E_UNAUTHENTICATED, "no \"token\"");
    reply_fault(&r, &f);
    assert_string_equal(r.content_type, "application/json");
    assert_true(has(&r.body, "{\"code\":\"unauthenticated\",\"message\":\"no \\\"token\\\"\"}"));
    assert_true(reply_render(&r, 0, true, &head));
    assert_true(has(&head, "HTTP/1.1 401 Unauthorized\r\n"));
    assert_true(has(&head, "WWW-Authenticate: Basic realm=\"flamegate\"\r\n"));
    assert_true(has(&head, "Connection: close\r\n\r\n"));
    buf_free(&head);
    reply_free(&r);
}

/* Bad input is never 5xx, and every 5xx that asks for patience says for how long. */
static void test_every_error(void **state)
{
    (void)state;
    for (int e = E_OK + 1; e < E_COUNT; e++) {
        struct reply r = {0};
        struct fault f = {.err = (enum err)e};
        struct buf head = {0};
        reply_fault(&r, &f);
        assert_true(reply_render(&r, 0, false, &head));
        assert_string_not_equal(reply_reason(r.status), "Unknown");
        assert_int_equal(r.status == 503 || r.status == 429, has(&head, "Retry-After: "));
        buf_free(&head);
        reply_free(&r);
    }
}

static void verdict_is(const struct verdict *v, const char *type, int status, const char *body)
{
    struct reply r = {0};

    verdict_reply(v, type, &r);
    assert_int_equal(r.status, status);
    assert_true(has(&r.body, body));
    reply_free(&r);
}

static void test_verdicts(void **state)
{
    struct fault samples = {.err = E_OK}, size = {.err = E_OK};
    struct verdict v = {.profiles = 3, .stored = 3};

    (void)state;
    fault_set(&samples, E_TOO_MANY_SAMPLES, "limits.samples");
    fault_set(&size, E_PROFILE_TOO_LARGE, "limits.decoded");
    verdict_is(&v, NULL, 200, "");
    verdict_is(&v, "application/json; charset=utf-8", 200, "{}");
    v = (struct verdict){.profiles = 1};
    verdict_refused(&v, &size);
    verdict_is(&v, NULL, 413, "\"limits.decoded\"");
    v = (struct verdict){.profiles = 3, .stored = 2};
    verdict_refused(&v, &size);
    verdict_is(&v, NULL, 400, "\"stored\":2,\"refused\":1,\"reasons\":[\"limits.decoded\"]}");
    v = (struct verdict){.profiles = 2};
    verdict_refused(&v, &size);
    verdict_refused(&v, &samples);
    verdict_is(&v, NULL, 400, "\"stored\":0,\"refused\":2,\"reasons\":[\"limits.decoded\",\"limits.samples\"]}");
    verdict_failed(&v, E_STORE_DOWN);
    verdict_failed(&v, E_INTERNAL);
    verdict_is(&v, NULL, 503, "unavailable"); /* what may be retried comes first */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text),    cmocka_unit_test(test_families_stand_together),
                                       cmocka_unit_test(test_log),     cmocka_unit_test(test_log_line_stays_whole),
                                       cmocka_unit_test(test_errors),  cmocka_unit_test(test_every_error),
                                       cmocka_unit_test(test_verdicts)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
