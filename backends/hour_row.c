/*
 *   version          1 byte
 *   class, hour      varint, zigzag
 *   series           service, name, spy; labels
 *   types            number, primary; of each: type, unit, id, aggregation, total (zigzag)
 *   profiles         number, samples; first time, last - first, duration (zigzag); first attempt; check (8 bytes)
 *   covered          number; of each: zigzag of its beginning less the end before (the first time at first), length
 *   series ids       number, 8 bytes each
 *   left out         number, names
 *   of samples       number, names
 */
#include "backends/hour_row.h"

#include "codecs/pack.h"
#include "codecs/profile_pack.h"

enum { VERSION = 1 };

static void pack_covered(struct buf *b, const struct stored *s)
{
    int64_t edge = s->time_ns;

    pack_u64(b, s->hour->n_covered);
    for (uint32_t i = 0; i < s->hour->n_covered; i++) {
        const struct span *c = &s->hour->covered[i];
        pack_i64(b, c->from_ns - edge);
        pack_u64(b, (uint64_t)(c->until_ns - c->from_ns));
        edge = c->until_ns;
    }
}

static void pack_names(struct buf *b, const struct str *names, uint32_t n)
{
    pack_u64(b, n);
    for (uint32_t i = 0; i < n; i++)
        pack_str(b, names[i]);
}

void hour_about(const struct stored *s, struct buf *b)
{
    const struct stored_hour *h = s->hour;
    uint64_t boot_check[] = {s->attempt.boot, h->check};

    pack_u64(b, VERSION);
    pack_u64(b, s->class_days);
    pack_i64(b, h->hour);
    series_pack(s->series, b);
    pack_u64(b, s->n_types);
    pack_u64(b, s->primary);
    types_pack(s->types, s->n_types, b);
    pack_u64(b, s->n_profiles);
    pack_u64(b, s->n_samples);
    pack_i64(b, s->time_ns);
    pack_u64(b, (uint64_t)(h->last_ns - s->time_ns));
    pack_i64(b, s->duration_ns);
    pack_u64(b, s->attempt.group);
    pack_u64(b, s->attempt.place);
    pack_ids(b, boot_check, COUNTOF(boot_check));
    pack_covered(b, s);
    pack_u64(b, h->n_series);
    pack_ids(b, h->series_ids, h->n_series);
    pack_names(b, h->left_out, h->n_left_out);
    pack_names(b, h->sample_names, h->n_sample_names);
}

static bool read_series(struct unpack *u, struct arena *a, struct str project, struct series *s)
{
    s->project = project;
    series_unpack(u, s);
    s->labels = NEW(a, struct label, (size_t)s->n_labels + 1);
    if (s->labels)
        labels_unpack(u, s->labels, s->n_labels);
    return s->labels != NULL;
}

static bool read_types(struct unpack *u, struct arena *a, struct stored *out)
{
    struct sample_type *types;

    out->n_types = types_count(u);
    out->primary = unpack_below(u, out->n_types ? out->n_types : 1);
    out->types = types = NEW(a, struct sample_type, (size_t)out->n_types + 1);
    if (types)
        types_unpack(u, types, out->n_types);
    return types != NULL;
}

/* Sums of damaged bytes must not overflow. */
static int64_t shift(int64_t ns, int64_t by)
{
    bool over = false;

    return add_sat(ns, by, &over);
}

static int64_t length(struct unpack *u)
{
    uint64_t v = unpack_u64(u);

    return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

static bool read_covered(struct unpack *u, struct arena *a, int64_t edge, struct stored_hour *h)
{
    struct span *spans;

    h->n_covered = unpack_count(u, 2);
    h->covered = spans = NEW(a, struct span, (size_t)h->n_covered + 1);
    for (uint32_t i = 0; spans && i < h->n_covered; i++) {
        spans[i].from_ns = shift(edge, unpack_i64(u));
        spans[i].until_ns = edge = shift(spans[i].from_ns, length(u));
    }
    return spans != NULL;
}

static struct str *read_names(struct unpack *u, struct arena *a, uint32_t *n)
{
    struct str *names;

    *n = unpack_count(u, 1);
    names = NEW(a, struct str, (size_t)*n + 1);
    for (uint32_t i = 0; names && i < *n; i++)
        names[i] = unpack_str(u);
    return names;
}

static bool read_lists(struct unpack *u, struct arena *a, struct stored_hour *h)
{
    uint64_t *ids;

    h->n_series = unpack_count(u, sizeof *ids);
    h->series_ids = ids = NEW(a, uint64_t, (size_t)h->n_series + 1);
    if (ids)
        unpack_ids(u, ids, h->n_series);
    h->left_out = read_names(u, a, &h->n_left_out);
    h->sample_names = read_names(u, a, &h->n_sample_names);
    return ids && h->left_out && h->sample_names;
}

static void read_profiles(struct unpack *u, struct stored *out, struct stored_hour *h)
{
    uint64_t boot_check[2] = {0, 0};

    out->n_profiles = unpack_u64(u);
    out->n_samples = unpack_u64(u);
    out->time_ns = unpack_i64(u);
    h->last_ns = shift(out->time_ns, length(u));
    out->duration_ns = unpack_i64(u);
    out->attempt.group = unpack_u64(u);
    out->attempt.place = (uint16_t)unpack_below(u, UINT16_MAX + UINT64_C(1));
    unpack_ids(u, boot_check, COUNTOF(boot_check));
    out->attempt.boot = boot_check[0];
    h->check = boot_check[1];
}

enum err hour_open(struct str about, struct str body, struct str project, struct arena *a, struct stored *out,
                   struct stored_hour *hour, struct fault *f)
{
    struct unpack u = unpack_of(about);
    struct series *series = NEW(a, struct series, 1);
    bool room;

    *out = (struct stored){.series = series, .hour = hour, .body = body};
    *hour = (struct stored_hour){0};
    if (unpack_u64(&u) != VERSION)
        return fault_set(f, E_INTERNAL, "an hour row is damaged, or of a newer version");
    out->class_days = (uint16_t)unpack_below(&u, UINT16_MAX + UINT64_C(1));
    hour->hour = unpack_i64(&u);
    room = series && read_series(&u, a, project, series) && read_types(&u, a, out);
    read_profiles(&u, out, hour);
    room = room && read_covered(&u, a, out->time_ns, hour) && read_lists(&u, a, hour);
    if (!room)
        return arena_error(a, f);
    return u.bad || u.p != u.end ? fault_set(f, E_INTERNAL, "an hour row is damaged") : E_OK;
}
