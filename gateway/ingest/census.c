/* A list of projects, each with two sets of ids. Projects come from keys, so they are few. */
#include "gateway/ingest/census.h"

#include <stdlib.h>

#include "codecs/hash.h"

struct tract {
    struct tract *next;
    struct idset *services, *series;
    size_t name_len;
    char name[];
};

struct census {
    struct hash_key key;
    int64_t day;
    struct tract *first;
};

struct census *census_new(void)
{
    struct census *c = calloc(1, sizeof *c);

    if (c)
        hash_key_random(&c->key);
    return c;
}

static void forget_all(struct census *c)
{
    for (struct tract *t = c->first, *next; t; t = next) {
        next = t->next;
        idset_free(t->services);
        idset_free(t->series);
        free(t);
    }
    c->first = NULL;
}

void census_free(struct census *c)
{
    if (c)
        forget_all(c);
    free(c);
}

static struct tract *find(struct census *c, struct str project)
{
    struct tract *t = c->first;

    while (t && !str_eq((struct str){t->name, t->name_len}, project))
        t = t->next;
    if (t || !(t = malloc(sizeof *t + project.len)))
        return t;
    *t = (struct tract){.services = idset_new(), .series = idset_new(), .name_len = project.len};
    if (!t->services || !t->series) {
        idset_free(t->services);
        idset_free(t->series);
        free(t);
        return NULL;
    }
    memcpy(t->name, project.p, project.len);
    t->next = c->first;
    c->first = t;
    return t;
}

static bool full(const struct idset *s, uint64_t id, uint32_t most)
{
    return most && !idset_has(s, id) && idset_count(s) >= most;
}

enum err census_take(struct census *c, const struct record *r, struct census_limits l, int64_t now_ns, struct fault *f)
{
    const struct series *s = &r->series;
    int64_t day = now_ns / (86400 * INT64_C(1000000000));
    struct tract *t;

    if (!l.services && !l.series)
        return E_OK;
    if (day != c->day)
        forget_all(c);
    c->day = day;
    t = find(c, s->project);
    if (!t)
        return E_OK;
    uint64_t service = hash64(&c->key, s->service.p, s->service.len);
    if (full(t->services, service, l.services))
        return fault_set(f, E_TOO_MANY_SERVICES,
                         "service \"%.*s\" is new, and the project has sent %zu today (limits.services %u)",
                         (int)(s->service.len < 80 ? s->service.len : 80), s->service.p, idset_count(t->services),
                         (unsigned)l.services);
    if (full(t->series, r->series_id, l.series))
        return fault_set(f, E_TOO_MANY_SERIES,
                         "these labels are new, and the project has sent %zu series today (limits.series %u)",
                         idset_count(t->series), (unsigned)l.series);
    bool counted = idset_add(t->services, service) && idset_add(t->series, r->series_id);
    (void)counted;
    return E_OK;
}

size_t census_bytes(const struct census *c)
{
    size_t n = sizeof *c;

    for (const struct tract *t = c->first; t; t = t->next)
        n += sizeof *t + t->name_len + idset_bytes(t->services) + idset_bytes(t->series);
    return n;
}
