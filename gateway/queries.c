/* Reads: one GET under /api/v1 becomes a job of the query lane; the client's going away cancels it. */
#include <stdlib.h>

#include "codecs/gzip.h"
#include "gateway/conn.h"
#include "gateway/query/query.h"
#include "gateway/request.h"

enum { GZIP_FROM_BYTES = 1400 };

struct read {
    struct request *r;
    struct job job;
    struct query query;
    struct answer answer;
    atomic_bool cancel;
    bool running, may_gzip, gzipped;
    struct buf packed;
};

static enum pump begin(struct request *r)
{
    if (r->routed.route == ROUTE_QUERY && !query_known(r->routed.rest))
        request_refuse(r, E_NO_ROUTE, "no such path under /api/v1");
    else
        conn_continue(r->conn);
    return PUMP_MORE;
}

static void read_free(struct read *q)
{
    q->r->state = NULL;
    buf_free(&q->answer.body);
    buf_free(&q->packed);
    free(q);
}

static void work(struct job *j)
{
    struct read *q = (struct read *)((char *)j - offsetof(struct read, job));
    struct str type;

    query_run(&q->query, &q->answer);
    type = str_of(q->answer.content_type);
    if (!q->may_gzip || q->answer.body.len < GZIP_FROM_BYTES || q->answer.body.failed)
        return;
    if (str_starts(type, STR("application/json")) || str_starts(type, STR("text/")))
        q->gzipped = gzip_pack(buf_view(&q->answer.body), &q->packed);
}

static void fill_reply(struct read *q, struct reply *out)
{
    struct fault f = {.err = E_NO_MEMORY};

    if (q->answer.body.failed) {
        reply_fault(out, &f);
        return;
    }
    out->status = q->answer.status;
    out->content_type = q->answer.content_type;
    out->body = q->gzipped ? q->packed : q->answer.body;
    *(q->gzipped ? &q->packed : &q->answer.body) = (struct buf){0};
    if (q->gzipped)
        reply_header(out, "Content-Encoding", "gzip");
    reply_header(out, "Vary", "Accept-Encoding");
    if (q->answer.disposition[0])
        reply_header(out, "Content-Disposition", q->answer.disposition);
    if (q->answer.nosniff)
        reply_header(out, "X-Content-Type-Options", "nosniff");
    if (q->answer.status == 503)
        reply_header(out, "Retry-After", "5");
    out->head_only = str_eq(q->r->head->method, STR("HEAD"));
}

static void done(struct job *j)
{
    struct read *q = (struct read *)((char *)j - offsetof(struct read, job));
    struct request *r = q->r;
    struct reply out = {0};

    q->running = false;
    if (!r->conn) {
        read_free(q);
        request_free(r);
        return;
    }
    fill_reply(q, &out);
    buf_free(&q->answer.body);
    buf_free(&q->packed);
    conn_reply(r->conn, &out, false);
}

/* Whatever comes with a GET is read over, up to the limit. */
static enum pump feed(struct request *r, struct str *in, uint32_t *budget)
{
    (void)budget;
    if (r->body_bytes + in->len > r->limits.body)
        request_refuse(r, E_BODY_TOO_LARGE, "request body too large: limits.body = %zu bytes, %zu have come",
                       r->limits.body, (size_t)r->body_bytes + in->len);
    in->p += in->len;
    in->len = 0;
    return PUMP_MORE;
}

/* At least the share of queries; while little else is in use, half of what is free. */
static size_t memory_for(const struct ledger *l, const struct admit *a)
{
    uint64_t used = ledger_total(l) + admit_granted(a), share = ledger_share_queries(l->limit);
    uint64_t free_half = used < l->limit ? (l->limit - used) / 2 : 0;

    return free_half > share ? free_half : share;
}

static enum pump end(struct request *r, uint32_t *budget)
{
    struct app *app = r->app;
    struct read *q = calloc(1, sizeof *q);

    (void)budget;
    if (q && r->conn && !answers_room(app)) {
        free(q);
        request_refuse(r, E_OVERLOADED, "too many answers wait to be read by their clients, retry later");
        return PUMP_MORE;
    }
    if (!q) {
        request_refuse(r, E_NO_MEMORY, "%s", err_text(E_NO_MEMORY));
        return PUMP_MORE;
    }
    q->r = r;
    r->state = q;
    atomic_init(&q->cancel, false);
    q->may_gzip = head_lists(r->head, STR("accept-encoding"), STR("gzip"));
    bool own = r->access.type == KEY_SERVER && !r->access.anonymous; /* sees its own uploads */
    q->query = (struct query){
        .path = r->routed.route == ROUTE_UPLOADS ? STR("uploads") : r->routed.rest,
        .params = r->target.query,
        .accept = head_get(r->head, STR("accept")),
        .project = str_of(r->access.project),
        .now_ns = r->arrival_ns,
        .backend = app->backend,
        .store = app->store,
        .key = &app->hash_key,
        .shares = app->share_reader,
        .share_store = app->share_store,
        .uploads = app->uploads,
        .only_key = own ? str_of(r->access.name) : STR(""),
        .memory_limit = memory_for(&app->ledger, app->admit),
        .deadline_ns = (int64_t)(uv_hrtime() + app->conf->query_ms * 1000000),
        .cancel = &q->cancel,
    };
    q->job = (struct job){
        .work = work, .done = done, .party = hash64(&app->hash_key, q->query.project.p, q->query.project.len)};
    q->running = lane_submit(app->query_lane, &q->job);
    if (q->running)
        return PUMP_WAIT;
    request_refuse(r, E_OVERLOADED, "too many queries are waiting, retry later");
    return PUMP_MORE;
}

static void refused(struct request *r)
{
    if (r->state)
        read_free(r->state);
}

static bool gone(struct request *r)
{
    struct read *q = r->state;

    if (!q)
        return false;
    if (q->running) {
        atomic_store(&q->cancel, true);
        return true;
    }
    read_free(q);
    return false;
}

static void written(struct request *r, int status, bool in_time)
{
    (void)status;
    (void)in_time;
    if (r->state)
        read_free(r->state);
}

const struct handler handler_query = {begin, feed, end, refused, gone, written};
