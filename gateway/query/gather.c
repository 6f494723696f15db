/* Feeds the profiles of a selection to the merge, then loads the symbols of the services and days that were met. */
#include "gateway/query/gather.h"

static const int64_t day_ns = 86400 * INT64_C(1000000000);

struct gathering {
    struct ask *ask;
    struct gathered *g;
    const bool *keep; /* of the profile that is being added */
};

static int32_t day_of(int64_t ns)
{
    return (int32_t)(ns / day_ns - (ns % day_ns < 0));
}

static void keep_sets(void *ctx, const struct record_view *v, bool *keep)
{
    const struct gathering *in = ctx;
    for (uint32_t i = 0; i < v->n_sets; i++)
        keep[i] = !in->keep || in->keep[i];
}

static struct gathered_service *new_service(struct ask *a, struct gathered *g, struct str name, int32_t day)
{
    if (g->n_services == g->cap_services) {
        uint32_t cap = g->cap_services ? g->cap_services * 2 : 8;
        struct gathered_service *s = GROW(a->arena, g->services, struct gathered_service, g->cap_services, cap);
        if (!s)
            return NULL;
        g->services = s;
        g->cap_services = cap;
    }
    struct gathered_service *s = &g->services[g->n_services];
    *s = (struct gathered_service){.first_day = day, .last_day = day};
    if (!arena_str(a->arena, name, &s->name))
        return NULL;
    g->n_services++;
    return s;
}

static enum err note_service(struct gathering *in, const struct stored *p)
{
    struct gathered *g = in->g;
    struct gathered_service *s = NULL;
    int32_t day = day_of(p->time_ns);
    for (uint32_t i = 0; i < g->n_services && !s; i++)
        if (str_eq(g->services[i].name, p->series->service))
            s = &g->services[i];
    if (!s)
        s = new_service(in->ask, g, p->series->service, day);
    if (!s)
        return ask_no_memory(in->ask);
    s->first_day = day < s->first_day ? day : s->first_day;
    s->last_day = day > s->last_day ? day : s->last_day;
    if (g->tally.profiles == 0 && !arena_str(in->ask->arena, p->series->spy, &g->spy))
        return ask_no_memory(in->ask);
    if (!str_eq(g->spy, p->series->spy))
        g->spy = (struct str){NULL, 0};
    return E_OK;
}

/* The merge says only that it has no memory; past its own limit that is ours. */
static enum err merge_error(struct ask *a, enum err e, const struct fault *why)
{
    if (e == E_NO_MEMORY)
        return fault_set(&a->fault, e, NULL);
    return e == E_BAD_INPUT || e == E_INTERNAL ? fault_set(&a->fault, E_INTERNAL, "%s", why->text) : ask_too_large(a);
}

static enum err note(struct gathering *in, const struct seen_profile *p)
{
    enum err e = note_service(in, p->stored);
    return e ? e : tally_add(&in->g->tally, in->ask, p);
}

static enum err on_profile(void *ctx, const struct seen_profile *p)
{
    struct gathering *in = ctx;
    struct fault why = {0};
    enum err e = in->g->minutes.used ? E_OK : note(in, p);
    if (e)
        return e;
    in->keep = p->keep;
    e = merge_add(in->g->merge, p->view, &why);
    return e ? merge_error(in->ask, e, &why) : E_OK;
}

static enum err on_counted(void *ctx, const struct seen_profile *p)
{
    struct gathering *in = ctx;
    minutes_want(&in->g->minutes, p->stored);
    return note(in, p);
}

/* Nothing but hours: merging them is less work than minutes, and needs the symbols of their stacks only. */
static enum err count_again(struct gathering *in)
{
    struct gathered *g = in->g;
    minutes_close(&g->minutes);
    tally_close(&g->tally, NULL);
    g->n_services = 0;
    return tally_open(&g->tally, in->ask);
}

/* Which profiles count, and which minutes say so too. */
static enum err use_minutes(struct gathering *in)
{
    struct gathered *g = in->g;
    enum err e = minutes_open(&g->minutes, in->ask);
    if (e || !g->minutes.used)
        return e;
    e = scan_profiles(in->ask, &(struct scan_spec){.hours = true, .type = g->type->id, .visit = on_counted, .ctx = in});
    if (e == E_OK && g->minutes.open && minutes_none(&g->minutes))
        return count_again(in);
    if (e == E_OK)
        e = minutes_read(&g->minutes, g->type->id);
    g->total = g->minutes.total;
    return e;
}

/* What the minutes leave, or everything. */
static enum err merge_profiles(struct gathering *in, struct str type)
{
    struct minutes *m = &in->g->minutes;
    struct scan_spec spec = {.bodies = true, .hours = true, .type = type, .visit = on_profile, .ctx = in};
    if (m->used && m->open == 0)
        return E_OK;
    if (m->used) {
        spec.time_match = minutes_open_at;
        spec.time_ctx = m;
    }
    return scan_profiles(in->ask, &spec);
}

static enum err on_block(void *ctx, struct str block)
{
    struct gathering *in = ctx;
    struct fault why = {0};
    enum err e = symtab_add(in->g->symtab, block, &why);
    if (e)
        return fault_set(&in->ask->fault, e == E_BAD_INPUT ? E_INTERNAL : e, "%s", why.text);
    return symtab_bytes(in->g->symtab) > in->ask->q->memory_limit / 2 ? ask_too_large(in->ask) : ask_look(in->ask);
}

static enum err read_blocks(struct gathering *in)
{
    const struct query *q = in->ask->q;
    struct gathered *g = in->g;
    for (uint32_t i = 0; i < g->n_services; i++) {
        const struct gathered_service *s = &g->services[i];
        struct fault why = {0};
        enum err e =
            q->backend->read->symbols(q->store, q->project, s->name, s->first_day, s->last_day, on_block, in, &why);
        if (e)
            return in->ask->fault.err ? in->ask->fault.err
                                      : fault_set(&in->ask->fault, e, why.text[0] ? "%s" : NULL, why.text);
    }
    return E_OK;
}

static struct idset *stacks_of(const struct merged *m)
{
    struct idset *stacks = idset_new();
    for (uint32_t i = 0; stacks && m && i < m->n_rows; i++)
        if (m->stack[i] && !idset_add(stacks, m->stack[i])) {
            idset_free(stacks);
            return NULL;
        }
    return stacks;
}

/* The symbols of the stacks that were merged; of everything in those days where functions come from minutes. */
static enum err load_symbols(struct gathering *in)
{
    struct gathered *g = in->g;
    g->symtab = symtab_new();
    struct idset *stacks = stacks_of(g->merged);
    enum err e = g->symtab && stacks ? E_OK : fault_set(&in->ask->fault, E_NO_MEMORY, NULL);
    if (e == E_OK && !g->minutes.used)
        symtab_want(g->symtab, stacks);
    if (e == E_OK)
        e = read_blocks(in);
    if (e == E_OK && !g->minutes.used && symtab_lacks(g->symtab))
        e = read_blocks(in);
    if (g->symtab)
        symtab_want(g->symtab, NULL);
    idset_free(stacks);
    return e;
}

/* What a result holds, nearly: its columns, the table from stacks to rows, labels. */
static size_t merged_bytes(const struct merged *m)
{
    if (!m)
        return 0;
    size_t row = sizeof(*m->stack) + sizeof(*m->set) + m->n_types * sizeof(**m->values) + 4 * sizeof(uint64_t);
    return m->n_rows * row + m->n_sets * (sizeof(*m->labels) + sizeof(*m->set_at));
}

enum err gather(struct ask *a, enum gather_types types, bool by_labels, struct gathered *g)
{
    struct gathering in = {.ask = a, .g = g};
    *g = (struct gathered){0};
    enum err e = tally_open(&g->tally, a);
    if (e == E_OK && (types != GATHER_ALL_TYPES || a->params.given[PARAM_TYPE]))
        e = typesel_choose(a, &g->type);
    if (e || (!g->type && (types != GATHER_ALL_TYPES || a->params.given[PARAM_TYPE])))
        return e;
    struct merge_spec spec = {
        .type_id = g->type ? g->type->id : (struct str){NULL, 0},
        .by_labels = by_labels,
        .drop_links = !a->one_profile, /* as hours do */
        .filter = keep_sets,
        .filter_ctx = &in,
        .memory_limit = a->q->memory_limit / 2,
    };
    g->merge = merge_new(&spec);
    if (!g->merge)
        return fault_set(&a->fault, E_NO_MEMORY, NULL);
    e = types == GATHER_SHARES ? use_minutes(&in) : E_OK;
    if (e == E_OK)
        e = merge_profiles(&in, spec.type_id);
    if (e == E_OK && g->tally.profiles)
        g->merged = merge_result(g->merge);
    if (e == E_OK)
        e = load_symbols(&in);
    return e ? e : ask_spend(a, merged_bytes(g->merged) + symtab_bytes(g->symtab));
}

void gather_close(struct gathered *g)
{
    merge_free(g->merge);
    symtab_free(g->symtab);
    tally_close(&g->tally, NULL);
    minutes_close(&g->minutes);
    *g = (struct gathered){0};
}

int64_t gather_total(const struct gathered *g)
{
    bool over = false;
    return add_sat(g->merged && g->merged->n_types ? g->merged->types[0].total : 0, g->total, &over);
}

struct str gather_service(const struct ask *a, const struct gathered *g)
{
    if (a->params.value[PARAM_SERVICE].len)
        return a->params.value[PARAM_SERVICE];
    return g->n_services == 1 ? g->services[0].name : (struct str){NULL, 0};
}

static void put_window(struct json *j, const struct ask *a)
{
    char text[WINDOW_TEXT];
    window_format(a->window.from_ns, text);
    json_key(j, "from");
    json_str(j, str_of(text));
    window_format(a->window.until_ns, text);
    json_key(j, "until");
    json_str(j, str_of(text));
}

static void put_type(struct json *j, const struct gathered *g)
{
    json_key(j, "type");
    if (!g->type) {
        json_null(j);
        return;
    }
    json_open(j, '{');
    json_key(j, "id");
    json_str(j, g->type->id);
    json_key(j, "name");
    json_str(j, g->type->type);
    json_key(j, "unit");
    json_str(j, g->type->unit);
    json_key(j, "aggregation");
    json_str(j, str_of(g->type->aggregation == AGG_AVERAGE ? "average" : "sum"));
    json_close(j, '}');
}

static void put_tally(struct json *j, const struct ask *a, const struct tally *t, const char *count, const char *series,
                      uint64_t samples)
{
    json_key(j, count);
    json_uint(j, t->profiles);
    json_key(j, series);
    json_uint(j, t->series);
    json_key(j, "covered");
    json_share(j, (int64_t)(tally_covered(t, a) * 1e12), INT64_C(1000000000000));
    json_key(j, "samples");
    json_uint(j, samples);
}

void gather_head_as(struct json *j, const struct ask *a, const struct gathered *g, const char *series)
{
    put_window(j, a);
    json_key(j, "service");
    json_str(j, gather_service(a, g));
    put_type(j, g);
    json_key(j, "total");
    json_int(j, gather_total(g));
    json_key(j, "average");
    if (g->type && g->type->aggregation == AGG_AVERAGE && g->tally.profiles)
        json_ratio(j, gather_total(g), g->tally.series, g->tally.profiles);
    else
        json_null(j);
    put_tally(j, a, &g->tally, "profiles", series, g->tally.samples);
    if (g->minutes.away) {
        json_key(j, "notes");
        json_open(j, '[');
        json_str(j, STR(MINUTES_AWAY));
        json_close(j, ']');
    }
    if (g->merged && g->merged->saturated) {
        json_key(j, "saturated");
        json_bool(j, true);
    }
}

void gather_head(struct json *j, const struct ask *a, const struct gathered *g)
{
    gather_head_as(j, a, g, "series");
}

void gather_list_head(struct json *j, const struct ask *a, const struct tally *t, const char *count)
{
    put_window(j, a);
    json_key(j, "service");
    json_str(j, a->params.value[PARAM_SERVICE]);
    put_tally(j, a, t, count, "series", t->samples);
}
