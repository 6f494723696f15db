/* Whole and in pieces, then record by record. */
#include "test/oracle/feed_same.h"

#include "test/oracle/feed.h"

const struct limits feed_small_limits = {
    .body = 1 << 20,
    .inflated = 1 << 20,
    .decoded = 32 << 20,
    .field = 64 << 10,
    .profiles = 20,
    .samples = 2000,
    .depth = 20,
    .labels = 12,
    .sample_labels = 10,
    .label_name = 64,
    .label_value = 128,
    .parts = 10,
};
static struct hash_key key;

struct upload_spec feed_spec(enum upload_kind kind)
{
    hash_key_derive(&key, STR("fuzz"));
    return (struct upload_spec){.kind = kind,
                                .params = {.name = STR("app.cpu{a=b}"), .from = STR("1796073035"), .spy = STR("spy")},
                                .boundary = STR("xx"),
                                .project = STR("p"),
                                .now_ns = INT64_C(1796073040000000000),
                                .window_past_ns = -1,
                                .window_future_ns = -1,
                                .keep_originals = true,
                                .limits = &feed_small_limits,
                                .key = &key};
}

static void check_record(const struct record *r)
{
    struct arena *a = arena_new(256 << 20);
    struct record_view v;
    struct fault f = {0};

    ASSERT(a && record_open(&v, r->body, a, &f) == E_OK);
    ASSERT(v.n_samples > 0 && v.n_samples <= feed_small_limits.samples && v.n_types > 0);
    for (uint32_t s = 0; s < r->symbols->n_stacks; s++)
        ASSERT(r->symbols->stack_at[s + 1] - r->symbols->stack_at[s] <= feed_small_limits.depth);
    for (uint32_t i = 0; i < v.n_samples; i++)
        for (uint32_t t = 0; t < v.n_types; t++)
            ASSERT(v.values[t][i] >= 0);
    arena_free(a);
}

/* Bytes before the broken place of a compressed layer are seen or not, so what is wrong in them may be found first. */
static bool same_fault(const struct fault *a, const struct fault *b)
{
    if (a->err == E_BAD_ENCODING || b->err == E_BAD_ENCODING)
        return a->err != E_OK && b->err != E_OK;
    return a->err == b->err && strcmp(a->text, b->text) == 0;
}

static void compare(const struct upload *a, const struct upload *b)
{
    ASSERT(upload_outcomes(a) == upload_outcomes(b));
    ASSERT(upload_memory(a) < 2 * feed_small_limits.decoded + (64 << 20));
    for (uint32_t i = 0; i < upload_outcomes(a); i++) {
        const struct outcome *x = upload_outcome(a, i), *y = upload_outcome(b, i);
        ASSERT(same_fault(&x->fault, &y->fault));
        ASSERT((x->record == NULL) == (y->record == NULL));
        ASSERT(x->fault.err == E_OK || !x->record);
        if (!x->record)
            continue;
        ASSERT(str_eq(x->record->body, y->record->body) && str_eq(x->record->original, y->record->original));
        ASSERT(x->record->content_id.hi == y->record->content_id.hi &&
               x->record->content_id.lo == y->record->content_id.lo);
        check_record(x->record);
    }
}

struct upload *feed_same(const struct upload_spec *spec, struct str body, uint8_t how, struct fault *f)
{
    struct feed_plan pieces = {.piece = 1 + how % 16, .budget = how & 16 ? 1 + (how >> 5) : 0};
    struct fault g = {0};
    struct upload *a = feed_upload(spec, body, &(struct feed_plan){0}, f), *b = feed_upload(spec, body, &pieces, &g);

    ASSERT((a == NULL) == (b == NULL));
    ASSERT(same_fault(f, &g));
    ASSERT(f->err != E_INTERNAL && err_status(f->err) < 500);
    if (a)
        compare(a, b);
    upload_free(b);
    return a;
}
