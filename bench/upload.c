#include "bench/upload.h"

#include <libdeflate.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_BYTES = 11, STORED_BYTES = 5 };

static void put32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> 8 * i);
}

static uint32_t get32(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

bool body_load(struct body *b, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    uint8_t *data = NULL;
    if (fseek(f, 0, SEEK_END) == 0) {
        long size = ftell(f);
        rewind(f);
        data = size > 8 ? malloc((size_t)size) : NULL;
        b->len = (size_t)size;
        if (data && fread(data, 1, b->len, f) != b->len) {
            free(data);
            data = NULL;
        }
    }
    fclose(f);
    if (!data)
        return false;
    b->data = data;
    b->kind = ends_with(path, ".open") ? BODY_OPEN : data[0] == 0x1f && data[1] == 0x8b ? BODY_GZIP : BODY_RAW;
    if (b->kind == BODY_OPEN) {
        b->len -= 8;
        b->crc = get32(data + b->len);
        b->isize = get32(data + b->len + 4);
    }
    return true;
}

/* Field 9 as a varint of always ten bytes, through continuation bits that add nothing: so every tail is equally long.
 */
static void time_field(uint8_t out[FIELD_BYTES], int64_t time_ns)
{
    uint64_t v = (uint64_t)time_ns;
    out[0] = 9 << 3;
    for (int i = 1; i < FIELD_BYTES - 1; i++, v >>= 7)
        out[i] = (uint8_t)(v & 127) | 128;
    out[FIELD_BYTES - 1] = (uint8_t)v;
}

size_t body_tail(const struct body *b, int64_t time_ns, uint8_t *out)
{
    static const uint8_t header[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
    static const uint8_t stored[STORED_BYTES] = {1, FIELD_BYTES, 0, 255 - FIELD_BYTES, 255};
    uint8_t field[FIELD_BYTES];
    size_t n = 0;
    time_field(field, time_ns);
    if (b->kind == BODY_RAW) {
        memcpy(out, field, sizeof field);
        return sizeof field;
    }
    if (b->kind == BODY_GZIP) {
        memcpy(out, header, sizeof header);
        n = sizeof header;
    }
    memcpy(out + n, stored, sizeof stored);
    memcpy(out + n + sizeof stored, field, sizeof field);
    n += sizeof stored + sizeof field;
    put32(out + n, libdeflate_crc32(b->kind == BODY_OPEN ? b->crc : 0, field, sizeof field));
    put32(out + n + 4, (b->kind == BODY_OPEN ? b->isize : 0) + FIELD_BYTES);
    return n + 8;
}

static size_t put_varint(uint8_t *out, uint64_t v)
{
    size_t n = 0;
    for (; v > 127; v >>= 7)
        out[n++] = (uint8_t)(v & 127) | 128;
    out[n++] = (uint8_t)v;
    return n;
}

static size_t varint_len(uint64_t v)
{
    size_t n = 1;
    while (v >>= 7)
        n++;
    return n;
}

static size_t put_block(uint8_t *out, unsigned field, const void *data, size_t len)
{
    size_t n = put_varint(out, field << 3 | 2);
    n += put_varint(out + n, len);
    if (data && len)
        memcpy(out + n, data, len);
    return n + (data ? len : 0);
}

static size_t put_label(uint8_t *out, const char *name, const char *value)
{
    uint8_t pair[128];
    size_t n = put_block(pair, 1, name, strlen(name));
    n += put_block(pair + n, 2, value, strlen(value));
    return put_block(out, 1, pair, n);
}

/* A PushRequest of one series with one sample: all before the profile into pre, the sample's ID behind it into post. */
static void push_frame(struct upload *u, const struct upload_plan *p, uint64_t seq)
{
    unsigned s = (unsigned)(seq % p->series);
    char text[40];
    uint8_t labels[UPLOAD_PRE_MAX / 2];
    size_t n = put_label(labels, "__name__", "process_cpu");
    snprintf(text, sizeof text, "host-%u", s / 4);
    n += put_label(labels + n, "host", text);
    snprintf(text, sizeof text, "pod-%u", s);
    n += put_label(labels + n, "pod", text);
    snprintf(text, sizeof text, "%.32s", p->app);
    n += put_label(labels + n, "service_name", text);

    /* made-up but distinct: RawSample.ID is an identity of its own */
    snprintf(text, sizeof text, "%08x-0000-4000-8000-%012llx", (unsigned)random(), (unsigned long long)seq);
    u->post_len = put_block(u->post, 2, text, strlen(text));

    size_t profile = u->body->len + u->tail_len;
    size_t sample = 1 + varint_len(profile) + profile + u->post_len;
    size_t series = n + 1 + varint_len(sample) + sample;
    u->pre_len = put_block(u->pre, 1, NULL, series);
    memcpy(u->pre + u->pre_len, labels, n);
    u->pre_len += n;
    u->pre_len += put_block(u->pre + u->pre_len, 2, NULL, sample);
    u->pre_len += put_block(u->pre + u->pre_len, 1, NULL, profile);
}

static void head_add(struct upload *u, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void head_add(struct upload *u, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(u->head + u->head_len, sizeof u->head - u->head_len, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof u->head - u->head_len) {
        fprintf(stderr, "request head over %d bytes\n", UPLOAD_HEAD_MAX);
        exit(2);
    }
    u->head_len += (size_t)n;
}

static void head_target(struct upload *u, const struct upload_plan *p, uint64_t seq, int64_t time_ns)
{
    unsigned s = (unsigned)(seq % p->series);
    switch (p->kind) {
    case UPLOAD_INGEST:
        head_add(
            u, "POST /ingest?name=%s%%7Bhost%%3Dhost-%u%%2Cpod%%3Dpod-%u%%7D&format=pprof&spyName=gospy&sampleRate=100",
            p->app, s / 4, s);
        head_add(u, "&from=%lld&until=%lld HTTP/1.1\r\nContent-Type: application/octet-stream\r\n", (long long)time_ns,
                 (long long)time_ns + 15000000000LL);
        break;
    case UPLOAD_PUSH:
        head_add(u, "POST /push.v1.PusherService/Push HTTP/1.1\r\nContent-Type: application/proto\r\n"
                    "Connect-Protocol-Version: 1\r\n");
        break;
    case UPLOAD_SINK:
        head_add(u, "POST %s HTTP/1.1\r\nContent-Type: application/octet-stream\r\n", p->path);
        break;
    case UPLOAD_GET:
        head_add(u, "GET %s HTTP/1.1\r\n", p->path);
        break;
    }
}

void upload_make(struct upload *u, const struct upload_plan *p, const struct body *body, uint64_t seq, int64_t time_ns)
{
    u->body = body;
    u->head_len = u->pre_len = u->post_len = u->tail_len = 0;
    if (body)
        u->tail_len = body_tail(body, time_ns, u->tail);
    if (p->kind == UPLOAD_PUSH)
        push_frame(u, p, seq);
    head_target(u, p, seq, time_ns);
    head_add(u, "Host: %s\r\nUser-Agent: flamegate-bench\r\n", p->host);
    if (p->header)
        head_add(u, "%s\r\n", p->header);
    if (body)
        head_add(u, "Content-Length: %zu\r\n", u->pre_len + body->len + u->tail_len + u->post_len);
    head_add(u, "\r\n");
}
