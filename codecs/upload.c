/* One request: its content coding, its container, its payloads; what finishing them does is upload_finish.c's. */
#include "codecs/upload_parts.h"

#include <stdlib.h>

#include "codecs/name.h"

const char *const upload_kind_names[UPLOAD_KINDS] = {"pprof", "multipart", "folded", "push-proto", "push-json"};

static bool is_push(const struct upload *u)
{
    return u->in.spec->kind == UPLOAD_PUSH_PROTO || u->in.spec->kind == UPLOAD_PUSH_JSON;
}

/* folded: a known last part of the name is its type, and not of the service's name. */
static struct str service_of(struct upload *u, struct str app)
{
    const char *dot = memrchr(app.p, '.', app.len);

    u->suffix = suffix_find(STR("cpu"));
    if (u->in.spec->kind != UPLOAD_FOLDED || !dot || dot == app.p)
        return app;
    const struct suffix *s = suffix_find((struct str){dot + 1, app.len - (size_t)(dot + 1 - app.p)});
    if (!s)
        return app;
    u->suffix = s;
    return str_trim((struct str){app.p, (size_t)(dot - app.p)});
}

static enum err bind_name(struct upload *u, struct fault *f)
{
    struct name n;
    bool cumulative;

    if (name_parse(&n, u->in.spec->params.name, u->in.arena, f) != E_OK)
        return f->err;
    struct series_labels labels = {n.labels, n.n_labels, service_of(u, n.app), u->in.spec->params.spy};
    if (labels.app.len == 0)
        labels.app = n.app;
    enum err e = series_bind(&u->series, &labels, u->in.limits, u->in.arena, &cumulative, f);
    u->series.name = (struct str){"", 0}; /* here it names no series; protocol.md 1.6 does */
    u->cumulative = cumulative;
    return e;
}

static bool container_new(struct upload *u)
{
    switch (u->in.spec->kind) {
    case UPLOAD_PPROF:
        return (u->payload = payload_new(&u->in, PAYLOAD_PPROF, true)) != NULL;
    case UPLOAD_FOLDED:
        return (u->payload = payload_new(&u->in, PAYLOAD_FOLDED, true)) != NULL;
    case UPLOAD_MULTIPART:
        return (u->multipart = multipart_new(&u->in, u->in.spec->boundary)) != NULL;
    default:
        u->push = push_new(&u->in);
        if (!u->push)
            return false;
        if (u->in.spec->kind == UPLOAD_PUSH_PROTO)
            return (u->proto = push_proto_new(u->push)) != NULL;
        return (u->json = push_json_new(u->push)) != NULL;
    }
}

static bool begin(struct upload *u)
{
    const struct upload_spec *s = u->in.spec;

    if (!is_push(u) && bind_name(u, &u->in.fault) != E_OK)
        return false;
    if (s->coding != CODING_IDENTITY &&
        !(u->coding = layer_new(&u->in, s->coding,
                                s->coding == CODING_GZIP ? "Content-Encoding gzip" : "Content-Encoding zstd")))
        return false;
    return container_new(u);
}

struct upload *upload_new(const struct upload_spec *spec, struct fault *f)
{
    struct upload *u = calloc(1, sizeof *u);

    if (!u) {
        (void)fault_set(f, E_NO_MEMORY, NULL);
        return NULL;
    }
    u->in.spec = spec;
    u->in.limits = spec->limits;
    u->in.arena = arena_new(spec->limits->decoded);
    if (!u->in.arena)
        (void)fault_set(&u->in.fault, E_NO_MEMORY, NULL);
    else if (begin(u))
        return u;
    *f = u->in.fault;
    upload_free(u);
    return NULL;
}

static bool open_multipart(struct upload *u, struct str line)
{
    struct str boundary = {line.p + 2, line.len - 2};

    while (boundary.len && (boundary.p[boundary.len - 1] == ' ' || boundary.p[boundary.len - 1] == '\t'))
        boundary.len--;
    u->multipart = multipart_new(&u->in, boundary);
    return u->multipart != NULL;
}

/* Whether a body without a multipart type is one all the same: it begins with a line "--boundary". No pprof begins with
 * "--". */
static enum step sniff(struct upload *u, struct str *in, uint32_t *budget)
{
    while (in->len && !u->sniffed) {
        char c = *in->p++;
        in->len--;
        budget_take(budget, 1);
        u->line[u->n_line++] = c;
        bool dashes = u->line[0] == '-' && (u->n_line < 2 || u->line[1] == '-');
        u->sniffed = !dashes || u->n_line == sizeof u->line || c == '\n';
        if (u->sniffed && dashes && u->n_line > 4 && c == '\n' && u->line[u->n_line - 2] == '\r' &&
            !open_multipart(u, (struct str){u->line, u->n_line - 2}))
            return STEP_FAIL;
    }
    if (u->sniffed)
        u->replay = (struct str){u->line, u->n_line};
    return STEP_MORE;
}

static enum step inner_feed(struct upload *u, struct str *in, uint32_t *budget)
{
    if (u->multipart)
        return multipart_feed(u->multipart, in, budget);
    if (u->payload)
        return payload_feed(u->payload, in, budget);
    return u->proto ? push_proto_feed(u->proto, in, budget) : push_json_feed(u->json, in, budget);
}

static enum step container_feed(void *ctx, struct str *in, uint32_t *budget)
{
    struct upload *u = ctx;

    if (u->in.spec->kind == UPLOAD_PPROF && !u->sniffed) {
        enum step s = sniff(u, in, budget);
        if (s != STEP_MORE || !u->sniffed)
            return s;
    }
    if (u->replay.len) {
        enum step s = inner_feed(u, &u->replay, budget);
        if (s != STEP_MORE)
            return s;
    }
    return in->len ? inner_feed(u, in, budget) : STEP_MORE;
}

static enum step container_end(struct upload *u, uint32_t *budget)
{
    if (u->in.spec->kind == UPLOAD_PPROF && !u->sniffed) {
        u->sniffed = true;
        u->replay = (struct str){u->line, u->n_line};
    }
    if (u->replay.len) {
        enum step s = inner_feed(u, &u->replay, budget);
        if (s != STEP_MORE)
            return s;
    }
    if (u->multipart)
        return multipart_end(u->multipart, budget);
    if (u->payload)
        return payload_end(u->payload, budget);
    return u->proto ? push_proto_end(u->proto, budget) : push_json_end(u->json, budget);
}

/* A relay may drop the header of a body that is gzip'd as a whole. Its first byte begins no PushRequest and no
 * multipart body; raw payloads are sniffed further in. */
static bool sniff_coding(struct upload *u, struct str in)
{
    if (u->wire || u->coding || u->payload || !in.len || in.p[0] != 0x1f)
        return true;
    u->coding = layer_new(&u->in, CODING_GZIP, "gzip of the whole body");
    return u->coding != NULL;
}

enum step upload_feed(struct upload *u, struct str *in, uint32_t *budget)
{
    size_t before = in->len;

    if (u->in.fault.err != E_OK)
        return STEP_FAIL;
    if (*budget == 0)
        return STEP_AGAIN;
    if (!sniff_coding(u, *in))
        return STEP_FAIL;
    enum step s =
        u->coding ? layer_feed(u->coding, in, budget, container_feed, u, &u->in.fault) : container_feed(u, in, budget);
    u->wire += before - in->len;
    if (s == STEP_MORE && u->wire > u->in.limits->body) {
        (void)fault_set(&u->in.fault, E_BODY_TOO_LARGE,
                        "request body is larger than limits.body (%zu bytes): %zu so far", u->in.limits->body,
                        (size_t)u->wire);
        return STEP_FAIL;
    }
    return s == STEP_MORE && in->len ? STEP_AGAIN : s;
}

enum step upload_end(struct upload *u, uint32_t *budget)
{
    enum step s = STEP_MORE;

    if (u->in.fault.err != E_OK)
        return STEP_FAIL;
    if (*budget == 0)
        return STEP_AGAIN;
    if (u->wire == 0 && is_push(u)) {
        (void)fault_set(&u->in.fault, E_NO_PROFILES, NULL);
        return STEP_FAIL;
    }
    if (u->wire == 0)
        return STEP_MORE;
    if (u->coding)
        s = layer_end(u->coding, budget, container_feed, u, &u->in.fault);
    if (s == STEP_MORE)
        s = container_end(u, budget);
    if (s == STEP_MORE && is_push(u) && u->push->samples.n == 0) {
        (void)fault_set(&u->in.fault, E_NO_PROFILES, NULL);
        s = STEP_FAIL;
    }
    if (s == STEP_MORE) {
        layer_free(u->coding, &u->in);
        u->coding = NULL;
        layer_drop_spare(&u->in);
    }
    return s;
}

size_t upload_memory(const struct upload *u)
{
    return sizeof *u + arena_used(u->in.arena) + u->in.malloced + u->record_bytes;
}

const struct fault *upload_fault(const struct upload *u)
{
    return &u->in.fault;
}

struct str upload_service(const struct upload *u)
{
    return u->series.service;
}

uint64_t upload_inflated(const struct upload *u)
{
    return u->in.inflated;
}

void upload_free(struct upload *u)
{
    if (!u)
        return;
    for (uint32_t i = 0; i < u->n_outcomes; i++)
        record_free(u->outcomes[i].record);
    multipart_drop(u->multipart);
    payload_drop(u->payload);
    push_drop(u->push);
    layer_free(u->coding, &u->in);
    layer_drop_spare(&u->in);
    arena_free(u->in.arena);
    free(u);
}
