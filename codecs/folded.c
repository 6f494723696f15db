/* Lines to stacks, with the line number in every complaint; stacks to a profile of one type. design.md 4, cases C41 and
 * C43. */
#include "codecs/folded.h"

#include "codecs/profile.h"

static enum step bad_line(struct folded *d, const char *what)
{
    (void)fault_set(d->fault, E_BAD_INPUT, "folded text, line %llu: %s", (unsigned long long)d->line, what);
    return STEP_FAIL;
}

/* Strict decimal, 0 to 2^63-1. */
static bool count_parse(struct str s, int64_t *v)
{
    *v = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        if (__builtin_mul_overflow(*v, 10, v) || __builtin_add_overflow(*v, s.p[i] - '0', v))
            return false;
    }
    return s.len > 0;
}

static bool name_of(struct folded *d, struct str s, uint32_t *out)
{
    uint64_t hash = hash64(d->in->spec->key, s.p, s.len);
    struct probe at;

    *out = index_first(&d->name_index, hash, &at);
    while (*out != INDEX_NONE && !str_eq(d->names.p[*out], s))
        *out = index_next(&d->name_index, &at);
    if (*out != INDEX_NONE)
        return true;
    struct str copy;
    if (!arena_str(d->in->arena, s, &copy) || !VEC_ROOM(d->in->arena, &d->names, 1) ||
        !index_add(&d->name_index, d->in->arena, hash, d->names.n))
        return false;
    *out = d->names.n;
    d->names.p[d->names.n++] = copy;
    return true;
}

static bool new_stack(struct folded *d, const uint32_t *names, uint32_t n, uint64_t hash)
{
    struct arena *a = d->in->arena;

    if (!VEC_ROOM(a, &d->stack_names, n) || !VEC_ROOM(a, &d->stack_at, 1) || !VEC_ROOM(a, &d->counts, 1) ||
        !index_add(&d->stack_index, a, hash, d->n_stacks))
        return false;
    if (n)
        memcpy(d->stack_names.p + d->stack_names.n, names, n * sizeof *names);
    d->stack_names.n += n;
    d->stack_at.p[d->stack_at.n++] = d->stack_names.n;
    d->counts.p[d->counts.n++] = 0;
    d->n_stacks++;
    return true;
}

static enum step add_stack(struct folded *d, const uint32_t *names, uint32_t n, int64_t count)
{
    uint64_t hash = hash64(d->in->spec->key, names, n * sizeof *names);
    struct probe at;
    uint32_t i = index_first(&d->stack_index, hash, &at);

    for (; i != INDEX_NONE; i = index_next(&d->stack_index, &at)) {
        uint32_t from = d->stack_at.p[i];
        if (d->stack_at.p[i + 1] - from == n &&
            (n == 0 || memcmp(d->stack_names.p + from, names, n * sizeof *names) == 0))
            break;
    }
    if (i == INDEX_NONE) {
        i = d->n_stacks;
        if (i >= d->in->limits->samples) {
            (void)fault_set(d->fault, E_TOO_MANY_SAMPLES, "profile has more stacks than limits.samples (%u): %u seen",
                            d->in->limits->samples, i + 1);
            return STEP_FAIL;
        }
        if (!new_stack(d, names, n, hash))
            return intake_no_room(d->in);
    }
    d->counts.p[i] = add_sat(d->counts.p[i], count, &d->saturated);
    return STEP_MORE;
}

static uint32_t depth_of(const struct folded *d)
{
    return d->in->limits->depth ? d->in->limits->depth : 1;
}

/* From the leaf up, so that the leaf side stays where a stack is too deep. One ';' at the end adds nothing. */
static enum step take_stack(struct folded *d, struct str stack, int64_t count)
{
    uint32_t cap = depth_of(d), n = 0;
    bool more = str_trim(stack).len != 0;

    if (more && stack.p[stack.len - 1] == ';')
        stack.len--;
    while (more && n < cap) {
        const char *semi = stack.len ? memrchr(stack.p, ';', stack.len) : NULL;
        size_t at = semi ? (size_t)(semi - stack.p) + 1 : 0;
        if (!name_of(d, (struct str){stack.p + at, stack.len - at}, &d->deep[cap - ++n]))
            return intake_no_room(d->in);
        more = semi != NULL;
        stack.len = more ? at - 1 : 0;
    }
    if (more) {
        d->truncated++;
        if (!name_of(d, STR("[truncated]"), &d->deep[cap - n]))
            return intake_no_room(d->in);
    }
    return add_stack(d, d->deep + cap - n, n, count);
}

static enum step take_line(struct folded *d, struct str line)
{
    int64_t count;

    d->line++;
    while (line.len && (line.p[line.len - 1] == '\r' || line.p[line.len - 1] == ' ' || line.p[line.len - 1] == '\t'))
        line.len--;
    if (line.len == 0 || line.p[0] == '#')
        return STEP_MORE;
    const char *space = memrchr(line.p, ' ', line.len);
    if (!space)
        return bad_line(d, "no count at its end");
    struct str number = {space + 1, line.len - (size_t)(space + 1 - line.p)};
    if (!count_parse(number, &count))
        return bad_line(d, "its count is not a whole number from 0 to 9223372036854775807");
    if (!utf8_valid(line))
        return bad_line(d, "invalid UTF-8");
    if (count == 0) {
        d->zero_lines++;
        return STEP_MORE;
    }
    return take_stack(d, (struct str){line.p, (size_t)(space - line.p)}, count);
}

struct folded *folded_new(struct intake *in, struct fault *f)
{
    struct folded *d = NEW(in->arena, struct folded, 1);

    if (d) {
        d->in = in;
        d->fault = f;
        d->deep = NEW(in->arena, uint32_t, depth_of(d));
    }
    if (!d || !d->deep || !VEC_ROOM(in->arena, &d->stack_at, 1) || !VEC_ROOM(in->arena, &d->stack_names, 1)) {
        (void)intake_no_room(in);
        return NULL;
    }
    d->stack_at.n = 1;
    return d;
}

static enum step carry(struct folded *d, struct str piece)
{
    size_t need = d->carried + piece.len;

    if (need > d->in->limits->field) {
        (void)fault_set(d->fault, E_PROFILE_TOO_LARGE,
                        "folded text, line %llu is longer than limits.field (%zu bytes): %zu so far",
                        (unsigned long long)d->line + 1, d->in->limits->field, need);
        return STEP_FAIL;
    }
    if (need > d->carry_cap) {
        size_t cap = need < 256 ? 256 : need * 2;
        char *p = GROW(d->in->arena, d->carry, char, d->carry_cap, cap);
        if (!p)
            return intake_no_room(d->in);
        d->carry = p;
        d->carry_cap = cap;
    }
    if (piece.len)
        memcpy(d->carry + d->carried, piece.p, piece.len);
    d->carried = need;
    return STEP_MORE;
}

/* Up to and with one line end, or all of a piece without one. */
static enum step step_line(struct folded *d, struct str *in)
{
    const char *end = memchr(in->p, '\n', in->len);
    struct str piece = {in->p, end ? (size_t)(end - in->p) : in->len};
    enum step s = STEP_MORE;

    in->p += piece.len + (end != NULL);
    in->len -= piece.len + (end != NULL);
    if (!end || d->carried || piece.len > d->in->limits->field)
        s = carry(d, piece);
    if (!end || s != STEP_MORE)
        return s;
    if (d->carried)
        piece = (struct str){d->carry, d->carried};
    d->carried = 0;
    return take_line(d, piece);
}

enum step folded_feed(struct folded *d, struct str *in, uint32_t *budget)
{
    struct str left = budget_slice(*in, *budget);
    size_t given = left.len;
    enum step s = STEP_MORE;

    d->any |= given != 0;
    while (left.len && s == STEP_MORE)
        s = step_line(d, &left);
    in->p += given - left.len;
    in->len -= given - left.len;
    budget_take(budget, given - left.len);
    if (s != STEP_MORE)
        return s;
    return in->len ? STEP_AGAIN : STEP_MORE;
}

enum step folded_end(struct folded *d)
{
    struct str last = {d->carry, d->carried};

    d->carried = 0;
    return last.len ? take_line(d, last) : STEP_MORE;
}

size_t folded_build_memory(const struct folded *d)
{
    return (size_t)d->names.n * (sizeof(struct function) + sizeof(struct frame)) + (size_t)d->n_stacks * 16 + 64 * 1024;
}

/* floor(1e9 / rate); a rate that is no whole number, or more than that, is 100; 0 is none. */
static int64_t period_of(struct str rate)
{
    int64_t v;

    if (!count_parse(rate, &v) || v > 1000000000)
        v = 100;
    return v ? 1000000000 / v : 0;
}

static bool symbols(const struct folded *d, struct arena *a, struct profile *p)
{
    p->n_functions = p->n_frames = d->names.n;
    p->functions = NEW(a, struct function, p->n_functions);
    p->frames = NEW(a, struct frame, p->n_frames);
    if (!p->functions || !p->frames)
        return false;
    for (uint32_t i = 0; i < d->names.n; i++) {
        p->functions[i].name = d->names.p[i];
        p->frames[i] = (struct frame){.function = i, .mapping = PROFILE_NONE};
    }
    return true;
}

static bool rows(const struct folded *d, struct arena *a, struct profile *p, int64_t factor)
{
    p->n_samples = p->n_stacks = d->n_stacks;
    p->stack_at = d->stack_at.p;
    p->stack_frames = d->stack_names.p;
    p->sample_stack = NEW(a, uint32_t, p->n_samples);
    p->sample_set = NEW(a, uint32_t, p->n_samples);
    p->set_at = NEW(a, uint32_t, 2);
    p->n_sets = 1;
    p->values = NEW(a, int64_t *, 1);
    if (!p->sample_stack || !p->sample_set || !p->set_at || !p->values)
        return false;
    p->values[0] = NEW(a, int64_t, p->n_samples);
    for (uint32_t i = 0; p->values[0] && i < p->n_samples; i++) {
        p->sample_stack[i] = i;
        p->values[0][i] = unit_scale(d->counts.p[i], factor, &p->drops.saturated);
        p->types[0].total = add_sat(p->types[0].total, p->values[0][i], &p->drops.saturated);
    }
    return p->values[0] != NULL;
}

enum err folded_build(const struct folded *d, const struct folded_reading *how, struct arena *a, struct profile *p,
                      struct fault *f)
{
    int64_t period = how->type->timed ? period_of(how->sample_rate) : 0;
    bool scaled = period > 0;

    p->types = NEW(a, struct sample_type, 1);
    if (!p->types)
        return arena_error(a, f);
    p->n_types = 1;
    p->types[0].type = str_of(how->type->timed && !scaled ? "samples" : how->type->type);
    p->types[0].unit = str_of(how->type->timed && !scaled ? "count" : how->type->unit);
    p->types[0].aggregation = type_aggregation(p->types[0].type);
    if (scaled) {
        p->period_type = STR("cpu");
        p->period_unit = STR("nanoseconds");
        p->period = period;
    }
    p->drops.truncated_stacks = d->truncated;
    p->drops.zero_samples = d->zero_lines;
    p->drops.saturated = d->saturated;
    if (!symbols(d, a, p) || !rows(d, a, p, scaled ? period : 1))
        return arena_error(a, f);
    return E_OK;
}
