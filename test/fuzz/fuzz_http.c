/*
 * Bytes to the HTTP parser: whole and one at a time they must be taken for the same messages; and what comes out is
 * inside of what went in.
 */
#include <stdlib.h>

#include "gateway/http.h"
#include "gateway/media.h"
#include "gateway/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct seen {
    uint64_t hash;
    unsigned messages;
    int status;
};

static void mix(struct seen *s, struct str bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        s->hash = (s->hash ^ (uint8_t)bytes.p[i]) * 1099511628211u;
}

static void look(struct seen *s, struct http *h)
{
    struct head *head = http_take_head(h);
    struct fault f = {.err = E_OK};
    struct target t;
    struct str value;
    char text[64];

    if (!head)
        abort();
    mix(s, head->method);
    mix(s, head->target);
    for (uint32_t i = 0; i < head->n_headers; i++) {
        mix(s, head->headers[i].name);
        mix(s, head->headers[i].value);
        if (media_param(head->headers[i].value, STR("boundary"), text, sizeof text, &value))
            mix(s, value);
    }
    if (target_parse(&t, head->target, &f) == E_OK) {
        struct buf out = {.p = malloc(t.query.len + 1), .cap = t.query.len + 1};
        char *before = out.p;
        if (!out.p || t.path.p[0] != '/' || memmem(t.path.p, t.path.len, "//", 2) ||
            memmem(t.path.p, t.path.len, "/../", 4) || memmem(t.path.p, t.path.len, "/./", 3))
            abort();
        struct target again; /* the normal form of a normal form is itself */
        if (target_parse(&again, t.path, &f) != E_OK || !str_eq(again.path, t.path))
            abort();
        target_free(&again);
        if (target_param(&t, "name", &out, &value, &f) == E_OK)
            mix(s, value);
        if (out.p != before)
            abort();
        buf_free(&out);
    }
    target_free(&t);
    head_free(head);
}

static struct seen run(const uint8_t *data, size_t n, size_t chunk)
{
    struct http_limits limits = {4096, 1024, 32};
    struct http *h = http_new(&limits);
    struct seen s = {0};
    size_t at = 0;
    enum http_step step = HTTP_NEED_MORE;

    if (!h)
        abort();
    while (step != HTTP_REFUSED && (at < n || step == HTTP_HEAD_DONE)) {
        size_t m = chunk < n - at ? chunk : n - at, used, body;
        char *slice = malloc(m + !m); /* exact, so that an over-read is seen */
        if (!slice)
            abort();
        memcpy(slice, data + at, m);
        step = http_feed(h, slice, m, &used, &body);
        if (used > m || body > m)
            abort();
        if (step != HTTP_REFUSED)
            mix(&s, (struct str){slice, body});
        at += used;
        s.messages += step == HTTP_ALL_DONE;
        free(slice);
        if (step == HTTP_HEAD_DONE)
            look(&s, h);
    }
    s.status = step == HTTP_REFUSED ? err_status(http_fault(h)->err) : 0;
    http_free(h);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct seen whole = run(data, n, n ? n : 1), bytes = run(data, n, 1);

    if (whole.messages != bytes.messages || (whole.status != 0) != (bytes.status != 0))
        abort();
    if (whole.status == 0 && whole.hash != bytes.hash)
        abort();
    return 0;
}
