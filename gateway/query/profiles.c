/* GET profiles and profiles/ID: every upload, newest first, page by page (F23). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/query/endpoints.h"
#include "gateway/query/text.h"
#include "gateway/query/typesel.h"

enum { PAGE = 100 };

/* A copy of what a page shows of one profile; `fields` is its JSON without braces. */
struct profile_row {
    int64_t time_ns, duration_ns;
    char id[ATTEMPT_TEXT];
    struct str json;
    struct str service;
    uint32_t samples;
};
struct profiles {
    struct ask *ask;
    struct tally tally;
    struct profile_row *rows;
    uint32_t n, cap, limit;
    int64_t after_ns; /* of the cursor */
    char after_id[ATTEMPT_TEXT];
};

/* Newest first; equal times by id, so that pages do not depend on the store's order among equals. */
static int compare_places(int64_t ta, const char *ia, int64_t tb, const char *ib)
{
    if (ta != tb)
        return ta > tb ? -1 : 1;
    return strcmp(ia, ib);
}

static int compare_rows(const void *a, const void *b)
{
    const struct profile_row *x = a, *y = b;
    return compare_places(x->time_ns, x->id, y->time_ns, y->id);
}

static void put_str(struct json *j, const char *key, struct str s)
{
    json_key(j, key);
    json_str(j, s);
}

static void put_labels(struct json *j, const struct series *s)
{
    json_key(j, "labels");
    json_open(j, '{');
    put_str(j, "__name__", s->name);
    for (uint32_t i = 0; i < s->n_labels; i++) {
        json_key_str(j, s->labels[i].name);
        json_str(j, s->labels[i].value);
    }
    json_close(j, '}');
}

static void put_types(struct json *j, const struct seen_profile *p)
{
    json_key(j, "types");
    json_open(j, '[');
    for (uint32_t i = 0; i < p->stored->n_types; i++)
        json_str(j, p->stored->types[i].id);
    json_close(j, ']');
    json_key(j, "totals");
    json_open(j, '[');
    for (uint32_t i = 0; i < p->stored->n_types; i++)
        json_int(j, scan_total(p, i));
    json_close(j, ']');
    put_str(j, "primary", p->stored->n_types ? p->stored->types[p->stored->primary].id : (struct str){NULL, 0});
}

static void put_profile(struct json *j, const struct seen_profile *p, const char *id)
{
    const struct stored *s = p->stored;
    char text[WINDOW_TEXT];
    put_str(j, "id", str_of(id));
    window_format(s->time_ns, text);
    put_str(j, "time", str_of(text));
    json_key(j, "duration");
    json_int(j, s->duration_ns);
    put_str(j, "service", s->series->service);
    put_labels(j, s->series);
    put_types(j, p);
    json_key(j, "samples");
    json_uint(j, scan_samples(p));
    json_key(j, "bytes");
    json_uint(j, s->original_bytes);
    put_str(j, "format", s->format);
    put_str(j, "trace_id", s->trace_id);
    window_format(s->stored_ns, text);
    put_str(j, "stored", str_of(text));
}

static enum err keep_row(struct profiles *ps, const struct seen_profile *p, const char *id)
{
    struct ask *a = ps->ask;
    if (ps->n == ps->cap) {
        uint32_t cap = ps->cap ? ps->cap * 2 : 64;
        struct profile_row *rows = GROW(a->arena, ps->rows, struct profile_row, ps->cap, cap);
        if (!rows)
            return ask_no_memory(a);
        ps->rows = rows;
        ps->cap = cap;
    }
    struct profile_row *r = &ps->rows[ps->n];
    struct buf text = {0};
    put_profile(&(struct json){.out = &text}, p, id);
    *r = (struct profile_row){
        .time_ns = p->stored->time_ns, .duration_ns = p->stored->duration_ns, .samples = (uint32_t)scan_samples(p)};
    memcpy(r->id, id, sizeof(r->id));
    bool ok = !text.failed && arena_str(a->arena, buf_view(&text), &r->json) &&
              arena_str(a->arena, p->stored->series->service, &r->service);
    buf_free(&text);
    ps->n += ok;
    return ok ? E_OK : ask_no_memory(a);
}

/* In a scan of its own: how much of the window is covered shows only oldest first. */
static enum err on_counted(void *ctx, const struct seen_profile *p)
{
    struct profiles *ps = ctx;
    return tally_add(&ps->tally, ps->ask, p);
}

static enum err on_profile(void *ctx, const struct seen_profile *p)
{
    struct profiles *ps = ctx;
    char id[ATTEMPT_TEXT];
    attempt_format(p->stored->attempt, id);
    if (ps->after_id[0] && compare_places(p->stored->time_ns, id, ps->after_ns, ps->after_id) <= 0)
        return E_OK;
    /* One more than the page, and all that are as old as the last one: only then is their order ours. */
    if (ps->n > ps->limit && p->stored->time_ns < ps->rows[ps->limit].time_ns)
        return E_OK;
    return keep_row(ps, p, id);
}

/* A cursor is the time and the id of the last row of the page before. */
static enum err read_cursor(struct profiles *ps)
{
    struct str c = ps->ask->params.value[PARAM_CURSOR];
    struct attempt at;
    const char *dot = c.len ? memchr(c.p, '.', c.len) : NULL;
    char number[24] = "", *end = number;
    if (!ps->ask->params.given[PARAM_CURSOR])
        return E_OK;
    if (dot && (size_t)(dot - c.p) < sizeof(number)) {
        struct str id = {dot + 1, c.len - (size_t)(dot - c.p) - 1};
        memcpy(number, c.p, (size_t)(dot - c.p));
        ps->after_ns = strtoll(number, &end, 10);
        if (end != number && *end == 0 && attempt_parse(id, &at)) {
            attempt_format(at, ps->after_id);
            return E_OK;
        }
    }
    return fault_set(&ps->ask->fault, E_BAD_REQUEST,
                     "parameter \"cursor\" is not one that \"next\" of an earlier answer gave");
}

static void write_json(const struct profiles *ps, uint32_t shown)
{
    struct buf *out = &ps->ask->answer->body;
    struct json j = {.out = out};
    json_open(&j, '{');
    gather_list_head(&j, ps->ask, &ps->tally, "count");
    json_key(&j, "profiles");
    json_open(&j, '[');
    for (uint32_t i = 0; i < shown; i++) {
        json_open(&j, '{');
        buf_str(out, ps->rows[i].json);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_key(&j, "next");
    if (shown == 0 || shown == ps->n) {
        json_null(&j);
    } else {
        char next[24 + ATTEMPT_TEXT];
        snprintf(next, sizeof(next), "%" PRId64 ".%s", ps->rows[shown - 1].time_ns, ps->rows[shown - 1].id);
        json_str(&j, str_of(next));
    }
    json_close(&j, '}');
}

static void write_text(const struct profiles *ps, uint32_t shown)
{
    struct buf *out = &ps->ask->answer->body;
    buf_printf(out, "%" PRIu64 " profile%s · ", ps->tally.profiles, ps->tally.profiles == 1 ? "" : "s");
    text_window(out, ps->ask);
    buf_str(out, STR("\ntime                   samples  id                                service\n"));
    for (uint32_t i = 0; i < shown; i++) {
        char text[WINDOW_TEXT];
        window_format(ps->rows[i].time_ns, text);
        buf_printf(out, "%.19sZ %9u  %s  ", text, ps->rows[i].samples, ps->rows[i].id);
        text_put(out, ps->rows[i].service, TEXT_COLUMNS - 66);
        buf_char(out, '\n');
    }
}

static enum err list(struct profiles *ps)
{
    struct ask *a = ps->ask;
    enum err e = read_cursor(ps);
    ps->limit = a->limit ? a->limit : PAGE;
    if (e == E_OK)
        e = tally_open(&ps->tally, a);
    if (e == E_OK)
        e = scan_profiles(a, &(struct scan_spec){.type = a->params.value[PARAM_TYPE], .visit = on_counted, .ctx = ps});
    if (e == E_OK)
        e = scan_profiles(
            a, &(struct scan_spec){
                   .newest_first = true, .type = a->params.value[PARAM_TYPE], .visit = on_profile, .ctx = ps});
    if (e == E_OK && ps->n > 1)
        qsort(ps->rows, ps->n, sizeof(*ps->rows), compare_rows);
    return e;
}

enum err profiles_run(struct ask *a)
{
    static const char *const formats[] = {"json", "text"};
    struct profiles ps = {.ask = a};
    size_t format;
    enum err e = ask_format(a, formats, COUNTOF(formats), &format);
    if (e == E_OK)
        e = list(&ps);
    tally_close(&ps.tally, a);
    uint32_t shown = ps.n < ps.limit ? ps.n : ps.limit;
    if (e == E_OK && format == 1)
        write_text(&ps, shown);
    else if (e == E_OK)
        write_json(&ps, shown);
    return e;
}

static void put_drops(struct json *j, const struct drops *d)
{
    json_key(j, "dropped");
    json_open(j, '{');
    json_key(j, "broken_references");
    json_uint(j, d->broken_references);
    json_key(j, "negative_values");
    json_uint(j, d->negative_values);
    json_key(j, "zero_samples");
    json_uint(j, d->zero_samples);
    json_key(j, "truncated_stacks");
    json_uint(j, d->truncated_stacks);
    json_key(j, "saturated");
    json_bool(j, d->saturated);
    json_close(j, '}');
}

/* One profile in full: what the list says, and what its record and its original say beside it. */
static enum err on_one(void *ctx, const struct seen_profile *p)
{
    struct ask *a = ctx;
    const struct query *q = a->q;
    static const char *const states[] = {"kept", "expired", "off"};
    enum original_state state = ORIGINAL_OFF;
    struct buf original = {0};
    struct fault why = {0};
    struct json j = {.out = &a->answer->body};
    char id[ATTEMPT_TEXT];
    enum err e = q->backend->read->original(q->store, q->project, p->stored->attempt, &state, &original, &why);
    buf_free(&original);
    if (e)
        return fault_set(&a->fault, e, why.text[0] ? "%s" : NULL, why.text);
    attempt_format(p->stored->attempt, id);
    json_open(&j, '{');
    put_profile(&j, p, id);
    put_str(&j, "original", str_of(states[state]));
    put_str(&j, "period_type", p->view->period_type);
    put_str(&j, "period_unit", p->view->period_unit);
    json_key(&j, "period");
    json_int(&j, p->view->period);
    put_str(&j, "comment", p->view->comment);
    put_drops(&j, &p->view->drops);
    json_close(&j, '}');
    return E_OK;
}

enum err profile_run(struct ask *a)
{
    static const char *const formats[] = {"json"};
    size_t format;
    enum err e = ask_format(a, formats, COUNTOF(formats), &format);
    if (e == E_OK && !attempt_parse(a->rest, &a->attempt))
        e = fault_set(&a->fault, E_NOT_FOUND, "no such profile");
    a->one_profile = true;
    return e ? e : scan_profiles(a, &(struct scan_spec){.bodies = true, .visit = on_one, .ctx = a});
}
