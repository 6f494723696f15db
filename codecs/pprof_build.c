/* pprof tables to a normalised profile: checks, types and units, then every sample once. design.md 4, protocol.md 2.6.
 */
#include "codecs/pprof_symbols.h"

/* One kept sample type: which value of a sample it is, and what to multiply it by. */
struct column {
    uint32_t value;
    int64_t factor;
};
struct build {
    const struct pprof *d;
    const struct pprof_reading *how;
    struct arena *a;
    struct profile *p;
    struct fault *f;
    struct symbol_build sym;
    struct column *columns;

    struct index id_stacks; /* by location ids: sample id_sample[i] has stack id_stack[i] */
    VEC(uint32_t) id_sample, id_stack;
    struct index stacks; /* by frames */
    VEC(uint32_t) stack_at, stack_frames;
    VEC(uint32_t) row_of_stack; /* first row of a stack */
    struct index rows;          /* of further (stack, set) */
    int64_t *row;               /* values of the sample at hand */
    uint32_t *deep, depth;      /* its frames, filled from the end: root first */
    uint32_t n_rows;
};

static enum err bad(struct build *b, const char *what)
{
    return fault_set(b->f, E_BAD_INPUT, "malformed pprof: %s", what);
}

static enum err no_room(struct build *b)
{
    return arena_error(b->a, b->f);
}

static enum err check_labels(struct build *b)
{
    const struct pprof *d = b->d;

    for (uint32_t i = 0; i < d->labels.n; i++) {
        const struct pprof_label *l = &d->labels.p[i];
        if (l->key_s >= d->strings.n || (l->str_s && l->str_s >= d->strings.n) ||
            (l->unit_s && l->unit_s >= d->strings.n))
            return bad(b, "sample label string index out of range");
    }
    return E_OK;
}

static enum err check_functions(struct build *b)
{
    const struct pprof *d = b->d;
    bool lost = d->functions.n == d->locations.n && b->how->dotnet;

    for (uint32_t i = 0; i < d->functions.n; i++) {
        const struct pprof_function *fn = &d->functions.p[i];
        lost = lost && fn->id == 0;
        if (fn->name_s >= d->strings.n)
            return bad(b, "function name string index out of range");
        if (fn->system_name_s >= d->strings.n)
            return bad(b, "function system name string index out of range");
        if (fn->file_s >= d->strings.n)
            return bad(b, "function file name string index out of range");
    }
    for (uint32_t i = 0; i < d->functions.n && !lost; i++)
        if (d->functions.p[i].id == 0)
            return bad(b, "function id is 0");
    b->sym.function_ids_lost = lost && d->functions.n;
    return E_OK;
}

/* Every reference into the string table, used or not. */
static enum err check(struct build *b)
{
    const struct pprof *d = b->d;

    if (d->types.n == 0)
        return fault_set(b->f, E_BAD_INPUT, "empty profile: it has no sample types");
    if (d->strings.n == 0)
        return bad(b, "no string table");
    for (uint32_t i = 0; i < d->types.n; i++)
        if (d->types.p[i].type_s >= d->strings.n || d->types.p[i].unit_s >= d->strings.n)
            return bad(b, "sample type string index out of range");
    if (d->period_type.type_s >= d->strings.n || d->period_type.unit_s >= d->strings.n)
        return bad(b, "period type string index out of range");
    for (uint32_t i = 0; i < d->mappings.n; i++)
        if (d->mappings.p[i].file_s >= d->strings.n || d->mappings.p[i].build_id_s >= d->strings.n)
            return bad(b, "mapping string index out of range");
    for (uint32_t i = 0; i < d->comments.n; i++)
        if (d->comments.p[i] >= d->strings.n)
            return bad(b, "comment string index out of range");
    for (uint32_t i = 0; i < d->locations.n; i++)
        if (d->locations.p[i].id == 0)
            return bad(b, "location id is 0");
    if (d->n_samples && d->n_values != d->types.n)
        return fault_set(b->f, E_BAD_INPUT, "sample value length mismatch: %u values for %u sample types", d->n_values,
                         d->types.n);
    if (check_functions(b) != E_OK)
        return b->f->err;
    return check_labels(b);
}

static enum err period(struct build *b)
{
    const struct pprof *d = b->d;
    struct unit u = unit_normal(symbol_text(d, d->period_type.unit_s));

    b->p->period_type = symbol_text(d, d->period_type.type_s);
    b->p->period_unit = u.name;
    b->p->period = unit_scale(d->period, u.factor, &b->p->drops.saturated);
    b->p->time_ns = d->time_ns;
    b->p->duration_ns = d->duration_ns;
    return E_OK;
}

static bool is_cumulative(const struct build *b, struct str sent, struct str name)
{
    if (b->how->cumulative && type_aggregation(name) == AGG_SUM)
        return true;
    for (uint32_t i = 0; i < b->how->n_config; i++)
        if (b->how->config[i].cumulative && str_eq(b->how->config[i].type, sent))
            return true;
    return false;
}

static bool underscored(struct build *b, struct str *name)
{
    struct str copy;

    if (!b->how->dotnet || !memchr(name->len ? name->p : "", '-', name->len))
        return true;
    char *p = NEW(b->a, char, name->len + 1);
    if (!p)
        return false;
    copy = (struct str){p, name->len};
    for (size_t i = 0; i < name->len; i++)
        p[i] = name->p[i] == '-' ? '_' : name->p[i];
    *name = copy;
    return true;
}

/* samples/count stands for cpu time where nothing else does. */
static bool counts_cpu(const struct build *b)
{
    if (!str_eq(b->p->period_type, STR("cpu")) || !str_eq(b->p->period_unit, STR("nanoseconds")) || b->p->period <= 0)
        return false;
    for (uint32_t i = 0; i < b->d->types.n; i++)
        if (str_eq(symbol_text(b->d, b->d->types.p[i].type_s), STR("cpu")))
            return false;
    return true;
}

static enum err add_type(struct build *b, uint32_t i, struct buf *refused)
{
    struct str sent = symbol_text(b->d, b->d->types.p[i].type_s), name = sent;
    struct unit u = unit_normal(symbol_text(b->d, b->d->types.p[i].unit_s));
    struct profile *p = b->p;

    if (!underscored(b, &name))
        return no_room(b);
    if (is_cumulative(b, sent, name)) {
        buf_printf(refused, "%s%.*s", refused->len ? ", " : "", STR_ARG(name));
        return E_OK;
    }
    if (str_eq(name, STR("samples")) && str_eq(u.name, STR("count")) && counts_cpu(b)) {
        name = STR("cpu");
        u = (struct unit){STR("nanoseconds"), p->period};
    }
    for (uint32_t k = 0; k < p->n_types; k++)
        if (str_eq(p->types[k].type, name) && str_eq(p->types[k].unit, u.name))
            return fault_set(b->f, E_BAD_INPUT, "sample type %.*s/%.*s appears twice", STR_ARG(name), STR_ARG(u.name));
    b->columns[p->n_types] = (struct column){i, u.factor};
    p->types[p->n_types++] = (struct sample_type){.type = name, .unit = u.name, .aggregation = type_aggregation(name)};
    return E_OK;
}

static void choose_primary(struct profile *p)
{
    int best = INT32_MAX;

    for (uint32_t t = 0; t < p->n_types; t++) {
        int rank = type_primary_rank(p->types[t].type, p->types[t].unit);
        if (rank < best) {
            best = rank;
            p->primary = t;
        }
    }
}

static enum err types(struct build *b, struct str *refused)
{
    struct buf names = {0};
    enum err e = E_OK;

    if (b->d->types.n > 64)
        return fault_set(b->f, E_BAD_INPUT, "profile has %u sample types, 64 are the most", b->d->types.n);
    b->p->types = NEW(b->a, struct sample_type, b->d->types.n);
    b->columns = NEW(b->a, struct column, b->d->types.n);
    if (!b->p->types || !b->columns)
        return no_room(b);
    for (uint32_t i = 0; i < b->d->types.n && e == E_OK; i++)
        e = add_type(b, i, &names);
    if (e == E_OK && names.failed)
        e = fault_set(b->f, E_NO_MEMORY, NULL);
    if (e == E_OK && !arena_str(b->a, buf_view(&names), refused))
        e = no_room(b);
    if (e == E_OK && b->p->n_types == 0)
        e = fault_set(b->f, E_CUMULATIVE, "%.*s: cumulative since start; send deltas", STR_ARG(*refused));
    buf_free(&names);
    choose_primary(b->p);
    return e;
}

static enum err comments(struct build *b)
{
    struct buf text = {0};

    for (uint32_t i = 0; i < b->d->comments.n; i++) {
        if (i)
            buf_char(&text, '\n');
        buf_str(&text, symbol_text(b->d, b->d->comments.p[i]));
        if (text.len > b->d->in->limits->field)
            break;
    }
    bool good = !text.failed && arena_str(b->a, buf_view(&text), &b->p->comment);
    enum err e = good ? E_OK : text.failed ? fault_set(b->f, E_NO_MEMORY, NULL) : no_room(b);
    buf_free(&text);
    return e;
}

/* The values of sample i into b->row; whether there is anything in them. */
static bool values_of(struct build *b, uint32_t i)
{
    const int64_t *v = b->d->values.p + (size_t)i * b->d->n_values;
    bool any = false;

    for (uint32_t t = 0; t < b->p->n_types; t++) {
        int64_t x = v[b->columns[t].value];
        if (x < 0) {
            b->p->drops.negative_values++;
            x = 0;
        }
        if (b->columns[t].factor != 1)
            x = unit_scale(x, b->columns[t].factor, &b->p->drops.saturated);
        b->row[t] = x;
        any |= x != 0;
    }
    return any;
}

/* Frames of sample i into the end of b->deep; *n how many. The leaf side wins where there are too many. */
static enum symbol_result frames_of(struct build *b, uint32_t i, uint32_t *n)
{
    const struct pprof *d = b->d;
    uint32_t cap = b->depth, have = 0;

    for (uint32_t k = d->sample_at.p[i]; k < d->sample_at.p[i + 1]; k++) {
        uint32_t at, end;
        if (!symbol_location_again(&b->sym, d->sample_ids.p[k], &at, &end)) {
            enum symbol_result r = symbol_location(&b->sym, d->sample_ids.p[k], &at, &end);
            if (r != SYMBOL_OK)
                return r;
        }
        for (; at < end && have < cap; at++)
            b->deep[cap - ++have] = b->sym.location_frames.p[at];
        if (at < end || (have == cap && k + 1 < d->sample_at.p[i + 1])) {
            b->p->drops.truncated_stacks++;
            *n = have;
            return symbol_truncated(&b->sym, &b->deep[cap - have]);
        }
    }
    *n = have;
    return SYMBOL_OK;
}

static enum symbol_result intern_stack(struct build *b, const uint32_t *frames, uint32_t n, uint32_t *stack)
{
    uint64_t hash = hash64(b->sym.key, frames, n * sizeof *frames);
    struct probe at;

    for (uint32_t i = index_first(&b->stacks, hash, &at); i != INDEX_NONE; i = index_next(&b->stacks, &at)) {
        uint32_t from = b->stack_at.p[i];
        if (b->stack_at.p[i + 1] - from == n &&
            (n == 0 || memcmp(b->stack_frames.p + from, frames, n * sizeof *frames) == 0)) {
            *stack = i;
            return SYMBOL_OK;
        }
    }
    uint32_t i = b->row_of_stack.n;
    if (!VEC_ROOM(b->a, &b->stack_frames, n) || !VEC_ROOM(b->a, &b->stack_at, 1) ||
        !VEC_ROOM(b->a, &b->row_of_stack, 1) || !index_add(&b->stacks, b->a, hash, i))
        return SYMBOL_NO_ROOM;
    if (n)
        memcpy(b->stack_frames.p + b->stack_frames.n, frames, n * sizeof *frames);
    b->stack_frames.n += n;
    b->stack_at.p[b->stack_at.n++] = b->stack_frames.n;
    b->row_of_stack.p[b->row_of_stack.n++] = PROFILE_NONE;
    *stack = i;
    return SYMBOL_OK;
}

/* Equal location ids are equal stacks: that spares most of the work where a profile repeats them. */
static enum symbol_result stack_of(struct build *b, uint32_t i, uint32_t *stack)
{
    const struct pprof *d = b->d;
    const uint32_t *ids = d->sample_ids.p + d->sample_at.p[i];
    uint32_t n = d->sample_at.p[i + 1] - d->sample_at.p[i], frames = 0;
    uint64_t hash = hash64(b->sym.key, n ? ids : &n, n * sizeof *ids);
    struct probe at;

    for (uint32_t k = index_first(&b->id_stacks, hash, &at); k != INDEX_NONE; k = index_next(&b->id_stacks, &at)) {
        uint32_t s = b->id_sample.p[k], from = d->sample_at.p[s];
        if (d->sample_at.p[s + 1] - from == n &&
            (n == 0 || memcmp(d->sample_ids.p + from, ids, n * sizeof *ids) == 0)) {
            *stack = b->id_stack.p[k];
            return SYMBOL_OK;
        }
    }
    enum symbol_result r = frames_of(b, i, &frames);
    if (r == SYMBOL_OK)
        r = intern_stack(b, b->deep + b->depth - frames, frames, stack);
    if (r != SYMBOL_OK)
        return r;
    if (!VEC_ROOM(b->a, &b->id_sample, 1) || !VEC_ROOM(b->a, &b->id_stack, 1) ||
        !index_add(&b->id_stacks, b->a, hash, b->id_sample.n))
        return SYMBOL_NO_ROOM;
    b->id_sample.p[b->id_sample.n++] = i;
    b->id_stack.p[b->id_stack.n++] = *stack;
    return SYMBOL_OK;
}

static void add_row(struct build *b, uint32_t stack, uint32_t set)
{
    struct profile *p = b->p;
    uint32_t r = b->n_rows++;

    p->sample_stack[r] = stack;
    p->sample_set[r] = set;
    for (uint32_t t = 0; t < p->n_types; t++)
        p->values[t][r] = b->row[t];
}

/* The row of (stack, set): the stack's first one, or one from the index. *fresh: it is new, with the values of b->row.
 */
static enum symbol_result row_of(struct build *b, uint32_t stack, uint32_t set, uint32_t *row, bool *fresh)
{
    struct profile *p = b->p;
    uint32_t *first = &b->row_of_stack.p[stack];
    uint32_t pair[2] = {stack, set};
    struct probe at;

    *fresh = *first == PROFILE_NONE;
    if (*fresh)
        *first = b->n_rows;
    *row = *first;
    if (!*fresh && p->sample_set[*first] != set) {
        uint64_t hash = hash64(b->sym.key, pair, sizeof pair);
        *row = index_first(&b->rows, hash, &at);
        while (*row != INDEX_NONE && (p->sample_stack[*row] != stack || p->sample_set[*row] != set))
            *row = index_next(&b->rows, &at);
        *fresh = *row == INDEX_NONE;
        if (*fresh && !index_add(&b->rows, b->a, hash, b->n_rows))
            return SYMBOL_NO_ROOM;
    }
    if (*fresh)
        add_row(b, stack, set);
    return SYMBOL_OK;
}

static enum symbol_result take_sample(struct build *b, uint32_t i)
{
    struct profile *p = b->p;
    uint32_t stack, set, row;
    bool fresh;

    if (!values_of(b, i)) {
        p->drops.zero_samples++;
        return SYMBOL_OK;
    }
    enum symbol_result r = stack_of(b, i, &stack);
    if (r == SYMBOL_OK)
        r = symbol_set(&b->sym, b->d->sample_set.p[i], &set);
    if (r == SYMBOL_OK)
        r = row_of(b, stack, set, &row, &fresh);
    if (r == SYMBOL_BROKEN) {
        p->drops.broken_references++;
        return SYMBOL_OK;
    }
    for (uint32_t t = 0; r == SYMBOL_OK && t < p->n_types; t++) {
        p->types[t].total = add_sat(p->types[t].total, b->row[t], &p->drops.saturated);
        if (!fresh)
            p->values[t][row] = add_sat(p->values[t][row], b->row[t], &p->drops.saturated);
    }
    return r;
}

static bool columns(struct build *b)
{
    struct profile *p = b->p;
    uint32_t n = b->d->n_samples;

    b->depth = b->d->in->limits->depth ? b->d->in->limits->depth : 1;
    b->row = NEW(b->a, int64_t, p->n_types);
    b->deep = NEW(b->a, uint32_t, b->depth);
    p->sample_stack = NEW(b->a, uint32_t, n);
    p->sample_set = NEW(b->a, uint32_t, n);
    p->values = NEW(b->a, int64_t *, p->n_types);
    if (!b->row || !b->deep || !p->sample_stack || !p->sample_set || !p->values || !VEC_ROOM(b->a, &b->stack_at, 1))
        return false;
    if (!VEC_ROOM(b->a, &b->stack_frames, 1) || !index_reserve(&b->id_stacks, b->a, n) ||
        !index_reserve(&b->stacks, b->a, n))
        return false;
    b->stack_at.n = 1;
    for (uint32_t t = 0; t < p->n_types; t++)
        if (!(p->values[t] = NEW(b->a, int64_t, n)))
            return false;
    return symbol_build_init(&b->sym);
}

static void publish(struct build *b)
{
    struct profile *p = b->p;

    p->mappings = b->sym.mappings.p;
    p->n_mappings = b->sym.mappings.n;
    p->functions = b->sym.functions.p;
    p->n_functions = b->sym.functions.n;
    p->frames = b->sym.frames.p;
    p->n_frames = b->sym.frames.n;
    p->stack_at = b->stack_at.p;
    p->stack_frames = b->stack_frames.p;
    p->n_stacks = b->row_of_stack.n;
    p->set_at = b->sym.set_at.p;
    p->labels = b->sym.labels.p;
    p->n_sets = b->sym.n_sets;
    p->n_samples = b->n_rows;
}

static enum err samples(struct build *b)
{
    struct drops *d = &b->p->drops;

    if (!columns(b))
        return no_room(b);
    for (uint32_t i = 0; i < b->d->n_samples; i++)
        if (take_sample(b, i) != SYMBOL_OK)
            return no_room(b);
    publish(b);
    if (b->n_rows == 0 && d->broken_references)
        return fault_set(b->f, E_BAD_INPUT,
                         "no sample survives: %u of %u name a location or function that does not exist",
                         d->broken_references, b->d->n_samples);
    return E_OK;
}

enum err pprof_build(const struct pprof *d, const struct pprof_reading *how, struct arena *a, struct profile *p,
                     struct str *refused, struct fault *f)
{
    struct build *b = NEW(a, struct build, 1);

    if (!b)
        return arena_error(a, f);
    *b = (struct build){.d = d, .how = how, .a = a, .p = p, .f = f};
    b->sym.d = d;
    b->sym.a = a;
    b->sym.key = d->in->spec->key;
    enum err e = check(b);
    if (e == E_OK)
        e = period(b);
    if (e == E_OK)
        e = types(b, refused);
    if (e == E_OK)
        e = comments(b);
    return e == E_OK ? samples(b) : e;
}

struct str pprof_type_name(const struct pprof *d, uint32_t i)
{
    return i < d->types.n ? symbol_text(d, d->types.p[i].type_s) : STR("");
}
