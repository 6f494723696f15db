/* Replies: rendering them, and the shape of errors. */
#include "gateway/reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "gateway/json.h"

static const struct {
    int status;
    const char *text;
} reasons[] = {
    {200, "OK"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {409, "Conflict"},
    {411, "Length Required"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {499, "Client Closed Request"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

const char *reply_reason(int status)
{
    for (size_t i = 0; i < COUNTOF(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].text;
    return "Unknown";
}

void reply_free(struct reply *r)
{
    buf_free(&r->headers);
    buf_free(&r->body);
}

void reply_header(struct reply *r, const char *name, const char *value)
{
    buf_printf(&r->headers, "%s: %s\r\n", name, value);
}

static void companions(struct reply *r, const struct fault *f)
{
    enum err e = f->err;
    char seconds[16];

    snprintf(seconds, sizeof seconds, "%u", f->retry_s ? (unsigned)f->retry_s : 1);
    if (r->status == 429)
        reply_header(r, "Retry-After", seconds);
    if (r->status == 503)
        reply_header(r, "Retry-After", e == E_DRAINING ? "1" : "5");
    if (r->status == 401)
        reply_header(r, "WWW-Authenticate", "Basic realm=\"flamegate\"");
    if (e == E_UNSUPPORTED_TYPE)
        reply_header(r, "Accept-Post",
                     "application/proto, application/json, multipart/form-data, application/octet-stream, text/plain");
    if (e == E_UNSUPPORTED_ENCODING)
        reply_header(r, "Accept-Encoding", "gzip, zstd");
}

void reply_fault(struct reply *r, const struct fault *f)
{
    struct json j = {.out = &r->body};

    r->status = err_status(f->err);
    r->content_type = "application/json";
    companions(r, f);
    json_open(&j, '{');
    json_key(&j, "code");
    json_str(&j, str_of(err_code(f->err)));
    json_key(&j, "message");
    json_str(&j, str_of(f->text[0] ? f->text : err_text(f->err)));
    json_close(&j, '}');
}

void reply_text(struct reply *r, int status, const char *text)
{
    r->status = status;
    r->content_type = "text/plain; charset=utf-8";
    buf_str(&r->body, str_of(text));
}

bool reply_render(const struct reply *r, int64_t now_s, bool close, struct buf *out)
{
    char date[64];
    struct tm tm;
    time_t t = (time_t)now_s;

    gmtime_r(&t, &tm);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    buf_printf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\n", r->status, reply_reason(r->status), date);
    if (r->content_type)
        buf_printf(out, "Content-Type: %s\r\n", r->content_type);
    buf_printf(out, "Content-Length: %zu\r\n", r->body.len);
    buf_str(out, buf_view(&r->headers));
    buf_str(out, close ? STR("Connection: close\r\n\r\n") : STR("\r\n"));
    return !out->failed && !r->body.failed && !r->headers.failed;
}
