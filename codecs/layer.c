/* A compressed layer: pull blocks out of the decoder, push them into the next stage, count. */
#include "codecs/layer.h"

#include <stdlib.h>

#include "codecs/inflate.h"
#include "codecs/zstd.h"

enum { OUT_BYTES = 32 * 1024 };

struct layer {
    struct intake *in;
    const char *what;
    struct inflate *gzip; /* one of the two */
    struct unzstd *zstd;
    uint64_t total;
    size_t bytes;  /* of memory, as charged */
    bool draining; /* the content is malformed: `kept` says how; only its size and its end still matter */
    struct fault kept;
    struct str pending; /* part of `out` */
    char out[OUT_BYTES];
};

static void recharge(struct layer *l)
{
    size_t now = sizeof *l + (l->gzip ? inflate_bytes() : unzstd_bytes(l->zstd));

    l->in->malloced += now - l->bytes;
    l->bytes = now;
}

static void destroy(struct layer *l)
{
    inflate_free(l->gzip);
    unzstd_free(l->zstd);
    l->in->malloced -= l->bytes;
    free(l);
}

struct layer *layer_new(struct intake *in, enum coding coding, const char *what)
{
    struct layer *l = coding == CODING_GZIP ? in->spare : NULL;

    if (l) {
        in->spare = NULL;
        inflate_reset(l->gzip);
    } else if ((l = malloc(sizeof *l)) != NULL) {
        l->in = in;
        l->bytes = 0;
        l->gzip = coding == CODING_GZIP ? inflate_new() : NULL;
        l->zstd = coding == CODING_ZSTD ? unzstd_new() : NULL;
    }
    if (!l || (!l->gzip && !l->zstd)) {
        free(l);
        (void)fault_set(&in->fault, E_NO_MEMORY, NULL);
        return NULL;
    }
    l->what = what;
    l->total = 0;
    l->draining = false;
    l->kept = (struct fault){0};
    l->pending = (struct str){l->out, 0};
    recharge(l);
    return l;
}

/* false: the layer is bad, f says why. */
static bool pull(struct layer *l, struct str *in, size_t *n, struct fault *f)
{
    bool good;

    if (l->gzip) {
        good = inflate_pull(l->gzip, in, l->out, OUT_BYTES, n);
    } else {
        enum unzstd_step s = unzstd_pull(l->zstd, in, l->out, OUT_BYTES, n);
        good = s == UNZSTD_OK;
        recharge(l);
        if (s == UNZSTD_NO_MEMORY)
            (void)fault_set(&l->in->fault, E_NO_MEMORY, NULL);
    }
    if (!good && l->in->fault.err == E_OK)
        (void)fault_set(f, E_BAD_ENCODING, "%s: %s", l->what,
                        l->gzip ? inflate_reason(l->gzip) : unzstd_reason(l->zstd));
    return good;
}

static bool count(struct layer *l, size_t n, struct fault *f)
{
    l->total += n;
    l->in->inflated += n;
    if (l->total <= l->in->limits->inflated)
        return true;
    (void)fault_set(f, E_INFLATED_TOO_LARGE, "%s unpacks to more than limits.inflated (%zu bytes): %zu so far", l->what,
                    l->in->limits->inflated, (size_t)l->total);
    return false;
}

/*
 * Whoever sends a bomb is told so, even where what it unpacks to is refused from its first byte: the rest goes nowhere,
 * and the fault is kept for the end. Our own state (no memory) is no fault of the content.
 */
static bool drain_from_here(struct layer *l, struct fault *f)
{
    if (f->err == E_OK || f->err == E_INFLATED_TOO_LARGE || err_status(f->err) >= 500)
        return false;
    l->kept = *f;
    *f = (struct fault){0};
    l->draining = true;
    return true;
}

static enum step pass_on(struct layer *l, uint32_t *budget, intake_sink sink, void *ctx, struct fault *f)
{
    enum step s = l->draining ? STEP_MORE : sink(ctx, &l->pending, budget);

    if (s == STEP_FAIL && drain_from_here(l, f))
        s = STEP_MORE;
    if (s == STEP_MORE && l->draining)
        l->pending.len = 0;
    return s;
}

enum step layer_feed(struct layer *l, struct str *in, uint32_t *budget, intake_sink sink, void *ctx, struct fault *f)
{
    for (;;) {
        if (l->pending.len) {
            enum step s = pass_on(l, budget, sink, ctx, f);
            if (s != STEP_MORE)
                return s;
        }
        if (*budget == 0)
            return STEP_AGAIN;
        struct str slice = budget_slice(*in, *budget);
        size_t given = slice.len, n;
        if (!pull(l, &slice, &n, f) || !count(l, n, f))
            return STEP_FAIL;
        in->p += given - slice.len;
        in->len -= given - slice.len;
        l->pending = (struct str){l->out, n};
        budget_take(budget, given - slice.len + n);
        if (n == 0 && given == slice.len)
            return in->len ? STEP_AGAIN : STEP_MORE;
    }
}

enum step layer_end(struct layer *l, uint32_t *budget, intake_sink sink, void *ctx, struct fault *f)
{
    struct str nothing = {"", 0};
    enum step s = layer_feed(l, &nothing, budget, sink, ctx, f);

    if (s != STEP_MORE)
        return s;
    if (l->draining)
        *f = l->kept;
    else if (l->gzip ? !inflate_ended(l->gzip) : !unzstd_ended(l->zstd))
        (void)fault_set(f, E_BAD_ENCODING, "%s is truncated", l->what);
    return f->err == E_OK ? STEP_MORE : STEP_FAIL;
}

void layer_free(struct layer *l, struct intake *in)
{
    if (!l)
        return;
    if (l->gzip && !in->spare)
        in->spare = l;
    else
        destroy(l);
}

void layer_drop_spare(struct intake *in)
{
    if (in->spare)
        destroy(in->spare);
    in->spare = NULL;
}
