/*
 * A store in memory for tests of queries: profiles are written down as folded stacks, sealed by the real record code,
 * and handed to the reader's contract of backends/backend.h. Only what the sqlite store does on disk is missing.
 */
#ifndef TEST_UNIT_GATEWAY_QUERY_FAKE_H
#define TEST_UNIT_GATEWAY_QUERY_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backends/backend.h"
#include "gateway/query/query.h"

enum { FAKE_PROFILES = 16384, FAKE_STACKS = 64, FAKE_DEPTH = 40 };

/* One sample: "a@file.py:3;b" root first, its label "key=value" or "", values of each type. */
struct fake_sample {
    const char *stack, *label;
    int64_t values[4];
};
struct fake_profile {
    const char *service, *labels; /* "env=lab,pod=web-1" */
    const char *types;            /* "cpu/nanoseconds,samples/count" under `name` */
    const char *name, *spy;
    int64_t time_ns, duration_ns;
    struct fake_sample samples[12];
};
struct fake_store {
    struct record *records[FAKE_PROFILES];
    struct buf blocks[FAKE_PROFILES]; /* of symbols */
    uint32_t n, order[FAKE_PROFILES]; /* by time */
    struct hash_key key;
    enum original_state original;
};

static const char *fake_cut(char **rest, const char *stops)
{
    char *s = *rest;
    if (!s || !*s)
        return NULL;
    size_t n = strcspn(s, stops);
    *rest = s[n] ? s + n + 1 : s + n;
    s[n] = 0;
    return s;
}

static uint32_t fake_function(struct profile *p, const char *name, const char *file, int64_t line)
{
    for (uint32_t i = 0; i < p->n_functions; i++)
        if (str_eq(p->functions[i].name, str_of(name)) && str_eq(p->functions[i].file, str_of(file)) &&
            p->functions[i].start_line == line)
            return i;
    p->functions[p->n_functions] = (struct function){.name = str_of(name), .file = str_of(file), .start_line = line};
    return p->n_functions++;
}

/* "name@file:line", "0x1f@binary" for a bare address, "name@file!" folded. */
static uint32_t fake_frame(struct profile *p, char *text)
{
    char *at = strchr(text, '@'), *colon = at ? strrchr(at, ':') : NULL;
    int64_t line = colon && colon[1] >= '0' && colon[1] <= '9' ? strtoll(colon + 1, NULL, 10) : 0;
    struct frame f = {.function = PROFILE_NONE, .mapping = PROFILE_NONE};
    if (colon && line)
        *colon = 0;
    if (at)
        *at++ = 0;
    if (at && at[0] && at[strlen(at) - 1] == '!') {
        at[strlen(at) - 1] = 0;
        f.flags = FRAME_FOLDED;
    }
    if (strncmp(text, "0x", 2) == 0) {
        f.address = strtoull(text, NULL, 16);
        if (p->n_mappings == 0)
            p->mappings[p->n_mappings++] = (struct mapping){.file = str_of(at ? at : "bin"), .build_id = STR("b1d")};
        f.mapping = 0;
    } else {
        f.function = fake_function(p, text, at ? at : "", line);
        f.line = line;
    }
    for (uint32_t i = 0; i < p->n_frames; i++) {
        const struct frame *g = &p->frames[i];
        if (g->function == f.function && g->address == f.address && g->flags == f.flags && g->line == f.line)
            return i;
    }
    p->frames[p->n_frames] = f;
    return p->n_frames++;
}

static uint32_t fake_stack(struct profile *p, struct arena *a, const char *text)
{
    struct str copy;
    const char *frame;
    uint32_t at = p->n_stacks ? p->stack_at[p->n_stacks] : 0;
    assert_true(arena_str(a, str_of(text), &copy));
    char *rest = (char *)(uintptr_t)copy.p;
    while ((frame = fake_cut(&rest, ";")))
        p->stack_frames[at++] = fake_frame(p, (char *)(uintptr_t)frame);
    uint32_t from = p->stack_at[p->n_stacks];
    for (uint32_t i = 0; i < p->n_stacks; i++)
        if (p->stack_at[i + 1] - p->stack_at[i] == at - from &&
            memcmp(p->stack_frames + p->stack_at[i], p->stack_frames + from, (at - from) * sizeof(uint32_t)) == 0)
            return i;
    p->stack_at[++p->n_stacks] = at;
    return p->n_stacks - 1;
}

static uint32_t fake_set(struct profile *p, struct arena *a, const char *text)
{
    struct str copy;
    if (!text || !*text)
        return 0;
    assert_true(arena_str(a, str_of(text), &copy));
    char *rest = (char *)(uintptr_t)copy.p;
    const char *key = fake_cut(&rest, "=");
    struct sample_label l = {.key = str_of(key), .value = str_of(rest)};
    for (uint32_t s = 1; s < p->n_sets; s++)
        if (str_eq(p->labels[s - 1].key, l.key) && str_eq(p->labels[s - 1].value, l.value))
            return s;
    uint32_t set = p->n_sets++;
    p->labels[set - 1] = l;
    p->set_at[set + 1] = set;
    return set;
}

static void fake_types(struct profile *p, struct arena *a, const struct fake_profile *d)
{
    struct str copy;
    const char *type;
    assert_true(arena_str(a, str_of(d->types), &copy));
    char *rest = (char *)(uintptr_t)copy.p;
    while ((type = fake_cut(&rest, "/"))) {
        const char *unit = fake_cut(&rest, ",");
        char id[200];
        struct sample_type *t = &p->types[p->n_types++];
        snprintf(id, sizeof(id), "%s:%s:%s:cpu:nanoseconds", d->name, type, unit);
        *t = (struct sample_type){
            .type = str_of(type), .unit = str_of(unit), .aggregation = type_aggregation(str_of(type))};
        assert_true(arena_str(a, str_of(id), &t->id));
    }
}

static void fake_series(struct profile *p, struct arena *a, const struct fake_profile *d)
{
    struct str copy;
    const char *name;
    p->series = (struct series){
        .project = STR("p"), .service = str_of(d->service), .name = str_of(d->name), .spy = str_of(d->spy)};
    p->series.labels = NEW(a, struct label, 32);
    assert_true(arena_str(a, str_of(d->labels), &copy));
    char *rest = (char *)(uintptr_t)copy.p;
    while ((name = fake_cut(&rest, "=")))
        p->series.labels[p->series.n_labels++] = (struct label){str_of(name), str_of(fake_cut(&rest, ","))};
    p->series.labels[p->series.n_labels++] = (struct label){STR("service_name"), str_of(d->service)};
}

static void fake_block(const struct symbols *symbols, struct buf *out)
{
    struct idset *fresh = idset_new();
    assert_non_null(fresh);
    assert_true(symbols_block(&symbols, 1, NULL, fresh, out));
    idset_free(fresh);
}

/* Labels of a description are given in the order of their names, all before "service_name". */
static void fake_add(struct fake_store *s, const struct fake_profile *d)
{
    struct arena *a = arena_new(16 << 20);
    struct profile p = {.time_ns = d->time_ns, .duration_ns = d->duration_ns, .period = 10000000};
    p.period_type = STR("cpu");
    p.period_unit = STR("nanoseconds");
    p.types = NEW(a, struct sample_type, 4);
    p.mappings = NEW(a, struct mapping, 4);
    p.functions = NEW(a, struct function, 512);
    p.frames = NEW(a, struct frame, 512);
    p.stack_at = NEW(a, uint32_t, 64);
    p.stack_frames = NEW(a, uint32_t, 2048);
    p.set_at = NEW(a, uint32_t, 64);
    p.labels = NEW(a, struct sample_label, 64);
    p.n_sets = 1;
    p.sample_stack = NEW(a, uint32_t, 64);
    p.sample_set = NEW(a, uint32_t, 64);
    p.values = NEW(a, int64_t *, 4);
    fake_series(&p, a, d);
    fake_types(&p, a, d);
    for (uint32_t t = 0; t < p.n_types; t++)
        p.values[t] = NEW(a, int64_t, 64);
    for (uint32_t i = 0; i < COUNTOF(d->samples) && d->samples[i].stack; i++) {
        p.sample_stack[i] = fake_stack(&p, a, d->samples[i].stack);
        p.sample_set[i] = fake_set(&p, a, d->samples[i].label);
        for (uint32_t t = 0; t < p.n_types; t++) {
            p.values[t][i] = d->samples[i].values[t];
            p.types[t].total += d->samples[i].values[t];
        }
        p.n_samples++;
    }
    assert_null(profile_check(&p));
    struct record_origin origin = {.format = STR("pprof"),
                                   .content_id = {s->n, 7},
                                   .original = STR("as sent"),
                                   .original_bytes = 7,
                                   .keep_original = true};
    s->records[s->n] = record_seal(&p, &origin, &s->key);
    assert_non_null(s->records[s->n]);
    fake_block(s->records[s->n]->symbols, &s->blocks[s->n]);
    uint32_t at = s->n++;
    for (; at > 0 && s->records[s->order[at - 1]]->time_ns > d->time_ns; at--)
        s->order[at] = s->order[at - 1];
    s->order[at] = s->n - 1;
    arena_free(a);
}

static bool fake_wanted(const struct fake_store *s, const struct selection *sel, uint32_t i)
{
    const struct record *r = s->records[i];
    if (!str_eq(sel->project, r->series.project))
        return false;
    if (sel->profile)
        return sel->profile->boot == 1 && sel->profile->group == i + 1;
    if (sel->service.len && !str_eq(sel->service, r->series.service))
        return false;
    if (r->time_ns < sel->from_ns || r->time_ns >= sel->until_ns)
        return false;
    return !sel->series_match || sel->series_match(sel->ctx, &r->series);
}

static enum err fake_scan(struct sample_store *store, const struct selection *sel, enum scan_what what, scan_row row,
                          void *ctx, struct fault *f)
{
    struct fake_store *s = (struct fake_store *)store;
    (void)f;
    for (uint32_t k = 0; k < s->n; k++) {
        uint32_t i = s->order[what & SCAN_NEWEST_FIRST ? s->n - 1 - k : k];
        const struct record *r = s->records[i];
        if (!fake_wanted(s, sel, i))
            continue;
        struct stored st = {
            .attempt = {1, i + 1, 0},
            .series = &r->series,
            .series_id = r->series_id,
            .time_ns = r->time_ns,
            .duration_ns = r->duration_ns,
            .stored_ns = r->time_ns,
            .types = r->types,
            .n_types = r->n_types,
            .primary = r->primary,
            .n_samples = r->n_samples,
            .n_profiles = 1,
            .class_days = 15,
            .format = r->format,
            .trace_id = r->trace_id,
            .original_bytes = r->original_bytes,
            .body = what & SCAN_BODY ? r->body : (struct str){NULL, 0},
        };
        enum err e = row(ctx, &st);
        if (e)
            return e;
    }
    return E_OK;
}

static enum err fake_symbols(struct sample_store *store, struct str project, struct str service, int32_t first,
                             int32_t last, block_row row, void *ctx, struct fault *f)
{
    struct fake_store *s = (struct fake_store *)store;
    (void)f;
    enum err e = E_OK;
    for (uint32_t i = 0; i < s->n && e == E_OK; i++) {
        const struct record *r = s->records[i];
        int64_t day = r->time_ns / (86400 * INT64_C(1000000000));
        if (str_eq(project, r->series.project) && str_eq(service, r->series.service) && day >= first && day <= last &&
            s->blocks[i].len)
            e = row(ctx, buf_view(&s->blocks[i]));
    }
    return e;
}

static enum err fake_original(struct sample_store *store, struct str project, struct attempt at,
                              enum original_state *state, struct buf *out, struct fault *f)
{
    struct fake_store *s = (struct fake_store *)store;
    (void)f;
    if (!str_eq(project, STR("p")) || at.boot != 1 || at.group == 0 || at.group > s->n)
        return E_NOT_FOUND;
    *state = s->original;
    if (s->original == ORIGINAL_KEPT)
        buf_str(out, s->records[at.group - 1]->original);
    return E_OK;
}

static int64_t fake_raw_since(const struct sample_store *store)
{
    (void)store;
    return INT64_MIN;
}

static const struct sample_reader_ops fake_reader = {fake_scan, fake_symbols, fake_original, fake_raw_since};
static const struct backend fake_backend = {.read = &fake_reader};

static struct fake_store *fake_open(void)
{
    struct fake_store *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    hash_key_derive(&s->key, STR("test"));
    return s;
}

static void fake_close(struct fake_store *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        record_free(s->records[i]);
        buf_free(&s->blocks[i]);
    }
    free(s);
}

/* "path?params" at `now`. */
static void fake_ask_at(struct fake_store *s, const char *target, int64_t now_ns, struct answer *a)
{
    const char *mark = strchr(target, '?');
    struct query q = {
        .path = {target, mark ? (size_t)(mark - target) : strlen(target)},
        .params = str_of(mark ? mark + 1 : ""),
        .project = STR("p"),
        .now_ns = now_ns,
        .backend = &fake_backend,
        .store = (struct sample_store *)s,
        .memory_limit = 256 << 20,
    };
    query_run(&q, a);
}

#endif
