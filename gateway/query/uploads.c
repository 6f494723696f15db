/* GET uploads: the ledger, newest first (B1). Answers "200 but no data" and "why 400" without looking into any log. */
#include <inttypes.h>
#include <stdlib.h>

#include "gateway/query/endpoints.h"
#include "gateway/query/text.h"

enum { PAGE = 100, SLACK = 1000 };

struct row {
    int64_t time_ns;
    uint64_t writer, number;
    char *packed; /* owned */
    size_t len;
};
/* When some content came. */
struct arrival {
    uint64_t content;
    int64_t time_ns;
};
struct listing {
    struct ask *ask;
    uint32_t limit, verdict; /* verdict: UPLOAD_VERDICTS for all */
    struct row *rows;
    uint32_t n, cap;
    struct arrival *arrivals;
    uint32_t n_arrivals, cap_arrivals;
};

static int compare_rows(const void *pa, const void *pb)
{
    const struct row *a = pa, *b = pb;

    if (a->time_ns != b->time_ns)
        return a->time_ns > b->time_ns ? -1 : 1;
    if (a->writer != b->writer)
        return a->writer > b->writer ? -1 : 1;
    return a->number == b->number ? 0 : a->number > b->number ? -1 : 1;
}

static int compare_arrivals(const void *pa, const void *pb)
{
    const struct arrival *a = pa, *b = pb;

    if (a->content != b->content)
        return a->content < b->content ? -1 : 1;
    return a->time_ns == b->time_ns ? 0 : a->time_ns < b->time_ns ? -1 : 1;
}

/* Newest first, each once, no more than are shown. */
static void cut_back(struct listing *l)
{
    uint32_t n = 0;

    if (l->n)
        qsort(l->rows, l->n, sizeof *l->rows, compare_rows);
    for (uint32_t i = 0; i < l->n; i++) {
        if (n == l->limit || (n && compare_rows(&l->rows[n - 1], &l->rows[i]) == 0))
            free(l->rows[i].packed);
        else
            l->rows[n++] = l->rows[i];
    }
    l->n = n;
}

static bool has_service(const struct upload_entry *e, struct str service)
{
    for (uint32_t i = 0; i < e->n_services; i++)
        if (str_eq(e->services[i], service))
            return true;
    return service.len == 0;
}

static bool is_wanted(const struct listing *l, const struct upload_entry *e)
{
    const struct ask *a = l->ask;
    const struct params *p = &a->params;
    const struct window *w = &a->window;

    if (a->q->only_key.len && !str_eq(e->key, a->q->only_key))
        return false;
    if (!w->by_default && (e->time_ns < w->from_ns || e->time_ns >= w->until_ns))
        return false;
    if (p->given[PARAM_KEY] && !str_eq(e->key, p->value[PARAM_KEY]))
        return false;
    if (p->given[PARAM_REASON] && !str_eq(e->reason, p->value[PARAM_REASON]))
        return false;
    return (l->verdict == UPLOAD_VERDICTS || l->verdict == e->verdict) && has_service(e, p->value[PARAM_SERVICE]);
}

static enum err keep_arrival(struct listing *l, const struct upload_entry *e)
{
    struct ask *a = l->ask;

    if (e->content == 0)
        return E_OK;
    if (l->n_arrivals == l->cap_arrivals) {
        uint32_t cap = l->cap_arrivals ? l->cap_arrivals * 2 : 1024;
        struct arrival *all = GROW(a->arena, l->arrivals, struct arrival, l->cap_arrivals, cap);
        if (!all)
            return ask_no_memory(a);
        l->arrivals = all;
        l->cap_arrivals = cap;
    }
    l->arrivals[l->n_arrivals++] = (struct arrival){e->content, e->time_ns};
    return E_OK;
}

static enum err keep_row(struct listing *l, const struct upload_entry *e, struct str packed)
{
    struct ask *a = l->ask;
    char *copy;

    if (l->n == l->cap && l->n >= 2 * (size_t)l->limit + SLACK)
        cut_back(l);
    if (l->n == l->cap) {
        uint32_t cap = l->cap ? l->cap * 2 : 1024;
        struct row *rows = GROW(a->arena, l->rows, struct row, l->cap, cap);
        if (!rows)
            return ask_no_memory(a);
        l->rows = rows;
        l->cap = cap;
    }
    copy = malloc(packed.len);
    if (!copy)
        return fault_set(&a->fault, E_NO_MEMORY, NULL);
    memcpy(copy, packed.p, packed.len);
    l->rows[l->n++] = (struct row){e->time_ns, e->writer, e->number, copy, packed.len};
    return E_OK;
}

static enum err on_entry(void *ctx, const struct upload_entry *e, struct str packed)
{
    struct listing *l = ctx;
    enum err err = ask_alive(l->ask);

    if (err == E_OK)
        err = keep_arrival(l, e);
    if (err == E_OK && is_wanted(l, e))
        err = keep_row(l, e, packed);
    return err;
}

/* The last arrival of the same content before; 0: none. */
static int64_t earlier(const struct listing *l, const struct upload_entry *e)
{
    uint32_t lo = 0, hi = l->n_arrivals;
    const struct arrival self = {e->content, e->time_ns};

    if (e->content == 0)
        return 0;
    while (lo < hi) { /* the first that is not before it */
        uint32_t mid = lo + (hi - lo) / 2;
        if (compare_arrivals(&l->arrivals[mid], &self) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo && l->arrivals[lo - 1].content == e->content ? l->arrivals[lo - 1].time_ns : 0;
}

static void put_str(struct json *j, const char *key, struct str s)
{
    json_key(j, key);
    json_str(j, s);
}

static void put_count(struct json *j, const char *key, uint64_t n)
{
    json_key(j, key);
    json_uint(j, n);
}

/* 0: null. */
static void put_time(struct json *j, const char *key, int64_t ns)
{
    char text[WINDOW_TEXT];

    json_key(j, key);
    window_format(ns, text);
    if (ns == 0)
        json_null(j);
    else
        json_str(j, str_of(text));
}

static void put_names(struct json *j, const char *key, const struct str *names, uint32_t n)
{
    json_key(j, key);
    json_open(j, '[');
    for (uint32_t i = 0; i < n; i++)
        json_str(j, names[i]);
    json_close(j, ']');
}

static void put_entry(struct json *j, const struct listing *l, const struct upload_entry *e)
{
    json_open(j, '{');
    put_time(j, "time", e->time_ns);
    put_str(j, "key", e->key);
    put_str(j, "verdict", str_of(upload_verdict_names[e->verdict]));
    json_key(j, "status");
    if (e->status)
        json_uint(j, e->status);
    else
        json_null(j);
    put_str(j, "reason", e->reason);
    put_str(j, "message", e->message);
    put_str(j, "route", e->route);
    put_str(j, "format", e->format);
    put_count(j, "bytes", e->bytes);
    put_count(j, "inflated", e->inflated);
    put_str(j, "service", e->n_services ? e->services[0] : STR(""));
    put_names(j, "types", e->types, e->n_types);
    put_str(j, "client", e->client);
    put_time(j, "retry_of", earlier(l, e));
    put_str(j, "name", e->name);
    put_names(j, "services", e->services, e->n_services);
    put_count(j, "more_services", e->more_services);
    put_count(j, "more_types", e->more_types);
    put_count(j, "profiles", e->profiles);
    put_count(j, "stored", e->stored);
    put_count(j, "empty", e->empty);
    put_count(j, "refused", e->refused);
    put_count(j, "failed", e->failed);
    put_time(j, "first", e->first_ns);
    put_time(j, "last", e->last_ns);
    put_str(j, "profile", e->profile);
    json_close(j, '}');
}

/* What keeps this answer from telling everything; empty: nothing does. */
static void write_note(struct buf *out, const struct ask *a)
{
    struct uploads_stats s;

    uploads_stats(a->q->uploads, &s);
    if (uploads_keep(a->q->uploads) == 0)
        buf_printf(out, "no uploads are kept: `shares` is null:, or `uploads.keep` is 0");
    else if (s.dropped + s.failed)
        buf_printf(out, "%" PRIu64 " entries of this process were lost, while the ledger's store was away or too slow",
                   s.dropped + s.failed);
}

static void write_json(const struct listing *l)
{
    struct ask *a = l->ask;
    struct json j = {.out = &a->answer->body};
    struct buf note = {0};
    bool all = a->window.by_default;

    write_note(&note, a);
    json_open(&j, '{');
    put_time(&j, "from", all ? 0 : a->window.from_ns);
    put_time(&j, "until", all ? 0 : a->window.until_ns);
    put_str(&j, "service", a->params.value[PARAM_SERVICE]);
    put_str(&j, "store", str_of(uploads_scheme(a->q->uploads)));
    put_count(&j, "keep", uploads_keep(a->q->uploads));
    put_str(&j, "note", buf_view(&note));
    json_key(&j, "uploads");
    json_open(&j, '[');
    for (uint32_t i = 0; i < l->n; i++) {
        struct upload_entry e;
        if (upload_entry_unpack((struct str){l->rows[i].packed, l->rows[i].len}, &e))
            put_entry(&j, l, &e);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    a->answer->body.failed |= note.failed;
    buf_free(&note);
}

static void pad(struct buf *out, struct str s, size_t columns)
{
    for (size_t n = text_put(out, s, columns); n < columns; n++)
        buf_char(out, ' ');
}

static void write_line(struct buf *out, const struct upload_entry *e)
{
    char text[WINDOW_TEXT];

    window_format(e->time_ns, text);
    buf_printf(out, "%.19sZ  ", text);
    if (e->status)
        buf_printf(out, "%3u ", e->status);
    else
        buf_printf(out, "  - ");
    pad(out, str_of(upload_verdict_names[e->verdict]), 9);
    pad(out, e->format, 11);
    buf_printf(out, "%10" PRIu64 "  ", e->bytes);
    pad(out, e->n_services ? e->services[0] : STR("-"), 22);
    buf_char(out, ' ');
    text_put(out, e->key, TEXT_COLUMNS - 81);
    buf_char(out, '\n');
    if (e->reason.len == 0 && e->message.len == 0)
        return;
    buf_printf(out, "    ");
    size_t used = text_put(out, e->reason, 30);
    buf_str(out, e->reason.len && e->message.len ? STR(": ") : STR(""));
    text_put(out, e->message, TEXT_COLUMNS - 6 - used);
    buf_char(out, '\n');
}

static void write_text(const struct listing *l)
{
    struct buf *out = &l->ask->answer->body;
    struct str service = l->ask->params.value[PARAM_SERVICE];

    buf_printf(out, "%u upload%s · ", l->n, l->n == 1 ? "" : "s");
    text_put(out, service.len ? service : STR("all services"), 30);
    buf_str(out, STR(" · "));
    if (l->ask->window.by_default)
        buf_str(out, STR("the last ones"));
    else
        text_window(out, l->ask);
    buf_char(out, '\n');
    write_note(out, l->ask);
    if (out->len && out->p[out->len - 1] != '\n')
        buf_char(out, '\n');
    buf_str(out, STR("time                  status and verdict         bytes  service                key\n"));
    for (uint32_t i = 0; i < l->n; i++) {
        struct upload_entry e;
        if (upload_entry_unpack((struct str){l->rows[i].packed, l->rows[i].len}, &e))
            write_line(out, &e);
    }
}

static enum err read_verdict(struct listing *l)
{
    struct ask *a = l->ask;
    struct str wanted = a->params.value[PARAM_VERDICT];

    l->verdict = UPLOAD_VERDICTS;
    if (!a->params.given[PARAM_VERDICT])
        return E_OK;
    for (l->verdict = 0; l->verdict < UPLOAD_VERDICTS; l->verdict++)
        if (str_eq(wanted, str_of(upload_verdict_names[l->verdict])))
            return E_OK;
    return fault_set(&a->fault, E_BAD_REQUEST,
                     "parameter \"verdict\": one of accepted, partial, refused, failed, cut is wanted");
}

static enum err list(struct listing *l)
{
    struct ask *a = l->ask;
    struct fault why = {.err = E_OK};
    enum err e = read_verdict(l);

    l->limit = a->limit ? a->limit : PAGE;
    if (e)
        return e;
    e = uploads_list(a->q->uploads, a->q->project, on_entry, l, &why);
    if (e && a->fault.err == E_OK)
        return fault_set(&a->fault, e, "the upload ledger cannot be read now: %s", why.text);
    cut_back(l);
    if (l->n_arrivals)
        qsort(l->arrivals, l->n_arrivals, sizeof *l->arrivals, compare_arrivals);
    return e;
}

enum err uploads_run(struct ask *a)
{
    static const char *const formats[] = {"json", "text"};
    struct listing l = {.ask = a};
    size_t format;
    enum err e = ask_format(a, formats, COUNTOF(formats), &format);

    if (e == E_OK)
        e = list(&l);
    if (e == E_OK && format == 1)
        write_text(&l);
    else if (e == E_OK)
        write_json(&l);
    for (uint32_t i = 0; i < l.n; i++)
        free(l.rows[i].packed);
    return e;
}
