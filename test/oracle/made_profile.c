/* Profiles made from a seed; see the header. Stacks are paths down a random tree, as real ones are. */
#include "test/oracle/made_profile.h"

#include <stdio.h>
#include <stdlib.h>

struct maker {
    struct arena *a;
    const struct recipe *r;
    struct profile *p;
    uint64_t state;
};

static uint64_t next(struct maker *m)
{
    uint64_t z = (m->state += 0x9e3779b97f4a7c15u);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint32_t below(struct maker *m, uint32_t n)
{
    return (uint32_t)(next(m) % n);
}

#define MAKE(m, type, n) ((type *)made((m), sizeof(type), _Alignof(type), (n) + (size_t)1))
static void *made(struct maker *m, size_t size, size_t align, size_t n)
{
    void *p = arena_alloc(m->a, size, align, n);

    ASSERT(p);
    return p;
}

static struct str text(struct maker *m, const char *format, uint32_t a, uint32_t b)
{
    char t[160];
    struct str s;
    /* the formats are those below: two numbers each */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    int n = snprintf(t, sizeof t, format, a, b);
#pragma GCC diagnostic pop

    ASSERT(n > 0 && arena_str(m->a, (struct str){t, (size_t)n}, &s));
    return s;
}

static void make_series(struct maker *m)
{
    struct series *s = &m->p->series;

    *s = (struct series){STR("shop"), STR("checkout"), STR("process_cpu"), STR("gospy"), MAKE(m, struct label, 3), 3};
    s->labels[0] = (struct label){STR("instance"), text(m, "10.0.%u.%u:8080", below(m, 256), below(m, 256))};
    s->labels[1] = (struct label){STR("region"), STR("eu\xc3\xa9")};
    s->labels[2] = (struct label){STR("service_name"), STR("checkout")};
}

static void make_types(struct maker *m)
{
    struct profile *p = m->p;

    p->n_types = m->r->types;
    p->types = MAKE(m, struct sample_type, p->n_types);
    p->primary = p->n_types - 1;
    for (uint32_t t = 0; t < p->n_types; t++)
        p->types[t] = (struct sample_type){text(m, "type%u_%u", t, 0), STR("nanoseconds"),
                                           text(m, "process_cpu:type%u_%u:nanoseconds:cpu:nanoseconds", t, 0),
                                           t % 2 ? AGG_AVERAGE : AGG_SUM, 0};
}

static void make_symbols(struct maker *m)
{
    struct profile *p = m->p;

    p->n_mappings = 3;
    p->mappings = MAKE(m, struct mapping, 3);
    for (uint32_t i = 0; i < 3; i++)
        p->mappings[i] = (struct mapping){text(m, "/usr/lib/lib%u.so.%u", i, 6), text(m, "build%u%u", i, 77),
                                          0x400000u * (i + 1), 0x400000u * (i + 2), 0x1000};
    p->n_functions = m->r->functions;
    p->functions = MAKE(m, struct function, p->n_functions);
    for (uint32_t i = 0; i < p->n_functions; i++) {
        uint32_t n = i + m->r->shift;
        struct str name = text(m, "github.com/acme/shop/internal/package%u.(*Type).Method%u", n / 16, n);
        p->functions[i] = (struct function){
            name, n % 3 ? name : text(m, "_ZN%u%uE", n, n),
            n % 5 != 4 || n % 2 ? text(m, "/go/src/package%u/file%u.go", n / 16, n / 8) : STR(""), n * 10};
    }
}

static void make_frames(struct maker *m)
{
    struct profile *p = m->p;

    p->n_frames = p->n_functions * 2;
    p->frames = MAKE(m, struct frame, p->n_frames);
    for (uint32_t i = 0; i < p->n_frames; i++) {
        uint32_t function = i / 2, n = function + m->r->shift;
        p->frames[i] = (struct frame){function, n % 5 == 4 ? PROFILE_NONE : n % 3, n * 10 + i % 2, i % 2 * 4, 0, 0};
        if (m->r->plain)
            continue;
        if (n % 11 == 10)
            p->frames[i] = (struct frame){PROFILE_NONE, n % 3, 0, 0, 0x2000u + n * 16 + i % 2, 0};
        else if (n % 6 == 5)
            p->frames[i].flags = FRAME_INLINED;
        else if (n % 13 == 12)
            p->frames[i].flags = FRAME_FOLDED;
    }
}

/* A frame one level below another: each has few callees, so that stacks share their roots. */
static uint32_t callee(struct maker *m, uint32_t frame, uint32_t depth)
{
    return (uint32_t)((frame * UINT64_C(2654435761) + depth * 97 + below(m, 3) * 7919) % m->p->n_frames);
}

/* Stack 0 is empty; the last frames, as many for each, are the stack's number, so that no two are equal. */
static void make_stacks(struct maker *m)
{
    struct profile *p = m->p;
    uint32_t end = 0, max = m->r->depth + 32;

    p->n_stacks = m->r->stacks;
    p->stack_at = MAKE(m, uint32_t, p->n_stacks);
    p->stack_frames = MAKE(m, uint32_t, (size_t)p->n_stacks * max);
    for (uint32_t s = 0; s < p->n_stacks; s++) {
        uint32_t n = s ? 1 + below(m, m->r->depth) : 0, frame = 0;
        for (uint32_t j = 0; j < n; j++)
            p->stack_frames[end++] = frame = callee(m, frame, j);
        for (uint64_t scale = 1; s && scale < p->n_stacks; scale *= p->n_frames)
            p->stack_frames[end++] = (uint32_t)(s / scale % p->n_frames);
        p->stack_at[s + 1] = end;
    }
}

static void make_sets(struct maker *m)
{
    struct profile *p = m->p;
    uint32_t end = 0;

    p->n_sets = m->r->sets ? m->r->sets : 1;
    p->set_at = MAKE(m, uint32_t, p->n_sets);
    p->labels = MAKE(m, struct sample_label, (size_t)p->n_sets * 2);
    for (uint32_t i = 1; i < p->n_sets; i++) {
        p->set_at[i] = end;
        if (i % 2)
            p->labels[end++] = (struct sample_label){STR("bytes"), STR(""), STR("kb"), (int64_t)i * 16, true};
        p->labels[end++] = (struct sample_label){STR("route"), text(m, "/cart/%u/%u", i, i), STR(""), 0, false};
    }
    p->set_at[p->n_sets] = end;
}

static void make_samples(struct maker *m)
{
    struct profile *p = m->p;
    uint32_t pairs = p->n_stacks * p->n_sets;
    bool over = false;

    p->n_samples = m->r->samples < pairs ? m->r->samples : pairs;
    p->sample_stack = MAKE(m, uint32_t, p->n_samples);
    p->sample_set = MAKE(m, uint32_t, p->n_samples);
    p->values = MAKE(m, int64_t *, p->n_types);
    for (uint32_t i = 0; i < p->n_samples; i++) {
        p->sample_stack[i] = i % p->n_stacks;
        p->sample_set[i] = i / p->n_stacks;
    }
    for (uint32_t t = 0; t < p->n_types; t++) {
        p->values[t] = MAKE(m, int64_t, p->n_samples);
        for (uint32_t i = 0; i < p->n_samples; i++) {
            p->values[t][i] = t % 2 ? (int64_t)(next(m) >> 40) : (int64_t)below(m, 50) * 10000000;
            if (t == 0 && p->values[t][i] == 0)
                p->values[t][i] = 10000000;
            p->types[t].total = add_sat(p->types[t].total, p->values[t][i], &over);
        }
    }
}

struct profile *made_profile(struct arena *a, const struct recipe *r)
{
    struct maker m = {.a = a, .r = r, .state = r->seed};

    m.p = MAKE(&m, struct profile, 0);
    *m.p = (struct profile){.time_ns = 1764547200000000000 + (int64_t)(r->seed % 1000000),
                            .duration_ns = 15000000000,
                            .period_type = STR("cpu"),
                            .period_unit = STR("nanoseconds"),
                            .period = 10000000,
                            .drops = {1, 2, 3, 4, false},
                            .comment = STR("made\nfor tests")};
    make_series(&m);
    make_types(&m);
    make_symbols(&m);
    make_frames(&m);
    make_stacks(&m);
    make_sets(&m);
    make_samples(&m);
    return m.p;
}
