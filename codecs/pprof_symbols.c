/* Interning by content: equal strings, mappings, functions, frames and label sets become one, whatever ids they were
 * sent with. */
#include "codecs/pprof_symbols.h"

#include <stdlib.h>

#define ABSENT UINT32_MAX

/* String number strings.n is ours. */
struct str symbol_text(const struct pprof *d, uint32_t string)
{
    return string < d->strings.n ? d->strings.p[string] : STR("[truncated]");
}

/* The first string with this content. false: no room. */
static bool canonical(struct symbol_build *b, uint32_t string, uint32_t *out)
{
    struct probe at;

    if (b->canon[string]) {
        *out = b->canon[string] - 1;
        return true;
    }
    struct str s = symbol_text(b->d, string);
    uint64_t hash = hash64(b->key, s.p, s.len);
    uint32_t i = index_first(&b->strings, hash, &at);
    while (i != INDEX_NONE && !str_eq(symbol_text(b->d, i), s))
        i = index_next(&b->strings, &at);
    if (i == INDEX_NONE && !index_add(&b->strings, b->a, hash, i = string))
        return false;
    b->canon[string] = i + 1;
    *out = i;
    return true;
}

static uint32_t id_at(const void *first_id, size_t stride, uint32_t i)
{
    uint32_t id;
    memcpy(&id, (const char *)first_id + i * stride, sizeof id);
    return id;
}

static uint64_t id_hash(const struct symbol_build *b, uint32_t id)
{
    return hash64(b->key, &id, sizeof id);
}

/* Of rows with one id the last one counts, as in google/pprof. */
static bool rows_build(struct symbol_build *b, struct id_rows *r, const void *first_id, size_t stride, uint32_t n)
{
    uint32_t max = 0;

    for (uint32_t i = 0; i < n; i++)
        max = id_at(first_id, stride, i) > max ? id_at(first_id, stride, i) : max;
    if (max < 4 * (uint64_t)n + 1024) {
        r->n_dense = max + 1;
        r->dense = NEW(b->a, uint32_t, r->n_dense);
        for (uint32_t i = 0; r->dense && i < n; i++)
            r->dense[id_at(first_id, stride, i)] = i + 1;
        return r->dense != NULL;
    }
    for (uint32_t i = n; i-- > 0;) {
        struct probe at;
        uint32_t id = id_at(first_id, stride, i), k = index_first(&r->sparse, id_hash(b, id), &at);
        while (k != INDEX_NONE && id_at(first_id, stride, k) != id)
            k = index_next(&r->sparse, &at);
        if (k == INDEX_NONE && !index_add(&r->sparse, b->a, id_hash(b, id), i))
            return false;
    }
    return true;
}

/* Id 0 is never a row. */
static uint32_t row_of(const struct symbol_build *b, const struct id_rows *r, const void *first_id, size_t stride,
                       uint32_t id)
{
    struct probe at;

    if (id == 0)
        return ABSENT;
    if (r->dense)
        return id < r->n_dense && r->dense[id] ? r->dense[id] - 1 : ABSENT;
    uint32_t k = index_first(&r->sparse, id_hash(b, id), &at);
    while (k != INDEX_NONE && id_at(first_id, stride, k) != id)
        k = index_next(&r->sparse, &at);
    return k;
}

static const void *function_ids(const struct symbol_build *b, size_t *stride)
{
    *stride = b->function_ids_lost ? sizeof(struct pprof_location) : sizeof(struct pprof_function);
    if (b->d->functions.n == 0)
        return NULL;
    return b->function_ids_lost ? (const void *)&b->d->locations.p->id : (const void *)&b->d->functions.p->id;
}

bool symbol_build_init(struct symbol_build *b)
{
    const struct pprof *d = b->d;
    size_t stride;
    const void *ids = function_ids(b, &stride);

    b->canon = NEW(b->a, uint32_t, (size_t)d->strings.n + 1);
    b->location_at = NEW(b->a, uint32_t, d->locations.n);
    b->location_end = NEW(b->a, uint32_t, d->locations.n);
    b->function_done = NEW(b->a, uint32_t, d->functions.n);
    b->mapping_done = NEW(b->a, uint32_t, d->mappings.n);
    b->set_done = NEW(b->a, uint32_t, d->n_sets);
    if (!b->canon || !b->location_at || !b->location_end || !b->function_done || !b->mapping_done || !b->set_done)
        return false;
    if (!VEC_ROOM(b->a, &b->set_at, 2) || !VEC_ROOM(b->a, &b->labels, 1) ||
        !index_reserve(&b->strings, b->a, d->strings.n) || !index_reserve(&b->function_index, b->a, d->functions.n) ||
        !index_reserve(&b->frame_index, b->a, d->lines.n))
        return false;
    b->set_at.n = 2;
    b->n_sets = 1;
    b->set_done[0] = 1;
    return rows_build(b, &b->location_rows, d->locations.n ? &d->locations.p->id : NULL, sizeof *d->locations.p,
                      d->locations.n) &&
           rows_build(b, &b->function_rows, ids, stride, d->functions.n) &&
           rows_build(b, &b->mapping_rows, d->mappings.n ? &d->mappings.p->id : NULL, sizeof *d->mappings.p,
                      d->mappings.n);
}

static bool key_same(const struct symbol_key *a, const struct symbol_key *b)
{
    return a->start_line == b->start_line && a->name == b->name && a->system_name == b->system_name &&
           a->file == b->file && a->build_id == b->build_id;
}

/* Where `k` is among keys, or ABSENT. */
static uint32_t find_key(const struct index *x, const struct symbol_key *keys, const struct symbol_key *k,
                         uint64_t hash)
{
    struct probe at;
    uint32_t i = index_first(x, hash, &at);

    while (i != INDEX_NONE && !key_same(&keys[i], k))
        i = index_next(x, &at);
    return i;
}

static bool new_mapping(struct symbol_build *b, const struct pprof_mapping *m, const struct symbol_key *k,
                        uint64_t hash)
{
    if (!VEC_ROOM(b->a, &b->mappings, 1) || !VEC_ROOM(b->a, &b->mapping_keys, 1) ||
        !index_add(&b->mapping_index, b->a, hash, b->mappings.n))
        return false;
    b->mapping_keys.p[b->mapping_keys.n++] = *k;
    b->mappings.p[b->mappings.n++] = (struct mapping){.file = symbol_text(b->d, m->file_s),
                                                      .build_id = symbol_text(b->d, m->build_id_s),
                                                      .start = m->start,
                                                      .limit = m->limit,
                                                      .offset = m->offset};
    return true;
}

/* *out is PROFILE_NONE for a mapping that names nothing. */
static bool mapping_of(struct symbol_build *b, uint32_t row, uint32_t *out)
{
    struct symbol_key k = {0};

    *out = PROFILE_NONE;
    if (row == ABSENT)
        return true;
    const struct pprof_mapping *m = &b->d->mappings.p[row];
    if (symbol_text(b->d, m->file_s).len == 0 && symbol_text(b->d, m->build_id_s).len == 0)
        return true;
    if (!b->mapping_done[row]) {
        if (!canonical(b, m->file_s, &k.file) || !canonical(b, m->build_id_s, &k.build_id))
            return false;
        uint64_t hash = hash64(b->key, &k, sizeof k);
        uint32_t i = find_key(&b->mapping_index, b->mapping_keys.p, &k, hash);
        if (i == ABSENT && !new_mapping(b, m, &k, hash))
            return false;
        b->mapping_done[row] = (i == ABSENT ? b->mappings.n - 1 : i) + 1;
    }
    *out = b->mapping_done[row] - 1;
    return true;
}

static bool intern_function(struct symbol_build *b, const struct symbol_key *k, uint32_t *out)
{
    uint64_t hash = hash64(b->key, k, sizeof *k);

    *out = find_key(&b->function_index, b->function_keys.p, k, hash);
    if (*out != ABSENT)
        return true;
    if (!VEC_ROOM(b->a, &b->functions, 1) || !VEC_ROOM(b->a, &b->function_keys, 1) ||
        !index_add(&b->function_index, b->a, hash, b->functions.n))
        return false;
    *out = b->functions.n;
    b->function_keys.p[b->function_keys.n++] = *k;
    b->functions.p[b->functions.n++] = (struct function){.name = symbol_text(b->d, k->name),
                                                         .system_name = symbol_text(b->d, k->system_name),
                                                         .file = symbol_text(b->d, k->file),
                                                         .start_line = k->start_line};
    return true;
}

/* A function without a file gets that of the mapping it was seen in, so one row may become several functions. */
static bool function_of(struct symbol_build *b, uint32_t row, uint32_t mapping_row, uint32_t *out)
{
    const struct pprof_function *fn = &b->d->functions.p[row];
    struct symbol_key k = {.start_line = fn->start_line};
    uint32_t file = fn->file_s;
    bool borrowed = symbol_text(b->d, file).len == 0 && mapping_row != ABSENT;

    if (!borrowed && b->function_done[row]) {
        *out = b->function_done[row] - 1;
        return true;
    }
    if (borrowed)
        file = b->d->mappings.p[mapping_row].file_s;
    if (!canonical(b, fn->name_s, &k.name) || !canonical(b, fn->system_name_s, &k.system_name) ||
        !canonical(b, file, &k.file) || !intern_function(b, &k, out))
        return false;
    if (!borrowed)
        b->function_done[row] = *out + 1;
    return true;
}

static bool frame_same(const struct frame *a, const struct frame *b)
{
    return a->function == b->function && a->mapping == b->mapping && a->line == b->line && a->column == b->column &&
           a->address == b->address && a->flags == b->flags;
}

static bool intern_frame(struct symbol_build *b, const struct frame *f, uint32_t *out)
{
    uint64_t words[5] = {(uint64_t)f->function << 32 | f->mapping, (uint64_t)f->line, (uint64_t)f->column, f->address,
                         f->flags};
    uint64_t hash = hash64(b->key, words, sizeof words);
    struct probe at;

    *out = index_first(&b->frame_index, hash, &at);
    while (*out != INDEX_NONE && !frame_same(&b->frames.p[*out], f))
        *out = index_next(&b->frame_index, &at);
    if (*out != INDEX_NONE)
        return true;
    if (!VEC_ROOM(b->a, &b->frames, 1) || !index_add(&b->frame_index, b->a, hash, b->frames.n))
        return false;
    *out = b->frames.n;
    b->frames.p[b->frames.n++] = *f;
    return true;
}

/* As an offset in the file, so that the same code is the same frame in every process. */
static uint64_t file_address(const struct symbol_build *b, uint64_t address, uint32_t mapping_row)
{
    if (mapping_row == ABSENT)
        return address;
    const struct pprof_mapping *m = &b->d->mappings.p[mapping_row];
    return address >= m->start && address < m->limit ? address - m->start + m->offset : address;
}

static enum symbol_result add_frame(struct symbol_build *b, const struct frame *f)
{
    uint32_t at;

    if (!VEC_ROOM(b->a, &b->location_frames, 1) || !intern_frame(b, f, &at))
        return SYMBOL_NO_ROOM;
    b->location_frames.p[b->location_frames.n++] = at;
    return SYMBOL_OK;
}

static enum symbol_result resolve_line(struct symbol_build *b, const struct pprof_line *l, uint32_t mapping_row,
                                       uint32_t mapping, uint32_t flags)
{
    size_t stride;
    const void *ids = function_ids(b, &stride);
    uint32_t row = row_of(b, &b->function_rows, ids, stride, l->function), function;

    if (row == ABSENT)
        return SYMBOL_BROKEN;
    if (!function_of(b, row, mapping_row, &function))
        return SYMBOL_NO_ROOM;
    return add_frame(b, &(struct frame){function, mapping, l->line, l->column, 0, flags});
}

/* Line 0 is the innermost; all but the last were inlined. */
static enum symbol_result resolve(struct symbol_build *b, uint32_t i)
{
    const struct pprof *d = b->d;
    const struct pprof_location *l = &d->locations.p[i];
    uint32_t end = i + 1 < d->locations.n ? d->locations.p[i + 1].line_at : d->lines.n;
    uint32_t mapping_row =
        row_of(b, &b->mapping_rows, d->mappings.n ? &d->mappings.p->id : NULL, sizeof *d->mappings.p, l->mapping);
    uint32_t mapping, folded = l->folded ? FRAME_FOLDED : 0;
    enum symbol_result r = SYMBOL_OK;

    if (!mapping_of(b, mapping_row, &mapping))
        return SYMBOL_NO_ROOM;
    if (l->line_at == end)
        return add_frame(
            b, &(struct frame){PROFILE_NONE, mapping, 0, 0, file_address(b, l->address, mapping_row), folded});
    for (uint32_t k = l->line_at; k < end && r == SYMBOL_OK; k++)
        r = resolve_line(b, &d->lines.p[k], mapping_row, mapping, folded | (k + 1 < end ? FRAME_INLINED : 0));
    return r;
}

enum symbol_result symbol_location(struct symbol_build *b, uint32_t id, uint32_t *at, uint32_t *end)
{
    const struct pprof *d = b->d;
    uint32_t i = row_of(b, &b->location_rows, d->locations.n ? &d->locations.p->id : NULL, sizeof *d->locations.p, id);

    if (i == ABSENT || b->location_end[i] == ABSENT)
        return SYMBOL_BROKEN;
    if (!b->location_end[i]) {
        b->location_at[i] = b->location_frames.n;
        enum symbol_result r = resolve(b, i);
        b->location_end[i] = r == SYMBOL_OK ? b->location_frames.n : ABSENT;
        if (r != SYMBOL_OK)
            return r;
    }
    *at = b->location_at[i];
    *end = b->location_end[i];
    return SYMBOL_OK;
}

enum symbol_result symbol_truncated(struct symbol_build *b, uint32_t *frame)
{
    struct symbol_key k = {0};
    uint32_t function;

    if (!canonical(b, b->d->strings.n, &k.name) || !intern_function(b, &k, &function) ||
        !intern_frame(b, &(struct frame){.function = function, .mapping = PROFILE_NONE}, frame))
        return SYMBOL_NO_ROOM;
    return SYMBOL_OK;
}

static int label_cmp(const void *pa, const void *pb)
{
    const struct sample_label *a = pa, *b = pb;
    int c = str_cmp(a->key, b->key);

    if (c == 0)
        c = (int)a->numeric - (int)b->numeric;
    if (c == 0)
        c = str_cmp(a->value, b->value);
    if (c == 0)
        c = (a->num > b->num) - (a->num < b->num);
    return c ? c : str_cmp(a->unit, b->unit);
}

/* The labels of a raw set, resolved, sorted, exact repeats once, behind the last output set. */
static bool stage_set(struct symbol_build *b, uint32_t raw)
{
    const struct pprof *d = b->d;
    uint32_t from = d->set_at.p[raw], n = d->set_at.p[raw + 1] - from, base = b->set_at.p[b->n_sets];

    b->labels.n = base;
    if (!VEC_ROOM(b->a, &b->labels, n))
        return false;
    struct sample_label *out = b->labels.p + base;
    for (uint32_t i = 0; i < n; i++) {
        const struct pprof_label *l = &d->labels.p[from + i];
        bool numeric = l->str_s == 0;
        out[i] = (struct sample_label){.key = symbol_text(d, l->key_s), .numeric = numeric};
        if (numeric) {
            out[i].num = l->num;
            out[i].unit = symbol_text(d, l->unit_s);
        } else {
            out[i].value = symbol_text(d, l->str_s);
        }
    }
    qsort(out, n, sizeof *out, label_cmp);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || label_cmp(&out[kept - 1], &out[i]) != 0)
            out[kept++] = out[i];
    b->labels.n = base + kept;
    return true;
}

static uint64_t set_hash(const struct symbol_build *b, uint32_t at, uint32_t end)
{
    uint64_t h = end - at;

    for (uint32_t i = at; i < end; i++) {
        const struct sample_label *l = &b->labels.p[i];
        uint64_t words[] = {h,
                            hash64(b->key, l->key.p, l->key.len),
                            hash64(b->key, l->value.p, l->value.len),
                            hash64(b->key, l->unit.p, l->unit.len),
                            (uint64_t)l->num,
                            l->numeric};
        h = hash64(b->key, words, sizeof words);
    }
    return h;
}

static bool set_same(const struct symbol_build *b, uint32_t set, uint32_t at, uint32_t n)
{
    uint32_t from = b->set_at.p[set];

    if (b->set_at.p[set + 1] - from != n)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (label_cmp(&b->labels.p[from + i], &b->labels.p[at + i]) != 0)
            return false;
    return true;
}

enum symbol_result symbol_set(struct symbol_build *b, uint32_t raw, uint32_t *set)
{
    struct probe pr;

    if (b->set_done[raw]) {
        *set = b->set_done[raw] - 1;
        return SYMBOL_OK;
    }
    if (!stage_set(b, raw))
        return SYMBOL_NO_ROOM;
    uint32_t base = b->set_at.p[b->n_sets], n = b->labels.n - base;
    uint64_t hash = set_hash(b, base, b->labels.n);
    uint32_t i = n == 0 ? 0 : index_first(&b->set_index, hash, &pr);
    while (n && i != INDEX_NONE && !set_same(b, i, base, n))
        i = index_next(&b->set_index, &pr);
    if (i == INDEX_NONE) {
        if (!VEC_ROOM(b->a, &b->set_at, 1) || !index_add(&b->set_index, b->a, hash, b->n_sets))
            return SYMBOL_NO_ROOM;
        i = b->n_sets++;
        b->set_at.p[b->set_at.n++] = b->labels.n;
    }
    b->set_done[raw] = i + 1;
    *set = i;
    return SYMBOL_OK;
}
