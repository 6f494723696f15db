/* What an upload is, from its head. */
#include "gateway/ingest/spec.h"

#include <stdlib.h>

#include "gateway/media.h"

/* Formats that we know by name and do not take (yet). */
static const char *const other_formats[] = {"jfr", "trie", "tree", "lines", "speedscope"};

static enum err unsupported(const char *format, struct fault *f)
{
    return fault_set(f, E_UNSUPPORTED_TYPE, "format %s is not taken here; send pprof (raw or multipart) or folded text",
                     format);
}

static enum err find_boundary(struct spec *s, struct str type, struct fault *f)
{
    if (!media_param(type, STR("boundary"), s->boundary, BOUNDARY_MAX, &s->upload.boundary))
        return fault_set(f, E_BAD_REQUEST, "Content-Type: boundary is longer than %d bytes", BOUNDARY_MAX);
    if (s->upload.boundary.len == 0)
        return fault_set(f, E_BAD_REQUEST, "Content-Type: multipart without a boundary");
    s->upload.kind = UPLOAD_MULTIPART;
    return E_OK;
}

/* protocol.md 1.4, in its order; multipart with format=pprof is unwrapped. */
static enum err ingest_kind(struct spec *s, struct str format, struct str type, struct fault *f)
{
    for (size_t i = 0; i < COUNTOF(other_formats); i++)
        if (str_eq(format, str_of(other_formats[i])))
            return unsupported(other_formats[i], f);
    if (media_is(type, STR("binary/octet-stream+trie")))
        return unsupported("trie", f);
    if (media_is(type, STR("binary/octet-stream+tree")))
        return unsupported("tree", f);
    if (media_is(type, STR("multipart/form-data")))
        return find_boundary(s, type, f);
    if (str_eq(format, STR("pprof"))) {
        s->upload.kind = UPLOAD_PPROF;
        return E_OK;
    }
    if (format.len == 0 && media_is(type, STR("application/json")))
        return unsupported("JSON (a V8 cpuprofile or speedscope)", f);
    s->upload.kind = UPLOAD_FOLDED;
    return E_OK;
}

static enum err push_kind(struct spec *s, const struct head *h, struct str type, struct fault *f)
{
    struct str version = head_get(h, STR("connect-protocol-version"));
    struct str base = media_type(type), charset;
    char text[16];

    if (version.len && !str_eq(version, STR("1")))
        return fault_set(f, E_BAD_REQUEST, "Connect-Protocol-Version must be 1");
    if (media_is(type, STR("application/proto")))
        s->upload.kind = UPLOAD_PUSH_PROTO;
    else if (media_is(type, STR("application/json")))
        s->upload.kind = UPLOAD_PUSH_JSON;
    else if (str_starts(base, STR("application/grpc")))
        return fault_set(f, E_UNSUPPORTED_TYPE,
                         "%.*s: gRPC is not served here; use the Connect protocol, application/proto",
                         base.len > 64 ? 64 : (int)base.len, base.p);
    else
        return fault_set(f, E_UNSUPPORTED_TYPE, "Content-Type must be application/proto or application/json");
    s->charset = media_param(type, STR("charset"), text, sizeof text, &charset) && str_eq_nocase(charset, STR("utf-8"));
    return E_OK;
}

static enum err add_coding(enum coding *have, struct str token, struct fault *f)
{
    enum coding c = CODING_IDENTITY;

    if (token.len == 0 || str_eq_nocase(token, STR("identity")))
        return E_OK;
    if (str_eq_nocase(token, STR("gzip")) || str_eq_nocase(token, STR("x-gzip")))
        c = CODING_GZIP;
    else if (str_eq_nocase(token, STR("zstd")))
        c = CODING_ZSTD;
    else
        return fault_set(f, E_UNSUPPORTED_ENCODING, "Content-Encoding %.*s is not taken; gzip and zstd are",
                         token.len > 32 ? 32 : (int)token.len, token.p);
    if (*have != CODING_IDENTITY)
        return fault_set(f, *have == c ? E_BAD_REQUEST : E_UNSUPPORTED_ENCODING, "more than one Content-Encoding");
    *have = c;
    return E_OK;
}

static enum err find_coding(struct spec *s, const struct head *h, struct fault *f)
{
    const struct header *x;
    enum coding c = CODING_IDENTITY;

    for (uint32_t from = 0; (x = head_next(h, STR("content-encoding"), &from));) {
        struct str rest = x->value;
        while (rest.len) {
            const char *comma = memchr(rest.p, ',', rest.len);
            size_t n = comma ? (size_t)(comma - rest.p) : rest.len;
            enum err e = add_coding(&c, str_trim((struct str){rest.p, n}), f);
            if (e != E_OK)
                return e;
            rest.p += n + (comma != NULL);
            rest.len -= n + (comma != NULL);
        }
    }
    s->upload.coding = c;
    return E_OK;
}

static enum err ingest_params(struct spec *s, const struct request *r, struct fault *f)
{
    struct ingest_params *p = &s->upload.params;
    struct str format;
    const struct {
        const char *name;
        struct str *value;
    } wanted[] = {{"name", &p->name},   {"from", &p->from}, {"until", &p->until}, {"sampleRate", &p->sample_rate},
                  {"spyName", &p->spy}, {"format", &format}};

    s->params.p = malloc(r->target.query.len + 1);
    if (!s->params.p)
        return fault_set(f, E_NO_MEMORY, NULL);
    s->params.cap = r->target.query.len + 1;
    for (size_t i = 0; i < COUNTOF(wanted); i++) {
        enum err e = target_param(&r->target, wanted[i].name, &s->params, wanted[i].value, f);
        if (e != E_OK)
            return e;
    }
    return ingest_kind(s, format, head_get(r->head, STR("content-type")), f);
}

enum err spec_make(struct spec *s, const struct request *r, struct fault *f)
{
    enum err e;

    *s = (struct spec){.upload = {.project = str_of(r->access.project),
                                  .now_ns = r->arrival_ns,
                                  .window_past_ns = r->app->conf->window_past_ns,
                                  .window_future_ns = r->app->conf->window_future_ns,
                                  .keep_originals = r->app->conf->originals_max_bytes > 0,
                                  .limits = &r->limits,
                                  .key = &r->app->hash_key}};
    e = find_coding(s, r->head, f);
    if (e != E_OK)
        return e;
    if (r->routed.route == ROUTE_INGEST)
        e = ingest_params(s, r, f);
    else
        e = push_kind(s, r->head, head_get(r->head, STR("content-type")), f);
    s->known = e == E_OK;
    return e;
}

void spec_free(struct spec *s)
{
    buf_free(&s->params);
}
