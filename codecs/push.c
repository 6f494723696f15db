/* Collecting series and samples of a PushRequest. A series without samples leaves nothing behind. */
#include "codecs/push.h"

struct push *push_new(struct intake *in)
{
    struct push *p = NEW(in->arena, struct push, 1);

    if (!p || !VEC_ROOM(in->arena, &p->labels, 1)) {
        (void)intake_no_room(in);
        return NULL;
    }
    p->in = in;
    return p;
}

enum step push_series_begin(struct push *p)
{
    if (!VEC_ROOM(p->in->arena, &p->series, 1))
        return intake_no_room(p->in);
    p->series.p[p->series.n++] = (struct push_series){p->labels.n, 0};
    p->open = true;
    return STEP_MORE;
}

enum step push_label(struct push *p, struct str name, struct str value)
{
    struct label l;

    if (!arena_str(p->in->arena, name, &l.name) || !arena_str(p->in->arena, value, &l.value) ||
        !VEC_ROOM(p->in->arena, &p->labels, 1))
        return intake_no_room(p->in);
    p->labels.p[p->labels.n++] = l;
    return STEP_MORE;
}

enum step push_sample_begin(struct push *p)
{
    const struct limits *lim = p->in->limits;

    if (p->samples.n >= lim->profiles) {
        (void)fault_set(&p->in->fault, E_TOO_MANY_PROFILES,
                        "request has more profiles than limits.profiles (%u): %u seen", lim->profiles,
                        p->samples.n + 1);
        return STEP_FAIL;
    }
    if (!VEC_ROOM(p->in->arena, &p->samples, 1))
        return intake_no_room(p->in);
    p->samples.p[p->samples.n++] = (struct push_sample){NULL, {"", 0}, p->series.n - 1};
    return STEP_MORE;
}

enum step push_sample_id(struct push *p, struct str id)
{
    if (!arena_str(p->in->arena, id, &p->samples.p[p->samples.n - 1].id))
        return intake_no_room(p->in);
    return STEP_MORE;
}

struct payload *push_payload(struct push *p)
{
    struct push_sample *s = &p->samples.p[p->samples.n - 1];

    payload_drop(s->payload);
    s->payload = payload_new(p->in, PAYLOAD_PPROF, false);
    return s->payload;
}

void push_series_end(struct push *p)
{
    struct push_series *s = &p->series.p[p->series.n - 1];

    p->open = false;
    s->n_labels = p->labels.n - s->label_at;
    if (p->samples.n && p->samples.p[p->samples.n - 1].series == p->series.n - 1)
        return;
    p->labels.n = s->label_at;
    p->series.n--;
}

void push_drop(struct push *p)
{
    for (uint32_t i = 0; p && i < p->samples.n; i++)
        payload_drop(p->samples.p[i].payload);
}
