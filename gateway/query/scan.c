/* The one place that reads profiles from the store: series are chosen by the selector, and samples where series leave
 * it open. */
#include "gateway/query/scan.h"

#include <stdlib.h>

#include "backends/hours.h"
#include "backends/spans.h"
#include "codecs/instance.h"

struct scanning {
    struct ask *ask;
    const struct scan_spec *spec;
    bool bodies, hours, probing, open;
    bool reaches; /* the selector into the samples of an hour, which will not do */
    uint64_t found;
};

/* By id or by name. */
static bool has_type(const struct sample_type *t, struct str wanted)
{
    return str_eq(t->id, wanted) || str_eq(t->type, wanted);
}

uint64_t scan_samples(const struct seen_profile *p)
{
    uint64_t n = 0;
    if (!p->keep)
        return p->stored->n_samples;
    for (uint32_t i = 0; i < p->view->n_samples; i++)
        n += p->keep[p->view->sample_set[i]];
    return n;
}

int64_t scan_total(const struct seen_profile *p, uint32_t type)
{
    int64_t sum = 0;
    bool over = false;
    if (!p->keep)
        return p->stored->types[type].total;
    for (uint32_t i = 0; i < p->view->n_samples; i++)
        if (p->keep[p->view->sample_set[i]])
            sum = add_sat(sum, p->view->values[type][i], &over);
    return sum;
}

static bool on_series(void *ctx, const struct series *series)
{
    struct scanning *s = ctx;
    return selector_series(s->ask->selector, series) != VERDICT_NO;
}

static bool on_time(void *ctx, int64_t time_ns)
{
    const struct scanning *s = ctx;
    return s->spec->time_match(s->spec->time_ctx, time_ns);
}

/* Whether one of its types is wanted, by `type` and by the selector. */
static bool has_wanted_type(struct scanning *s, const struct stored *p)
{
    struct selector *sel = s->ask->selector;
    for (uint32_t t = 0; t < p->n_types; t++)
        if ((s->spec->type.len == 0 || has_type(&p->types[t], s->spec->type)) &&
            (!sel || selector_type(sel, p->types[t].id)))
            return true;
    return p->n_types == 0 && s->spec->type.len == 0 && (!sel || selector_type(sel, (struct str){NULL, 0}));
}

/* Which label sets count. *any: whether the profile counts at all. */
static bool *keep_sets(struct scanning *s, const struct stored *p, const struct record_view *v, struct arena *a,
                       bool *any)
{
    bool *keep = NEW(a, bool, v->n_sets + 1);
    *any = false;
    for (uint32_t i = 0; keep && i < v->n_sets; i++)
        keep[i] =
            selector_sample(s->ask->selector, p->series, v->labels + v->set_at[i], v->set_at[i + 1] - v->set_at[i]);
    for (uint32_t i = 0; keep && i < v->n_samples; i++)
        *any = *any || keep[v->sample_set[i]];
    if (v->n_samples == 0)
        *any = selector_sample(s->ask->selector, p->series, NULL, 0);
    return keep;
}

/* A body that does not open: because it needs too much memory, or for a reason of its own that the fault has. */
static enum err body_error(struct ask *ask, const struct arena *a, enum err e)
{
    if (!arena_over_limit(a))
        return fault_set(&ask->fault, e == E_BAD_INPUT ? E_INTERNAL : e, "a stored profile cannot be read");
    return ask_too_large(ask);
}

static enum err visit_body(struct scanning *s, const struct stored *p, bool open, struct arena *a)
{
    struct record_view view = {0};
    struct seen_profile seen = {p, &view, NULL};
    bool any = true;
    struct fault why = {0};
    enum err e = record_open(&view, p->body, a, &why);
    if (e)
        return body_error(s->ask, a, e);
    if (open) {
        seen.keep = keep_sets(s, p, &view, a, &any);
        if (!seen.keep)
            return body_error(s->ask, a, E_NO_MEMORY);
    }
    return any ? s->spec->visit(s->spec->ctx, &seen) : E_OK;
}

static enum err on_profile(void *ctx, const struct stored *p)
{
    struct scanning *s = ctx;
    struct ask *ask = s->ask;
    enum err e = ask_alive(ask);
    if (e)
        return e;
    if (ask->selector && selector_error(ask->selector, &ask->fault))
        return ask->fault.err;
    s->found++;
    if (ask->selector && ask->one_profile && selector_series(ask->selector, p->series) == VERDICT_NO)
        return E_OK;
    if (ask->params.given[PARAM_SERVICE] && ask->one_profile && ask->params.value[PARAM_SERVICE].len &&
        !str_eq(ask->params.value[PARAM_SERVICE], p->series->service))
        return E_OK;
    if (!has_wanted_type(s, p))
        return E_OK;
    bool open = ask->selector && selector_series(ask->selector, p->series) == VERDICT_OPEN;
    if (open && p->hour &&
        !selector_reaches(ask->selector, p->series, p->hour->sample_names, p->hour->n_sample_names)) {
        open = false; /* its samples all look the same to the selector */
        if (!selector_sample(ask->selector, p->series, NULL, 0))
            return E_OK;
    }
    if (s->probing) {
        s->open |= open;
        s->reaches |= open && p->hour;
        return s->reaches || (open && !s->hours) ? E_CANCELLED : E_OK;
    }
    if (!s->bodies)
        return s->spec->visit(s->spec->ctx, &(struct seen_profile){p, NULL, NULL});
    struct arena *a = arena_new(ask->q->memory_limit / 2);
    if (!a)
        return fault_set(&ask->fault, E_NO_MEMORY, NULL);
    e = visit_body(s, p, open, a);
    arena_free(a);
    return e;
}

static enum err run(struct scanning *s, enum scan_what what)
{
    struct ask *ask = s->ask;
    const struct query *q = ask->q;
    struct selection sel = {
        .project = q->project,
        .service = ask->one_profile ? (struct str){NULL, 0} : ask->params.value[PARAM_SERVICE],
        .from_ns = ask->window.from_ns,
        .until_ns = ask->window.until_ns,
        .profile = ask->one_profile ? &ask->attempt : NULL,
        .series_match = ask->selector && !ask->one_profile ? on_series : NULL,
        .time_match = s->spec->time_match ? on_time : NULL,
        .ctx = s,
        .cancel = q->cancel,
    };
    struct fault store_fault = {0};
    enum err e = q->backend->read->scan(q->store, &sel, what, on_profile, s, &store_fault);
    if (e && ask->fault.err == E_OK && !(e == E_CANCELLED && s->probing && s->open))
        (void)fault_set(&ask->fault, e, store_fault.text[0] ? "%s" : NULL, store_fault.text);
    return e;
}

/* A selector may reach into samples; whether it does depends on the series that are there. Then hours will not do:
 * they do not know how many of their profiles have such samples. */
static enum err probe(struct scanning *s)
{
    s->probing = true;
    enum err e = run(s, SCAN_META | (s->hours ? SCAN_HOURS : 0));
    s->probing = false;
    s->found = 0;
    s->bodies |= s->open;
    if (s->reaches) {
        s->hours = false;
        scan_window(s->ask, false);
    }
    return s->open && e == E_CANCELLED ? E_OK : e;
}

/* Not where hours leave out what the selector looks at. */
static bool may_use_hours(const struct ask *a)
{
    return !a->one_profile && (!a->selector || !selector_names(a->selector, label_left_out));
}

static int64_t floor_hour(int64_t ns)
{
    return hour_of(ns) * HOUR_NS;
}

void scan_window(struct ask *a, bool hours)
{
    int64_t since = a->one_profile ? INT64_MIN : a->q->backend->read->raw_since(a->q->store);
    struct window *w = &a->window;

    if (w->from_ns >= since)
        return;
    if (!hours || !may_use_hours(a)) {
        w->from_ns = since < w->until_ns ? since : w->until_ns;
        return;
    }
    w->from_ns = floor_hour(w->from_ns);
    if (w->until_ns < since && w->until_ns > floor_hour(w->until_ns))
        w->until_ns = floor_hour(w->until_ns) + HOUR_NS;
}

enum err scan_not_found(struct ask *a)
{
    char text[WINDOW_TEXT];
    int64_t since = a->q->backend->read->raw_since(a->q->store);

    a->fault = (struct fault){0};
    if (since == INT64_MIN)
        return fault_set(&a->fault, E_NOT_FOUND, "no such profile");
    window_format(since, text);
    return fault_set(&a->fault, E_NOT_FOUND, "no such profile, or it has expired: single profiles are kept since %.10s",
                     text);
}

enum err scan_profiles(struct ask *a, const struct scan_spec *spec)
{
    struct scanning s = {.ask = a, .spec = spec, .bodies = spec->bodies, .hours = spec->hours && may_use_hours(a)};
    enum err e = E_OK;
    scan_window(a, s.hours);
    if (a->selector && (!spec->bodies || s.hours) && selector_may_open(a->selector))
        e = probe(&s);
    if (e == E_OK)
        e = run(&s, (s.bodies ? SCAN_BODY : SCAN_META) | (spec->newest_first ? SCAN_NEWEST_FIRST : 0) |
                        (s.hours ? SCAN_HOURS : 0));
    if (e == E_OK && a->selector)
        e = selector_error(a->selector, &a->fault);
    if (e == E_OK)
        e = ask_look(a);
    if (a->one_profile && (e == E_NOT_FOUND || (e == E_OK && s.found == 0)))
        e = scan_not_found(a);
    return e;
}

enum err tally_open(struct tally *t, struct ask *a)
{
    *t = (struct tally){.ids = idset_new(), .covered = calloc(1, sizeof(struct spans))};
    return t->ids && t->covered ? E_OK : fault_set(&a->fault, E_NO_MEMORY, NULL);
}

static int64_t sum_covered(const struct tally *t, const struct ask *a)
{
    int64_t sum = 0;

    if (!t->covered)
        return t->covered_ns;
    spans_unite(t->covered);
    for (uint32_t i = 0; i < t->covered->n; i++) {
        const struct span *s = &t->covered->list[i];
        int64_t until = s->until_ns < a->window.until_ns ? s->until_ns : a->window.until_ns;

        sum += until > s->from_ns ? until - s->from_ns : 0;
    }
    return sum;
}

void tally_close(struct tally *t, const struct ask *a)
{
    idset_free(t->ids);
    t->ids = NULL;
    t->covered_ns = a ? sum_covered(t, a) : 0;
    if (t->covered)
        spans_free(t->covered);
    free(t->covered);
    t->covered = NULL;
}

static bool add_series(struct tally *t, const struct stored *s)
{
    const uint64_t *ids = s->hour ? s->hour->series_ids : &s->series_id;
    uint32_t n = s->hour ? s->hour->n_series : 1;

    for (uint32_t i = 0; i < n; i++)
        if (!idset_has(t->ids, ids[i]) && !idset_add(t->ids, ids[i]))
            return false;
    t->series = idset_count(t->ids);
    return true;
}

static bool add_covered(struct tally *t, const struct stored *s, int64_t end)
{
    if (!s->hour)
        return spans_add(t->covered, (struct span){s->time_ns, end});
    for (uint32_t i = 0; i < s->hour->n_covered; i++)
        if (!spans_add(t->covered, s->hour->covered[i]))
            return false;
    return true;
}

enum err tally_add(struct tally *t, struct ask *a, const struct seen_profile *p)
{
    bool over = false;
    const struct stored *s = p->stored;
    int64_t last = s->hour ? s->hour->last_ns : s->time_ns;
    int64_t end = add_sat(s->time_ns, s->duration_ns > 0 ? s->duration_ns : 0, &over);
    if (!add_series(t, s) || !add_covered(t, s, end))
        return fault_set(&a->fault, E_NO_MEMORY, NULL);
    if (a->one_profile)
        a->window = (struct window){s->time_ns, end, false};
    t->first_ns = t->profiles == 0 || s->time_ns < t->first_ns ? s->time_ns : t->first_ns;
    t->last_ns = t->profiles == 0 || last > t->last_ns ? last : t->last_ns;
    t->profiles += s->n_profiles;
    t->samples += scan_samples(p);
    t->duration_ns = add_sat(t->duration_ns, s->duration_ns > 0 ? s->duration_ns : 0, &over);
    return E_OK;
}

double tally_covered(const struct tally *t, const struct ask *a)
{
    double window = (double)a->window.until_ns - (double)a->window.from_ns;
    return window > 0 ? (double)sum_covered(t, a) / window : 0;
}
