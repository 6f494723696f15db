/* GET timeline: exact sums per step of the window, for the whole selection or for each value of a label. */
#include <stdlib.h>

#include "backends/hours.h"
#include "codecs/instance.h"
#include "gateway/query/endpoints.h"
#include "gateway/query/nameset.h"
#include "gateway/query/text.h"
#include "gateway/query/typesel.h"

enum { POINTS_DEFAULT = 60, POINTS_MAX = 11000 };
static const int64_t minute_ns = 60 * INT64_C(1000000000);

/* One line: `sums` has a place per step, `counts` the profiles in it. */
struct line {
    int64_t *sums;
    uint32_t *counts;
    int64_t total;
    struct str value; /* of the label; empty: those without it */
    uint64_t last;    /* profile that it counts */
};
struct timeline {
    struct ask *ask;
    struct gathered g;
    int64_t step_ns;
    uint32_t n_steps, cap_lines;
    uint64_t visited;          /* profiles; each counts once for each value */
    bool hours, need_profiles; /* rows may be hours; one was that would not do */
    struct str by;
    struct nameset values; /* in the order of lines */
    struct line *lines;
};

static enum err count_steps(struct timeline *t)
{
    int64_t span = t->ask->window.until_ns - t->ask->window.from_ns;
    if (span / t->step_ns >= POINTS_MAX)
        return fault_set(&t->ask->fault, E_BAD_REQUEST, "parameter \"step\": more than %d steps in this window",
                         POINTS_MAX);
    t->n_steps = (uint32_t)((span + t->step_ns - 1) / t->step_ns);
    return E_OK;
}

/* Steps of our own choice in a long window are whole hours, from the hour on, so that hours can be read. */
static enum err read_hours(struct timeline *t)
{
    struct window *w = &t->ask->window;
    int64_t span;
    w->from_ns = hour_of(w->from_ns) * HOUR_NS;
    span = w->until_ns - w->from_ns;
    t->step_ns = (span / POINTS_DEFAULT + HOUR_NS - 1) / HOUR_NS * HOUR_NS;
    return count_steps(t);
}

static enum err read_step(struct timeline *t)
{
    struct ask *a = t->ask;
    int64_t span = a->window.until_ns - a->window.from_ns;
    if (!a->params.given[PARAM_STEP] && !a->one_profile && span > POINTS_DEFAULT * HOUR_NS)
        return read_hours(t);
    t->step_ns = (span / POINTS_DEFAULT + minute_ns - 1) / minute_ns * minute_ns;
    if (t->step_ns < minute_ns)
        t->step_ns = minute_ns;
    if (a->params.given[PARAM_STEP] &&
        (!window_duration(a->params.value[PARAM_STEP], &t->step_ns) || t->step_ns % minute_ns != 0))
        return fault_set(&a->fault, E_BAD_REQUEST,
                         "parameter \"step\": whole minutes are wanted, like 1m, 15m, 1h, 1d");
    return count_steps(t);
}

static enum err find_line(struct timeline *t, struct str value, struct line **out)
{
    struct ask *a = t->ask;
    uint32_t place, known = t->values.n;
    enum err e = nameset_add(&t->values, a, value, true, &place);
    if (e)
        return e;
    if (place >= t->cap_lines) {
        struct line *lines = GROW(a->arena, t->lines, struct line, t->cap_lines, t->values.cap);
        if (!lines)
            return ask_no_memory(a);
        t->lines = lines;
        t->cap_lines = t->values.cap;
    }
    *out = &t->lines[place];
    if (place < known)
        return E_OK;
    **out = (struct line){NEW(a->arena, int64_t, t->n_steps + 1), NEW(a->arena, uint32_t, t->n_steps + 1), 0,
                          t->values.list[place], 0};
    return (*out)->sums && (*out)->counts ? E_OK : ask_no_memory(a);
}

static enum err add(struct timeline *t, struct str value, const struct stored *p, int64_t sum)
{
    struct line *l = NULL;
    bool over = false;
    enum err e = find_line(t, value, &l);
    if (e)
        return e;
    int64_t step = (p->time_ns - t->ask->window.from_ns) / t->step_ns;
    if (step < 0 || step >= t->n_steps)
        step = 0; /* one profile of its own: its window begins with it */
    l->sums[step] = add_sat(l->sums[step], sum, &over);
    if (l->last != t->visited)
        l->counts[step] += (uint32_t)p->n_profiles;
    l->last = t->visited;
    l->total = add_sat(l->total, sum, &over);
    t->g.total = add_sat(t->g.total, sum, &over);
    return E_OK;
}

static bool series_value(const struct series *s, struct str name, struct str *value)
{
    *value = str_eq(name, STR("__name__")) ? s->name : s->service;
    if (str_eq(name, STR("service_name")) || str_eq(name, STR("__name__")))
        return true;
    for (uint32_t i = 0; i < s->n_labels; i++) {
        *value = s->labels[i].value;
        if (str_eq(s->labels[i].name, name))
            return true;
    }
    *value = (struct str){NULL, 0};
    return false;
}

static struct str set_value(const struct record_view *v, uint32_t set, struct str name)
{
    for (uint32_t i = v->set_at[set]; i < v->set_at[set + 1]; i++)
        if (!v->labels[i].numeric && str_eq(v->labels[i].key, name))
            return v->labels[i].value;
    return (struct str){NULL, 0};
}

/* Samples of one profile, each label set by its own value. */
static enum err add_sets(struct timeline *t, const struct seen_profile *p, uint32_t type)
{
    const struct record_view *v = p->view;
    bool over = false;
    enum err e = E_OK;
    int64_t *sums = calloc(v->n_sets + 1, sizeof(*sums));
    bool *met = calloc(v->n_sets + 1, sizeof(*met));
    if (!sums || !met)
        e = fault_set(&t->ask->fault, E_NO_MEMORY, NULL);
    for (uint32_t i = 0; e == E_OK && i < v->n_samples; i++) {
        uint32_t set = v->sample_set[i];
        if (p->keep && !p->keep[set])
            continue;
        sums[set] = add_sat(sums[set], v->values[type][i], &over);
        met[set] = true;
    }
    for (uint32_t s = 0; e == E_OK && s < v->n_sets; s++)
        if (met[s])
            e = add(t, set_value(v, s, t->by), p->stored, sums[s]);
    free(sums);
    free(met);
    return e;
}

/* How many of its profiles have the label in some sample, an hour does not know. */
static bool in_samples(const struct timeline *t, const struct stored_hour *h)
{
    for (uint32_t i = 0; h && i < h->n_sample_names; i++)
        if (str_eq(h->sample_names[i], t->by))
            return true;
    return false;
}

static enum err on_profile(void *ctx, const struct seen_profile *p)
{
    struct timeline *t = ctx;
    struct str value = {NULL, 0};
    uint32_t type = 0;
    while (type < p->stored->n_types && !str_eq(p->stored->types[type].id, t->g.type->id))
        type++;
    enum err e = tally_add(&t->g.tally, t->ask, p);
    t->visited++;
    if (e || type == p->stored->n_types)
        return e;
    if (t->by.len && !series_value(p->stored->series, t->by, &value)) {
        t->need_profiles = in_samples(t, p->stored->hour);
        if (t->need_profiles || !p->stored->hour)
            return t->need_profiles ? E_CANCELLED : add_sets(t, p, type);
    }
    return add(t, value, p->stored, scan_total(p, type));
}

static int compare_lines(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    return str_cmp(x->value, y->value);
}

static enum err scan(struct timeline *t)
{
    struct ask *a = t->ask;
    enum err e = tally_open(&t->g.tally, a);
    if (e == E_OK)
        e = typesel_choose(a, &t->g.type);
    if (e || !t->g.type)
        return e;
    return scan_profiles(
        a, &(struct scan_spec){
               .bodies = t->by.len > 0, .hours = t->hours, .type = t->g.type->id, .visit = on_profile, .ctx = t});
}

/* Whether every whole hour lies in one step. */
static bool fits_hours(const struct timeline *t)
{
    return t->step_ns % HOUR_NS == 0 && t->ask->window.from_ns % HOUR_NS == 0 && !label_left_out(t->by);
}

static enum err compute(struct timeline *t)
{
    struct ask *a = t->ask;
    t->by = a->params.value[PARAM_BY];
    enum err e = read_step(t);
    if (e == E_OK) {
        scan_window(a, t->step_ns % HOUR_NS == 0 && !label_left_out(t->by));
        e = read_step(t);
    }
    if (e)
        return e;
    t->hours = fits_hours(t);
    e = scan(t);
    if (t->need_profiles) {
        struct timeline again = {.ask = a, .by = t->by, .step_ns = t->step_ns};
        gather_close(&t->g);
        a->fault = (struct fault){0};
        *t = again;
        scan_window(a, false);
        e = read_step(t);
        if (e == E_OK)
            e = scan(t);
    }
    if (t->values.n > 1)
        qsort(t->lines, t->values.n, sizeof(*t->lines), compare_lines);
    return e;
}

static void put_points(struct json *j, const struct timeline *t, const struct line *l)
{
    char text[WINDOW_TEXT];
    json_key(j, "points");
    json_open(j, '[');
    for (uint32_t i = 0; i < t->n_steps; i++) {
        if (l->counts[i] == 0)
            continue;
        json_open(j, '[');
        window_format(t->ask->window.from_ns + i * t->step_ns, text);
        json_str(j, str_of(text));
        json_int(j, l->sums[i]);
        json_close(j, ']');
    }
    json_close(j, ']');
    json_key(j, "counts");
    json_open(j, '[');
    for (uint32_t i = 0; i < t->n_steps; i++)
        if (l->counts[i])
            json_uint(j, l->counts[i]);
    json_close(j, ']');
}

static void put_line(struct json *j, const struct timeline *t, const struct line *l)
{
    json_open(j, '{');
    json_key(j, "labels");
    json_open(j, '{');
    if (t->by.len && l->value.len) {
        json_key_str(j, t->by);
        json_str(j, l->value);
    }
    json_close(j, '}');
    json_key(j, "total");
    json_int(j, l->total);
    put_points(j, t, l);
    json_close(j, '}');
}

static void write_json(const struct timeline *t)
{
    struct json j = {.out = &t->ask->answer->body};
    uint32_t shown = t->ask->limit && t->ask->limit < t->values.n ? t->ask->limit : t->values.n;
    int64_t rest = 0;
    bool over = false;
    json_open(&j, '{');
    gather_head_as(&j, t->ask, &t->g, "series_count");
    json_key(&j, "step");
    json_int(&j, t->step_ns / INT64_C(1000000000));
    json_key(&j, "series");
    json_open(&j, '[');
    for (uint32_t i = 0; i < shown; i++)
        put_line(&j, t, &t->lines[i]);
    json_close(&j, ']');
    for (uint32_t i = shown; i < t->values.n; i++)
        rest = add_sat(rest, t->lines[i].total, &over);
    json_key(&j, "other");
    json_open(&j, '{');
    json_key(&j, "series");
    json_uint(&j, t->values.n - shown);
    json_key(&j, "total");
    json_int(&j, rest);
    json_close(&j, '}');
    json_close(&j, '}');
}

static void write_text(const struct timeline *t)
{
    struct buf *out = &t->ask->answer->body;
    text_head(out, t->ask, &t->g);
    for (uint32_t i = 0; i < t->values.n; i++) {
        const struct line *l = &t->lines[i];
        if (t->by.len) {
            text_put(out, l->value.len ? l->value : STR("(none)"), TEXT_COLUMNS);
            buf_char(out, '\n');
        }
        for (uint32_t k = 0; k < t->n_steps; k++) {
            char text[WINDOW_TEXT];
            if (l->counts[k] == 0)
                continue;
            window_format(t->ask->window.from_ns + k * t->step_ns, text);
            buf_printf(out, "%.16sZ  ", text);
            text_value(out, (double)l->sums[k], t->g.type->unit);
            buf_char(out, '\n');
        }
    }
}

enum err timeline_run(struct ask *a)
{
    static const char *const formats[] = {"json", "text"};
    struct timeline t = {.ask = a};
    size_t format;
    enum err e = ask_format(a, formats, COUNTOF(formats), &format);
    if (e == E_OK)
        e = compute(&t);
    if (e == E_OK && format == 1)
        write_text(&t);
    else if (e == E_OK)
        write_json(&t);
    gather_close(&t.g);
    return e;
}
