/* HTTP/1.x requests out of a byte stream: llhttp without its lenient flags, and what it leaves open. */
#include "gateway/http.h"

#include <stdlib.h>

#include <llhttp.h>

#include "gateway/lines.h"

/* While a head is read its memory moves: everything is an offset. */
struct span {
    uint32_t at, len;
};
struct raw_header {
    struct span name, value;
};

struct http {
    llhttp_t parser;
    struct http_limits limits;
    struct fault fault;
    struct buf text; /* target, names and values, one after the other */
    struct raw_header *headers;
    uint32_t n_headers, cap_headers;
    struct span target;
    size_t head_bytes, framing_bytes; /* the latter: of a chunked body, besides its content */
    uint64_t chunks;
    bool begun, head_done, in_value, ended, chunked, last_chunk, in_trailers;
    struct lines lines;
    char *body; /* where body bytes of this slice go */
    size_t body_len;
};

static int refuse(struct http *h, enum err e, const char *text)
{
    fault_set(&h->fault, e, "%s", text);
    return HPE_USER;
}

/* Appends to `text`, and to the span that ends there. */
static bool extend(struct http *h, struct span *s, const char *p, size_t n)
{
    if (s->len == 0)
        s->at = (uint32_t)h->text.len;
    buf_add(&h->text, p, n);
    s->len += (uint32_t)n;
    return !h->text.failed;
}

static int on_url(llhttp_t *parser, const char *p, size_t n)
{
    struct http *h = parser->data;

    if (h->target.len + n > h->limits.target_bytes) {
        fault_set(&h->fault, E_URI_TOO_LONG, "request target is longer than half of limits.head (%u bytes): %zu so far",
                  h->limits.target_bytes, h->target.len + n);
        return HPE_USER;
    }
    return extend(h, &h->target, p, n) ? 0 : refuse(h, E_NO_MEMORY, "no memory for the request's head");
}

static struct raw_header *header_add(struct http *h)
{
    if (h->n_headers == h->cap_headers) {
        uint32_t cap = h->cap_headers ? 2 * h->cap_headers : 16;
        struct raw_header *more = realloc(h->headers, cap * sizeof *more);
        if (!more)
            return NULL;
        h->headers = more;
        h->cap_headers = cap;
    }
    struct raw_header *x = &h->headers[h->n_headers++];
    *x = (struct raw_header){{0, 0}, {0, 0}};
    return x;
}

static int on_header_field(llhttp_t *parser, const char *p, size_t n)
{
    struct http *h = parser->data;

    if (h->head_done) /* a trailer is read over */
        return 0;
    if (h->n_headers == 0 || h->in_value) {
        if (h->n_headers >= h->limits.headers) {
            fault_set(&h->fault, E_HEAD_TOO_LARGE, "more than limits.headers = %u headers: %u seen", h->limits.headers,
                      h->n_headers + 1);
            return HPE_USER;
        }
        if (!header_add(h))
            return refuse(h, E_NO_MEMORY, "no memory for the request's head");
        h->in_value = false;
    }
    return extend(h, &h->headers[h->n_headers - 1].name, p, n)
               ? 0
               : refuse(h, E_NO_MEMORY, "no memory for the request's head");
}

static int on_header_value(llhttp_t *parser, const char *p, size_t n)
{
    struct http *h = parser->data;

    if (h->head_done)
        return 0;
    h->in_value = true;
    return extend(h, &h->headers[h->n_headers - 1].value, p, n)
               ? 0
               : refuse(h, E_NO_MEMORY, "no memory for the request's head");
}

/* A header without a value has no value callback with bytes. */
static int on_header_value_complete(llhttp_t *parser)
{
    struct http *h = parser->data;

    h->in_value = true;
    return 0;
}

static struct str view(const struct http *h, struct span s)
{
    return (struct str){h->text.p + s.at, s.len};
}

static unsigned count(const struct http *h, struct str name, struct str *last)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < h->n_headers; i++) {
        if (!str_eq_nocase(view(h, h->headers[i].name), name))
            continue;
        *last = str_trim(view(h, h->headers[i].value));
        n++;
    }
    return n;
}

/* A host and a port as RFC 3986 has them, or nothing: no user, no path, no white space, no list. */
static bool is_host(struct str s)
{
    static const char never[] = "\"#,/<>?@\\^`{|}";

    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~' || memchr(never, s.p[i], sizeof never - 1))
            return false;
    return true;
}

static bool is_length(struct str s, uint64_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] < '0' || s.p[i] > '9' || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
            return false;
    return s.len > 0 && v == n;
}

/* The framing that we see must be the one that llhttp follows. */
static enum err check_framing(struct http *h)
{
    struct str coding = {0}, length = {0};
    unsigned codings = count(h, STR("transfer-encoding"), &coding), lengths = count(h, STR("content-length"), &length);

    if (codings && lengths)
        return fault_set(&h->fault, E_BAD_FRAMING, "both Content-Length and Transfer-Encoding");
    if (lengths > 1 || (lengths && !is_length(length, h->parser.content_length)))
        return fault_set(&h->fault, E_BAD_FRAMING, lengths > 1 ? "more than one Content-Length" : "bad Content-Length");
    if (codings && h->parser.http_minor == 0)
        return fault_set(&h->fault, E_BAD_FRAMING, "Transfer-Encoding in HTTP/1.0");
    if (codings > 1 || (codings && !str_eq_nocase(coding, STR("chunked"))))
        return fault_set(&h->fault, E_UNSUPPORTED_FRAMING, "the only transfer encoding is chunked");
    if (codings && !(h->parser.flags & F_CHUNKED))
        return fault_set(&h->fault, E_BAD_FRAMING, "bad Transfer-Encoding");
    return E_OK;
}

/* What llhttp lets pass or answers with the wrong code. */
static enum err check_head(struct http *h)
{
    struct str host = {0};
    unsigned hosts = count(h, STR("host"), &host);

    for (uint32_t i = 0; i < h->n_headers; i++)
        if (memchr(view(h, h->headers[i].name).p, ' ', h->headers[i].name.len))
            return fault_set(&h->fault, E_BAD_FRAMING, "malformed HTTP request: a space in the name of a header");
    if (h->parser.http_major != 1 || h->parser.http_minor > 1)
        return fault_set(&h->fault, E_HTTP_VERSION, NULL);
    if (check_framing(h) != E_OK)
        return h->fault.err;
    if (hosts > 1 || (hosts == 0 && h->parser.http_minor == 1))
        return fault_set(&h->fault, E_BAD_FRAMING, hosts ? "more than one Host" : "Host is missing");
    if (!is_host(host))
        return fault_set(&h->fault, E_BAD_FRAMING, "Host is no host");
    return E_OK;
}

static int on_headers_complete(llhttp_t *parser)
{
    struct http *h = parser->data;

    if (check_head(h) != E_OK)
        return -1;
    h->head_done = true;
    h->chunked = (parser->flags & F_CHUNKED) != 0;
    parser->upgrade = 0; /* an Upgrade or CONNECT is an ordinary request here */
    return HPE_PAUSED;
}

static int on_body(llhttp_t *parser, const char *p, size_t n)
{
    struct http *h = parser->data;

    memmove(h->body + h->body_len, p, n);
    h->body_len += n;
    return 0;
}

/* Stops behind the last chunk: what follows are lines again. */
static int on_chunk_header(llhttp_t *parser)
{
    struct http *h = parser->data;

    h->chunks++;
    h->last_chunk = parser->content_length == 0;
    return h->last_chunk ? HPE_PAUSED : 0;
}

static int on_message_complete(llhttp_t *parser)
{
    struct http *h = parser->data;

    h->ended = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_header_value_complete = on_header_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_chunk_header = on_chunk_header,
    .on_message_complete = on_message_complete,
};

static void next_message(struct http *h)
{
    llhttp_init(&h->parser, HTTP_REQUEST, &settings);
    h->parser.data = h;
    h->n_headers = 0;
    h->text.len = 0;
    h->target = (struct span){0, 0};
    h->head_bytes = h->framing_bytes = 0;
    h->chunks = 0;
    h->begun = h->head_done = h->in_value = h->ended = h->chunked = h->last_chunk = h->in_trailers = false;
    lines_head(&h->lines);
}

struct http *http_new(const struct http_limits *limits)
{
    struct http *h = calloc(1, sizeof *h);

    if (!h)
        return NULL;
    h->limits = *limits;
    next_message(h);
    return h;
}

void http_free(struct http *h)
{
    if (!h)
        return;
    buf_free(&h->text);
    free(h->headers);
    free(h);
}

static void bad(struct http *h, llhttp_errno_t e)
{
    if (h->fault.err != E_OK)
        return;
    if (e == HPE_PAUSED_H2_UPGRADE || h->parser.method == HTTP_PRI)
        fault_set(&h->fault, E_HTTP_VERSION, "HTTP/2 is not served here, use HTTP/1.1");
    else if (e == HPE_INVALID_VERSION && !h->head_done)
        fault_set(&h->fault, E_HTTP_VERSION, NULL);
    else
        fault_set(&h->fault, E_BAD_FRAMING, "malformed HTTP request: %s",
                  h->parser.reason && *h->parser.reason ? h->parser.reason : llhttp_errno_name(e));
}

static bool lines_good(struct http *h, const char *p, size_t n)
{
    const char *wrong = lines_wrong(&h->lines, p, n);

    if (wrong)
        fault_set(&h->fault, E_BAD_FRAMING, "malformed HTTP request: %s", wrong);
    return wrong == NULL;
}

/* The bytes of the head in this slice: all of it, or up to the end of the head. */
static bool head_within(struct http *h, const char *p, size_t n)
{
    h->head_bytes += n;
    if (h->head_bytes > h->limits.head_bytes) {
        fault_set(&h->fault, E_HEAD_TOO_LARGE, "request head is larger than limits.head = %u bytes: %zu so far",
                  h->limits.head_bytes, (size_t)h->head_bytes);
        return false;
    }
    return lines_good(h, p, n);
}

/* Sizes of chunks, their extensions, and trailers: what is more than plain chunks need is bounded like a head. */
static bool framing_within(struct http *h, size_t n)
{
    enum { CHUNK_LINES = 24 }; /* "\r\n", sixteen digits, "\r\n", and some more */

    h->framing_bytes += n;
    if (h->framing_bytes <= h->limits.head_bytes + h->chunks * CHUNK_LINES)
        return true;
    fault_set(&h->fault, E_HEAD_TOO_LARGE,
              "chunk extensions and trailers are larger than limits.head = %u bytes: %zu so far", h->limits.head_bytes,
              (size_t)h->framing_bytes);
    return false;
}

/* One run of the parser, to where it stopped. false: refused. */
static bool execute(struct http *h, const char *p, size_t n, size_t *used, bool *paused)
{
    bool in_head = !h->head_done;
    size_t before = h->body_len;
    llhttp_errno_t e = llhttp_execute(&h->parser, p, n);

    *paused = e == HPE_PAUSED;
    if (e != HPE_OK && !*paused) {
        bad(h, e);
        return false;
    }
    *used = *paused ? (size_t)(llhttp_get_error_pos(&h->parser) - p) : n;
    if (*paused)
        llhttp_resume(&h->parser);
    if (in_head)
        return head_within(h, p, *used);
    if (h->chunked && !framing_within(h, *used - (h->body_len - before)))
        return false;
    return !h->in_trailers || lines_good(h, p, *used);
}

enum http_step http_feed(struct http *h, char *p, size_t n, size_t *used, size_t *body)
{
    bool paused;
    size_t more;

    *used = *body = 0;
    if (h->fault.err != E_OK)
        return HTTP_REFUSED;
    if (h->ended)
        next_message(h);
    h->body = p;
    h->body_len = 0;
    do {
        h->last_chunk = false;
        if (!execute(h, p + *used, n - *used, &more, &paused))
            return HTTP_REFUSED;
        *used += more;
        if (h->last_chunk) {
            h->in_trailers = true;
            lines_trailers(&h->lines);
        }
    } while (h->last_chunk);
    h->begun = h->begun || h->head_done || lines_begun(&h->lines);
    *body = h->body_len;
    if (!paused)
        return HTTP_NEED_MORE;
    h->begun = h->begun && !h->ended;
    return h->ended ? HTTP_ALL_DONE : HTTP_HEAD_DONE;
}

static void fill_framing(const struct http *h, struct head *out)
{
    out->method = str_of(llhttp_method_name((llhttp_method_t)h->parser.method));
    out->minor = h->parser.http_minor;
    out->chunked = (h->parser.flags & F_CHUNKED) != 0;
    out->has_length = (h->parser.flags & F_CONTENT_LENGTH) != 0;
    out->length = out->has_length ? h->parser.content_length : 0;
    out->has_body = out->chunked || out->length > 0;
    out->keep_alive = out->minor == 1 ? !head_lists(out, STR("connection"), STR("close"))
                                      : head_lists(out, STR("connection"), STR("keep-alive"));
}

struct head *http_take_head(struct http *h)
{
    size_t table = h->n_headers * sizeof(struct header);
    struct head *out = calloc(1, sizeof *out + table + h->text.len + 1);

    ASSERT(h->head_done);
    if (!out)
        return NULL;
    out->bytes = sizeof *out + table + h->text.len + 1;
    out->headers = (struct header *)(out + 1);
    out->n_headers = h->n_headers;
    char *text = (char *)(out->headers + h->n_headers);
    if (h->text.len)
        memcpy(text, h->text.p, h->text.len);
    out->target = (struct str){text + h->target.at, h->target.len};
    for (uint32_t i = 0; i < h->n_headers; i++) {
        const struct raw_header *x = &h->headers[i];
        out->headers[i].name = (struct str){text + x->name.at, x->name.len};
        out->headers[i].value = str_trim((struct str){text + x->value.at, x->value.len});
    }
    fill_framing(h, out);
    buf_free(&h->text);
    free(h->headers);
    h->headers = NULL;
    h->n_headers = h->cap_headers = 0;
    return out;
}

const struct fault *http_fault(const struct http *h)
{
    return &h->fault;
}

bool http_begun(const struct http *h)
{
    return h->begun;
}
