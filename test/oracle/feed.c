/* The calls that a connection makes, in the order it makes them. */
#include "test/oracle/feed.h"

const struct limits feed_limits = {
    .body = 16 << 20,
    .inflated = 128 << 20,
    .decoded = 128 << 20,
    .field = 4 << 20,
    .profiles = 1000,
    .samples = 200000,
    .depth = 1024,
    .labels = 30,
    .sample_labels = 100,
    .label_name = 1024,
    .label_value = 2048,
    .parts = 1000,
};

static bool feed_piece(struct upload *u, struct str piece, const struct feed_plan *plan)
{
    enum step s;

    do {
        uint32_t budget = plan->budget ? plan->budget : 1 << 24;
        s = upload_feed(u, &piece, &budget);
    } while (s == STEP_AGAIN);
    ASSERT(s == STEP_FAIL || piece.len == 0);
    return s == STEP_MORE;
}

static bool feed_all(struct upload *u, struct str body, const struct feed_plan *plan)
{
    size_t at = 0, next = 0;

    while (at < body.len) {
        size_t end = plan->piece && plan->piece < body.len - at ? at + plan->piece : body.len;
        while (next < plan->n_cuts && plan->cuts[next] <= at)
            next++;
        if (next < plan->n_cuts && plan->cuts[next] < end)
            end = plan->cuts[next];
        if (!feed_piece(u, (struct str){body.p + at, end - at}, plan))
            return false;
        at = end;
    }
    enum step s;
    do {
        uint32_t budget = plan->budget ? plan->budget : 1 << 24;
        s = upload_end(u, &budget);
    } while (s == STEP_AGAIN);
    return s == STEP_MORE;
}

struct upload *feed_upload(const struct upload_spec *spec, struct str body, const struct feed_plan *plan,
                           struct fault *f)
{
    struct upload *u = upload_new(spec, f);

    if (!u)
        return NULL;
    if (feed_all(u, body, plan) && upload_finish(u) == E_OK)
        return u;
    *f = *upload_fault(u);
    ASSERT(f->err != E_OK);
    upload_free(u);
    return NULL;
}
