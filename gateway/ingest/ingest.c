/*
 * One upload: admission -> body -> upload_end -> upload_finish (here, or on the ingest lane with the request frozen) ->
 * records to the store -> answer -> told or not. While a lane or the store works for it, the upload outlives its
 * client.
 */
#include "gateway/ingest/ingest.h"

#include <stdlib.h>

#include "gateway/conn.h"
#include "gateway/ingest/census.h"
#include "gateway/ingest/note.h"
#include "gateway/ingest/spec.h"
#include "gateway/ingest/submit.h"
#include "gateway/ingest/throttle.h"
#include "gateway/ingest/told.h"
#include "gateway/ingest/verdict.h"
#include "gateway/log.h"

enum {
    ON_LOOP_NS = 1000000,   /* a longer finish goes to the lane */
    SLACK_BYTES = 64 << 10, /* what one feed may add before we look again */
    EARLY_BYTES = 4 << 10   /* sent before any memory is asked for: who trickles or stalls at once keeps nobody out */
};

enum stage {
    STAGE_EARLY,  /* its first bytes are set aside; it holds no memory of admission yet */
    STAGE_ADMIT,  /* waits for its first memory */
    STAGE_BODY,   /* eats */
    STAGE_ENDED,  /* all layers have ended cleanly; may wait for memory to finish */
    STAGE_FINISH, /* frozen: the lane has it */
    STAGE_STORE,  /* records are on their way */
    STAGE_ANSWER  /* the answer is being written */
};

struct ingest {
    struct request *r;
    enum stage stage;
    struct ticket ticket;
    struct spec spec;
    struct upload *upload;
    char *early; /* EARLY_BYTES, those from early_at to early_len are still to be fed; NULL: none */
    size_t early_at, early_len;
    struct job job;
    enum err finish_err;
    uint32_t pending; /* records with the store */
    struct verdict verdict;
    struct told *told;
};

size_t ingest_max_bytes(const struct conf *c)
{
    /* A quarter of the share is never set aside for one: a stalled upload of the largest size leaves room for the
     * others. */
    size_t share = ledger_share_requests(c->memory), most = share - share / 4,
           want = c->limits.decoded + c->limits.body;

    return want < most ? want : most;
}

static void release_upload(struct ingest *in)
{
    upload_free(in->upload);
    in->upload = NULL;
}

static void early_free(struct ingest *in)
{
    if (in->early)
        ledger_charge(&in->r->app->ledger, LEDGER_connections, -EARLY_BYTES);
    free(in->early);
    in->early = NULL;
}

static void ingest_free(struct ingest *in)
{
    in->r->state = NULL;
    early_free(in);
    release_upload(in);
    admit_leave(in->r->app->admit, &in->ticket);
    spec_free(&in->spec);
    told_final(in->told);
    free(in);
}

/* The type of a good answer is the request's; another one makes senders repeat (clients.md 0, 12). */
static const char *success_type(const struct ingest *in)
{
    if (in->spec.upload.kind == UPLOAD_PUSH_PROTO)
        return "application/proto";
    if (in->spec.upload.kind != UPLOAD_PUSH_JSON)
        return NULL;
    return in->spec.charset ? "application/json; charset=utf-8" : "application/json";
}

static void answer_now(struct ingest *in)
{
    struct request *r = in->r;
    struct reply out = {0};

    admit_leave(r->app->admit, &in->ticket);
    note_verdict(r, &in->verdict);
    if (!r->conn) {
        if (in->told)
            told_written(in->told, false);
        ingest_free(in);
        request_free(r);
        return;
    }
    in->stage = STAGE_ANSWER;
    verdict_reply(&in->verdict, success_type(in), &out);
    conn_reply(r->conn, &out, false);
}

static void count_refused(struct ingest *in, const struct fault *f)
{
    in->r->app->metrics.profiles_refused[in->spec.upload.kind][f->err]++;
    verdict_refused(&in->verdict, f);
}

static void count_failed(struct ingest *in, enum err e)
{
    in->r->app->metrics.profiles_failed[e]++;
    verdict_failed(&in->verdict, e);
}

void ingest_stored(void *owner, struct attempt a, enum put_result result)
{
    struct ingest *in = owner;

    if (result == PUT_STORED) {
        in->verdict.stored++;
        in->r->app->metrics.profiles_accepted[in->spec.upload.kind]++;
        in->told->attempts[in->told->n++] = a;
        note_stored(in->r, a);
    } else {
        count_failed(in, result == PUT_BAD ? E_INTERNAL : E_STORE_DOWN);
    }
    if (--in->pending == 0)
        answer_now(in);
}

/* Whether it may come, as far as services and series of its project go; counted as refused if not. */
static bool is_known(struct ingest *in, const struct record *rec)
{
    struct app *app = in->r->app;
    const struct conf_bounds *b = &in->r->bounds;
    struct census_limits most = {b->max_services, b->max_series};
    struct fault f = {.err = E_OK};
    bool ok = census_take(app->census, rec, most, app_now_ns(), &f) == E_OK;

    if (ok)
        throttle_stacks(app->throttle, rec, b, (int64_t)uv_hrtime());
    else
        count_refused(in, &f);
    size_t bytes = census_bytes(app->census) + throttle_bytes_held(app->throttle);
    ledger_charge(&app->ledger, LEDGER_caches, (int64_t)bytes - (int64_t)app->projects_charged);
    app->projects_charged = bytes;
    return ok;
}

/* Hands every record over; counts the rest. */
static void submit_all(struct ingest *in)
{
    struct app *app = in->r->app;
    uint32_t n = upload_outcomes(in->upload);
    size_t bytes = 0;

    in->verdict.profiles = n;
    app->metrics.profiles_received[in->spec.upload.kind] += n;
    app->metrics.received_inflated[in->r->routed.route] += upload_inflated(in->upload);
    metrics_bytes(&app->metrics.body_inflated[in->r->routed.route], (double)upload_inflated(in->upload));
    in->told = told_new(app, n);
    note_upload(in->r, &in->spec, in->upload);
    for (uint32_t i = 0; i < n; i++) {
        const struct outcome *o = upload_outcome(in->upload, i);
        note_profile(in->r, o);
        if (o->fault.err != E_OK) {
            count_refused(in, &o->fault);
        } else if (!o->record) {
            in->verdict.empty++;
            app->metrics.plain[M_empty_profiles]++;
            app->metrics.profiles_accepted[in->spec.upload.kind]++;
        } else {
            struct record *rec = upload_take(in->upload, i);
            size_t size = rec->bytes;
            app->metrics.plain[M_truncated_stacks] += rec->drops.truncated_stacks;
            if (!is_known(in, rec)) {
                record_free(rec);
            } else if (in->told && submit_record(app->submit, rec, in)) {
                in->pending++;
                bytes += size;
            } else {
                record_free(rec);
                count_failed(in, E_NO_MEMORY);
            }
        }
    }
    release_upload(in);
    if (in->ticket.state == TICKET_IN)
        admit_seal(app->admit, &in->ticket, bytes);
}

/* upload_finish has run. Not from inside the store or admission: may answer. */
static enum pump finished(struct ingest *in)
{
    struct request *r = in->r;

    if (in->finish_err != E_OK && r->conn) {
        request_refuse_with(r, upload_fault(in->upload));
        conn_resume(r->conn);
        return PUMP_MORE;
    }
    if (in->finish_err != E_OK) {
        ingest_free(in);
        request_free(r);
        return PUMP_WAIT;
    }
    in->stage = STAGE_STORE;
    in->pending = 1; /* ours, so that no answer comes before all are in */
    submit_all(in);
    struct app *app = r->app;
    if (--in->pending == 0)
        answer_now(in);
    submit_run(app->submit);
    return PUMP_WAIT;
}

static void finish_work(struct job *j)
{
    struct ingest *in = (struct ingest *)((char *)j - offsetof(struct ingest, job));

    in->finish_err = upload_finish(in->upload);
}

static void finish_done(struct job *j)
{
    struct ingest *in = (struct ingest *)((char *)j - offsetof(struct ingest, job));

    (void)finished(in);
}

static enum pump finish(struct ingest *in)
{
    struct str project = in->spec.upload.project;
    in->job = (struct job){
        .work = finish_work, .done = finish_done, .party = hash64(&in->r->app->hash_key, project.p, project.len)};
    if (upload_finish_ns(in->upload) <= ON_LOOP_NS) {
        finish_work(&in->job);
        return finished(in);
    }
    if (!lane_submit(in->r->app->ingest_lane, &in->job)) {
        request_refuse(in->r, E_OVERLOADED, "too many uploads are being finished, retry later");
        return PUMP_MORE;
    }
    in->stage = STAGE_FINISH;
    return PUMP_WAIT;
}

/* Makes sure that `need` bytes are granted: in steps, so that growers do not ask for every slice. */
static enum pump ensure(struct ingest *in, size_t need)
{
    struct admit *a = in->r->app->admit;
    size_t step = need / 4 > INGEST_FIRST_BYTES ? need / 4 : INGEST_FIRST_BYTES;

    if (need <= in->ticket.granted)
        return PUMP_MORE;
    if (need > admit_max(a)) {
        request_refuse(in->r, E_PROFILE_TOO_LARGE,
                       "upload needs more memory than limits.decoded allows: %zu bytes, at most %zu", need,
                       admit_max(a));
        return PUMP_MORE;
    }
    in->r->slow_matters = true;
    size_t total = need + step < admit_max(a) ? need + step : admit_max(a);
    return admit_grow(a, &in->ticket, total) == ADMIT_YES ? PUMP_MORE : PUMP_WAIT;
}

static void start(struct ingest *in)
{
    struct fault f = {.err = E_OK};

    in->upload = upload_new(&in->spec.upload, &f);
    if (!in->upload) {
        request_refuse_with(in->r, &f);
        return;
    }
    in->stage = STAGE_BODY;
    conn_continue(in->r->conn);
}

/* Asks for the first memory, and starts where it is there. */
static enum pump enter(struct ingest *in)
{
    struct request *r = in->r;

    in->stage = STAGE_ADMIT;
    switch (admit_arrive(r->app->admit, &in->ticket, in->spec.upload.project, uv_now(r->app->loop))) {
    case ADMIT_YES:
        start(in);
        return PUMP_MORE;
    case ADMIT_WAIT:
        return PUMP_WAIT;
    case ADMIT_NO:
        break;
    }
    request_refuse(r, E_NO_MEMORY, "%s", err_text(E_NO_MEMORY));
    return PUMP_MORE;
}

/* Sets s aside, or enters when it is too much for that. */
static enum pump set_aside(struct ingest *in, struct str *s)
{
    if (in->early_len + s->len > EARLY_BYTES)
        return enter(in);
    if (!in->early && !(in->early = malloc(EARLY_BYTES)))
        return enter(in);
    if (in->early_len == 0)
        ledger_charge(&in->r->app->ledger, LEDGER_connections, EARLY_BYTES);
    memcpy(in->early + in->early_len, s->p, s->len);
    in->early_len += s->len;
    *s = (struct str){s->p + s->len, 0};
    return PUMP_MORE;
}

static enum pump begin(struct request *r)
{
    struct ingest *in = calloc(1, sizeof *in);
    struct fault f = {.err = E_OK};

    if (!in) {
        request_refuse(r, E_NO_MEMORY, "%s", err_text(E_NO_MEMORY));
        return PUMP_MORE;
    }
    in->r = r;
    r->state = in;
    if (spec_make(&in->spec, r, &f) != E_OK) {
        request_refuse_with(r, &f);
        return PUMP_MORE;
    }
    if (throttle_enter(r->app->throttle, str_of(r->access.project), &r->bounds, r->head->length, (int64_t)uv_hrtime(),
                       &f) != E_OK) {
        request_refuse_with(r, &f);
        return PUMP_MORE;
    }
    /* Who waits for a 100 is to be told first whether there is room. */
    return head_get(r->head, STR("expect")).len ? enter(in) : PUMP_MORE;
}

static enum pump feed_upload(struct ingest *in, struct str *s, uint32_t *budget)
{
    if (upload_feed(in->upload, s, budget) == STEP_FAIL) {
        request_refuse_with(in->r, upload_fault(in->upload));
        return PUMP_MORE;
    }
    return ensure(in, upload_memory(in->upload) + SLACK_BYTES);
}

/* What was set aside goes first. */
static enum pump feed_early(struct ingest *in, uint32_t *budget)
{
    struct request *r = in->r;
    struct str s = {in->early + in->early_at, in->early_len - in->early_at};
    enum pump p = feed_upload(in, &s, budget);

    if (r->refused) /* and `in` is gone */
        return p;
    in->early_at = in->early_len - s.len;
    if (s.len == 0)
        early_free(in);
    return p;
}

static enum pump feed(struct request *r, struct str *s, uint32_t *budget)
{
    struct ingest *in = r->state;

    if (r->body_bytes + s->len > r->limits.body) {
        request_refuse(r, E_BODY_TOO_LARGE, "request body too large: limits.body = %zu bytes, %zu have come",
                       r->limits.body, (size_t)r->body_bytes + s->len);
        return PUMP_MORE;
    }
    if (in->stage == STAGE_EARLY)
        return set_aside(in, s);
    return in->early ? feed_early(in, budget) : feed_upload(in, s, budget);
}

static enum pump end(struct request *r, uint32_t *budget)
{
    struct ingest *in = r->state;

    if (in->stage == STAGE_EARLY)
        return enter(in);
    if (in->early)
        return feed_early(in, budget);
    if (in->stage == STAGE_BODY) {
        switch (upload_end(in->upload, budget)) {
        case STEP_AGAIN:
            return ensure(in, upload_memory(in->upload) + SLACK_BYTES);
        case STEP_FAIL:
            request_refuse_with(r, upload_fault(in->upload));
            return PUMP_MORE;
        case STEP_MORE:
            in->stage = STAGE_ENDED;
            metrics_bytes(&r->app->metrics.body_wire[r->routed.route], (double)r->body_bytes);
            if (r->head->chunked)
                throttle_bytes(r->app->throttle, str_of(r->access.project), &r->bounds, r->body_bytes,
                               (int64_t)uv_hrtime());
        }
    }
    enum pump p = ensure(in, upload_memory(in->upload) + upload_finish_memory(in->upload));
    return p == PUMP_MORE && !r->refused ? finish(in) : p;
}

static void refused(struct request *r)
{
    struct ingest *in = r->state;

    if (!in)
        return;
    note_upload(r, &in->spec, in->upload);
    ingest_free(in);
}

static bool gone(struct request *r)
{
    struct ingest *in = r->state;

    if (!in)
        return false;
    if (in->stage == STAGE_FINISH || in->stage == STAGE_STORE)
        return true;
    if (in->told)
        told_written(in->told, false);
    note_upload(r, &in->spec, in->upload);
    ingest_free(in);
    return false;
}

static void written(struct request *r, int status, bool in_time)
{
    struct ingest *in = r->state;
    struct told *t = in->told;
    struct conn *c = r->conn;

    in->told = NULL;
    ingest_free(in);
    if (!t)
        return;
    told_written(t, status == 200 && in_time);
    conn_remember(c, t);
}

const struct handler handler_ingest = {begin, feed, end, refused, gone, written};

static void on_granted(struct ticket *t)
{
    struct ingest *in = (struct ingest *)((char *)t - offsetof(struct ingest, ticket));
    struct request *r = in->r;

    if (in->stage > STAGE_ENDED)
        return;
    if (in->stage == STAGE_ADMIT)
        start(in); /* may refuse, and so free it */
    if (r->conn)
        conn_resume(r->conn);
}

static void on_timed_out(struct ticket *t)
{
    struct ingest *in = (struct ingest *)((char *)t - offsetof(struct ingest, ticket));
    struct request *r = in->r;

    request_refuse(r, E_OVERLOADED, "no memory for this upload within timeouts.admission; retry later");
    conn_resume(r->conn);
}

const struct admit_events ingest_admit_events = {on_granted, on_timed_out};
