/* From the fates of profiles to one answer. */
#include "gateway/ingest/verdict.h"

#include "gateway/json.h"

void verdict_refused(struct verdict *v, const struct fault *f)
{
    if (v->refused && v->reasons[0].err != f->err)
        v->mixed = true;
    if (v->refused < REASONS_MAX)
        v->reasons[v->refused] = *f;
    v->refused++;
}

void verdict_failed(struct verdict *v, enum err e)
{
    v->failed++;
    if (v->failure != E_STORE_DOWN) /* what may be retried comes first */
        v->failure = e;
}

/* The errors of a batch: one object with what was stored beside it. */
static void batch(const struct verdict *v, enum err e, struct reply *out)
{
    struct json j = {.out = &out->body};
    struct fault f = {.err = E_OK};

    fault_set(&f, e, "%u of %u profiles refused: %s", v->refused, v->profiles, v->reasons[0].text);
    reply_fault(out, &f);
    out->body.len--; /* reopens the object */
    j.comma = true;
    json_key(&j, "stored");
    json_uint(&j, v->stored);
    json_key(&j, "refused");
    json_uint(&j, v->refused);
    json_key(&j, "reasons");
    json_open(&j, '[');
    for (uint32_t i = 0; i < v->refused && i < REASONS_MAX; i++)
        json_str(&j, str_of(v->reasons[i].text));
    json_close(&j, ']');
    json_close(&j, '}');
}

void verdict_reply(const struct verdict *v, const char *success_type, struct reply *out)
{
    struct fault f = {.err = v->failure};

    if (v->failed) {
        reply_fault(out, &f);
    } else if (v->refused && v->profiles == 1) {
        reply_fault(out, &v->reasons[0]);
    } else if (v->refused) {
        bool alike = !v->mixed && v->refused == v->profiles;
        batch(v, alike ? v->reasons[0].err : E_BAD_REQUEST, out);
    } else {
        out->status = 200;
        out->content_type = success_type;
        if (str_starts(str_of(success_type), STR("application/json")))
            buf_str(&out->body, STR("{}"));
    }
}
