/* A record in memory of its own: everything small in one piece, the body in another, symbols apart. */
#include "codecs/record.h"

#include <stdlib.h>

static size_t strings_bytes(const struct record *r)
{
    const struct series *s = &r->series;
    size_t n = s->project.len + s->service.len + s->name.len + s->spy.len + r->format.len + r->trace_id.len;

    for (uint32_t i = 0; i < s->n_labels; i++)
        n += s->labels[i].name.len + s->labels[i].value.len;
    for (uint32_t i = 0; i < r->n_types; i++)
        n += r->types[i].type.len + r->types[i].unit.len + r->types[i].id.len;
    return n;
}

static struct str keep(char **at, struct str s)
{
    struct str kept = {*at, s.len};

    if (s.len)
        memcpy(*at, s.p, s.len);
    *at += s.len;
    return kept;
}

static void keep_series(struct series *s, const struct label *labels, char **at)
{
    s->project = keep(at, s->project);
    s->service = keep(at, s->service);
    s->name = keep(at, s->name);
    s->spy = keep(at, s->spy);
    for (uint32_t i = 0; i < s->n_labels; i++)
        s->labels[i] = (struct label){keep(at, labels[i].name), keep(at, labels[i].value)};
}

static void keep_types(struct record *r, const struct sample_type *types, char **at)
{
    for (uint32_t i = 0; i < r->n_types; i++) {
        r->types[i] = types[i];
        r->types[i].type = keep(at, types[i].type);
        r->types[i].unit = keep(at, types[i].unit);
        r->types[i].id = keep(at, types[i].id);
    }
}

static bool keep_body(struct record *r, struct str body)
{
    char *p = body.len ? malloc(body.len) : NULL;

    r->body = (struct str){p, p ? body.len : 0};
    if (p)
        memcpy(p, body.p, body.len);
    return p || body.len == 0;
}

struct record *record_copy(const struct record *from)
{
    size_t labels = sizeof(struct label) * from->series.n_labels, types = sizeof(struct sample_type) * from->n_types;
    size_t bytes = sizeof *from + labels + types + strings_bytes(from) + from->original.len;
    struct record *r = malloc(bytes);

    if (!r)
        return NULL;
    char *at = (char *)(r + 1);
    *r = *from;
    r->symbols = NULL;
    r->bytes = bytes + from->body.len;
    r->series.labels = (struct label *)(void *)at;
    r->types = (struct sample_type *)(void *)(at + labels);
    at += labels + types;
    keep_series(&r->series, from->series.labels, &at);
    keep_types(r, from->types, &at);
    r->format = keep(&at, from->format);
    r->trace_id = keep(&at, from->trace_id);
    r->original = keep(&at, from->original);
    if (keep_body(r, from->body))
        return r;
    free(r);
    return NULL;
}
