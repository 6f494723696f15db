/* From decoded payloads to sealed records: bind labels, resolve, name, time, identity. One profile's fault is its own.
 */
#include <stdio.h>

#include "codecs/type_config.h"
#include "codecs/upload_parts.h"
#include "codecs/when.h"

#define YEAR_NS (INT64_C(365) * 86400 * 1000000000)

/* One profile on its way. */
struct job {
    struct upload *u;
    const struct payload *payload;
    struct str id; /* of a Push sample */
    bool push, cumulative;
    struct arena *a;
    struct profile p;
    struct str refused;
    struct fault fault;
};

static bool in_window(const struct upload_spec *s, int64_t ns)
{
    bool over = false;

    if (s->window_past_ns >= 0 && ns < add_sat(s->now_ns, -s->window_past_ns, &over))
        return false;
    return s->window_future_ns < 0 || ns <= add_sat(s->now_ns, s->window_future_ns, &over);
}

/* /ingest: what lies in 1970 or before, or outside of the window, counts as absent. */
static int64_t ingest_time(const struct upload_spec *s, int64_t sent)
{
    if (sent > YEAR_NS && in_window(s, sent))
        return sent;
    int64_t from = s->params.from.len ? when_parse(s->params.from, s->now_ns) : 0;
    return from > YEAR_NS && in_window(s, from) ? from : s->now_ns;
}

static enum err set_times(struct job *j)
{
    const struct upload_spec *s = j->u->in.spec;
    int64_t sent = j->p.time_ns;

    if (j->push) {
        j->p.time_ns = sent ? sent : s->now_ns;
        if (!in_window(s, j->p.time_ns))
            return fault_set(&j->fault, E_OUT_OF_WINDOW,
                             "time_nanos %lld is outside of accept_window: %lld to %lld (nanoseconds since 1970)",
                             (long long)sent,
                             (long long)(s->window_past_ns < 0 ? INT64_MIN : s->now_ns - s->window_past_ns),
                             (long long)(s->window_future_ns < 0 ? INT64_MAX : s->now_ns + s->window_future_ns));
    } else {
        j->p.time_ns = ingest_time(s, sent);
        if ((j->p.duration_ns <= 0 || j->p.time_ns != sent) && s->params.from.len && s->params.until.len) {
            int64_t from = when_parse(s->params.from, s->now_ns), until = when_parse(s->params.until, s->now_ns);
            bool sane = from > 0 && until > from && until - from <= YEAR_NS;
            j->p.duration_ns = sane ? until - from : j->p.duration_ns;
        }
    }
    if (j->p.duration_ns < 0)
        j->p.duration_ns = 0;
    return E_OK;
}

static bool is_dotnet(const struct job *j, const struct type_config *config, uint32_t n)
{
    if (str_eq(j->p.series.spy, STR("dotnetspy")))
        return true;
    if (j->p.series.spy.len && !str_eq(j->p.series.spy, STR("unknown")))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (str_eq(config[i].type, STR("inuse-space")))
            return true;
    return false;
}

static enum err build_pprof(struct job *j)
{
    struct pprof_reading how = {.cumulative = j->cumulative};
    struct type_config *config = NULL;
    struct str text = j->u->multipart ? multipart_config(j->u->multipart) : STR("");

    if (type_config_parse(text, j->a, &config, &how.n_config, &j->fault) != E_OK)
        return j->fault.err;
    how.config = config;
    how.dotnet = is_dotnet(j, config, how.n_config);
    enum err e = pprof_build(j->payload->pprof, &how, j->a, &j->p, &j->refused, &j->fault);
    if (e != E_OK || j->p.series.name.len)
        return e;
    j->p.series.name =
        j->push ? type_first_name(j->payload->pprof) : type_config_name(j->payload->pprof, config, how.n_config);
    return E_OK;
}

static enum err build_folded(struct job *j)
{
    struct folded_reading how = {j->u->suffix, j->u->in.spec->params.sample_rate};

    j->p.series.name = str_of(j->u->suffix->name);
    return folded_build(j->payload->folded, &how, j->a, &j->p, &j->fault);
}

static void add_part(struct buf *b, struct str s)
{
    uint64_t n = s.len;

    buf_add(b, &n, sizeof n);
    buf_str(b, s);
}

static void add_number(struct buf *b, uint64_t v)
{
    buf_add(b, &v, sizeof v);
}

/* How many before this one had the same base. */
static bool count_equals(struct upload *u, struct hash128 base, uint32_t *ordinal)
{
    struct probe at;
    uint32_t i = index_first(&u->base_index, base.lo, &at);

    while (i != INDEX_NONE && (u->bases[i].hash.hi != base.hi || u->bases[i].hash.lo != base.lo))
        i = index_next(&u->base_index, &at);
    if (i == INDEX_NONE) {
        i = u->n_bases++;
        u->bases[i].hash = base;
        if (!index_add(&u->base_index, u->in.arena, base.lo, i))
            return false;
    }
    *ordinal = u->bases[i].seen++;
    return true;
}

/* design.md 6: project, series labels, time as sent, payload as sent, sample ID; then its ordinal among equals here. */
static bool content_id(const struct job *j, int64_t time_sent, struct hash128 *out)
{
    struct upload *u = j->u;
    struct buf b = {0};
    uint32_t ordinal = 0;

    add_part(&b, j->p.series.project);
    add_part(&b, j->p.series.name);
    for (uint32_t l = 0; l < j->p.series.n_labels; l++) {
        add_part(&b, j->p.series.labels[l].name);
        add_part(&b, j->p.series.labels[l].value);
    }
    add_number(&b, (uint64_t)time_sent);
    add_part(&b, j->push ? STR("") : u->in.spec->params.from);
    add_number(&b, j->payload->digest.hi);
    add_number(&b, j->payload->digest.lo);
    add_part(&b, j->id);
    bool good = !b.failed && count_equals(u, hash128(u->in.spec->key, b.p, b.len), &ordinal);
    add_number(&b, ordinal);
    *out = hash128(u->in.spec->key, b.p, b.len);
    good = good && !b.failed;
    buf_free(&b);
    return good;
}

static enum err seal(struct job *j, int64_t time_sent, uint32_t i)
{
    struct upload *u = j->u;
    struct record_origin o = {
        .format = str_of(upload_kind_names[u->in.spec->kind]),
        .identity = j->id.len != 0,
        .original = {j->payload->original, u->in.spec->keep_originals ? (size_t)j->payload->bytes : 0},
        .original_bytes = j->payload->bytes,
        .keep_original = u->in.spec->keep_originals,
    };

    if (!content_id(j, time_sent, &o.content_id))
        return fault_set(&j->fault, E_NO_MEMORY, NULL);
    struct record *r = record_seal(&j->p, &o, u->in.spec->key);
    if (!r)
        return fault_set(&j->fault, E_NO_MEMORY, NULL);
    u->outcomes[i].record = r;
    u->record_bytes += r->bytes;
    return E_OK;
}

static void say_empty(struct job *j)
{
    uint32_t zero = j->p.drops.zero_samples;

    if (zero)
        snprintf(j->fault.text, sizeof j->fault.text, "empty: the values of all %u samples are 0", zero);
    else
        snprintf(j->fault.text, sizeof j->fault.text, "empty: no samples");
}

/* Everything but the series, which is bound already. */
static enum err run(struct job *j, uint32_t i)
{
    if (payload_empty(j->payload)) {
        snprintf(j->fault.text, sizeof j->fault.text, "empty: the payload has no bytes");
        return E_OK;
    }
    enum err e = j->payload->pprof ? build_pprof(j) : build_folded(j);
    int64_t time_sent = j->p.time_ns;
    if (e == E_OK)
        e = set_times(j);
    if (e == E_OK && j->p.n_samples == 0)
        say_empty(j);
    if (e != E_OK || j->p.n_samples == 0)
        return e;
    if (!series_type_ids(&j->p, j->a))
        return arena_error(j->a, &j->fault);
    e = seal(j, time_sent, i);
    if (e == E_OK && j->refused.len)
        snprintf(j->fault.text, sizeof j->fault.text, "not stored: %.*s (cumulative since start; send deltas)",
                 STR_ARG(j->refused));
    return e;
}

static enum err finish_one(struct upload *u, uint32_t i, const struct payload *payload,
                           const struct push_sample *sample)
{
    struct job j = {.u = u, .payload = payload, .push = sample != NULL, .cumulative = u->cumulative};
    struct push_series *ps = sample ? &u->push->series.p[sample->series] : NULL;
    struct series_labels labels = {.n = 0};

    if (ps)
        labels = (struct series_labels){.labels = u->push->labels.p + ps->label_at, .n = ps->n_labels};
    u->outcomes[i].service = ps ? series_service(&labels) : u->series.service;
    if (payload && payload->fault.err != E_OK) {
        u->outcomes[i].fault = payload->fault;
        return E_OK;
    }
    if (!payload) {
        snprintf(u->outcomes[i].fault.text, sizeof j.fault.text, "empty: there is no profile in it");
        return E_OK;
    }
    j.a = arena_new(u->in.limits->decoded);
    if (!j.a)
        return E_NO_MEMORY;
    enum err e = E_OK;
    if (ps) {
        e = series_bind(&j.p.series, &labels, u->in.limits, j.a, &j.cumulative, &j.fault);
        j.id = sample->id;
    } else {
        j.p.series = u->series;
    }
    j.p.series.project = u->in.spec->project;
    if (e == E_OK)
        e = run(&j, i);
    u->outcomes[i].fault = j.fault;
    arena_free(j.a);
    return e == E_NO_MEMORY ? e : E_OK;
}

enum err upload_finish(struct upload *u)
{
    uint32_t n = u->push ? u->push->samples.n : 1;

    if (u->in.fault.err != E_OK)
        return u->in.fault.err;
    u->outcomes = NEW(u->in.arena, struct outcome, n);
    u->bases = NEW(u->in.arena, struct base, n);
    if (!u->outcomes || !u->bases)
        return arena_error(u->in.arena, &u->in.fault);
    u->n_outcomes = n;
    for (uint32_t i = 0; i < n; i++) {
        const struct push_sample *s = u->push ? &u->push->samples.p[i] : NULL;
        const struct payload *payload = s ? s->payload : u->multipart ? multipart_profile(u->multipart) : u->payload;
        if (finish_one(u, i, payload, s) == E_NO_MEMORY)
            return fault_set(&u->in.fault, E_NO_MEMORY, NULL);
    }
    return E_OK;
}

static uint64_t payload_ns(const struct payload *p)
{
    if (p && p->pprof)
        return (uint64_t)p->pprof->n_samples * 250 + (uint64_t)p->pprof->sample_ids.n * 8 +
               (uint64_t)p->pprof->lines.n * 120 + (uint64_t)p->pprof->strings.n * 60;
    return p && p->folded ? (uint64_t)p->folded->n_stacks * 200 + (uint64_t)p->folded->names.n * 120 : 0;
}

static size_t payload_memory(const struct payload *p)
{
    if (p && p->pprof)
        return pprof_build_memory(p->pprof);
    return p && p->folded ? folded_build_memory(p->folded) : 0;
}

/* Large profiles miss the caches: by measurement the work per element grows by as much again with every 8 MiB decoded.
 */
uint64_t upload_finish_ns(const struct upload *u)
{
    uint64_t ns = payload_ns(u->multipart ? multipart_profile(u->multipart) : u->payload);
    uint64_t eighths = arena_used(u->in.arena) >> 20;

    for (uint32_t i = 0; u->push && i < u->push->samples.n; i++)
        ns += 20000 + payload_ns(u->push->samples.p[i].payload);
    return 20000 + ns / 2 * (8 + eighths) / 8;
}

/* One profile is built at a time, but every record stays: half of what building takes, by measurement. */
size_t upload_finish_memory(const struct upload *u)
{
    size_t one = payload_memory(u->multipart ? multipart_profile(u->multipart) : u->payload), sum = one;

    for (uint32_t i = 0; u->push && i < u->push->samples.n; i++) {
        size_t m = payload_memory(u->push->samples.p[i].payload);
        one = m > one ? m : one;
        sum += m;
    }
    return one + sum / 2;
}

uint32_t upload_outcomes(const struct upload *u)
{
    return u->n_outcomes;
}

const struct outcome *upload_outcome(const struct upload *u, uint32_t i)
{
    return &u->outcomes[i];
}

struct record *upload_take(struct upload *u, uint32_t i)
{
    struct record *r = u->outcomes[i].record;

    u->outcomes[i].record = NULL;
    if (r)
        u->record_bytes -= r->bytes;
    return r;
}
