/* Notes for the upload ledger. */
#include "gateway/ingest/note.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/uploads.h"

enum { TEXT = 2048, NAME_MAX_BYTES = 200, TYPE_MAX_BYTES = 120, CLIENT_MAX_BYTES = 64, MESSAGE_MAX_BYTES = 247 };

struct note {
    struct upload_entry e;
    size_t used;
    char text[TEXT]; /* what strings of e borrow from */
};

/* A copy, cut where it is too long or there is no more room, never inside a character. */
static struct str keep(struct note *n, struct str s, size_t most)
{
    size_t room = TEXT - n->used, len = s.len < most ? s.len : most;

    if (len > room)
        len = room;
    while (len && len < s.len && ((unsigned char)s.p[len] & 0xc0) == 0x80)
        len--;
    if (len)
        memcpy(n->text + n->used, s.p, len);
    struct str kept = {n->text + n->used, len};
    n->used += len;
    return kept;
}

static void add_name(struct note *n, struct str names[UPLOAD_NAMES_MAX], uint32_t *have, uint32_t *more,
                     struct str name, size_t most)
{
    struct str cut = {name.p, name.len < most ? name.len : most};

    for (uint32_t i = 0; i < *have; i++)
        if (names[i].len <= cut.len && str_starts(cut, names[i]) && (names[i].len == name.len || cut.len < name.len))
            return;
    if (*have == UPLOAD_NAMES_MAX || TEXT - n->used < cut.len + MESSAGE_MAX_BYTES)
        ++*more;
    else
        names[(*have)++] = keep(n, name, most);
}

static void add_service(struct note *n, struct str service)
{
    if (service.len)
        add_name(n, n->e.services, &n->e.n_services, &n->e.more_services, service, NAME_MAX_BYTES);
}

static struct note *note_of(struct request *r)
{
    if (!r->note)
        r->note = calloc(1, sizeof *r->note);
    return r->note;
}

void note_upload(struct request *r, const struct spec *s, const struct upload *u)
{
    struct note *n = note_of(r);

    if (!n)
        return;
    if (s->known)
        n->e.format = str_of(upload_kind_names[s->upload.kind]);
    if (u)
        n->e.inflated = upload_inflated(u) ? upload_inflated(u) : r->body_bytes;
    if (u && n->e.n_services == 0)
        add_service(n, upload_service(u));
}

static void note_record(struct note *n, const struct record *r)
{
    struct upload_entry *e = &n->e;

    for (uint32_t i = 0; i < r->n_types; i++)
        add_name(n, e->types, &e->n_types, &e->more_types, r->types[i].id, TYPE_MAX_BYTES);
    if (e->content == 0)
        e->content = r->content_id.lo;
    if (e->first_ns == 0 || r->time_ns < e->first_ns)
        e->first_ns = r->time_ns;
    if (e->last_ns == 0 || r->time_ns > e->last_ns)
        e->last_ns = r->time_ns;
    if (e->message.len == 0 && r->drops.broken_references) {
        char text[80];
        snprintf(text, sizeof text, "%u samples are left out: what they refer to is not there",
                 r->drops.broken_references);
        e->message = keep(n, str_of(text), MESSAGE_MAX_BYTES);
    }
}

void note_profile(struct request *r, const struct outcome *o)
{
    struct note *n = note_of(r);

    if (!n)
        return;
    add_service(n, o->service);
    if (o->fault.err == E_OK && n->e.message.len == 0)
        n->e.message = keep(n, str_of(o->fault.text), MESSAGE_MAX_BYTES);
    if (o->record)
        note_record(n, o->record);
}

void note_stored(struct request *r, struct attempt a)
{
    char id[ATTEMPT_TEXT];

    if (!r->note || r->note->e.profile.len)
        return;
    attempt_format(a, id);
    r->note->e.profile = keep(r->note, str_of(id), ATTEMPT_TEXT);
}

static void say(struct note *n, enum upload_verdict verdict, enum err e, const char *text)
{
    n->e.verdict = verdict;
    n->e.reason = str_of(err_reason(e));
    n->e.message = keep(n, str_of(text[0] ? text : err_text(e)), MESSAGE_MAX_BYTES);
}

void note_verdict(struct request *r, const struct verdict *v)
{
    struct note *n = note_of(r);

    if (!n)
        return;
    n->e.profiles = v->profiles;
    n->e.stored = v->stored;
    n->e.empty = v->empty;
    n->e.refused = v->refused;
    n->e.failed = v->failed;
    if (v->failed)
        say(n, VERDICT_FAILED, v->failure, "");
    else if (v->refused)
        say(n, v->stored + v->empty ? VERDICT_PARTIAL : VERDICT_REFUSED, v->reasons[0].err, v->reasons[0].text);
    else if (v->stored == 0)
        n->e.reason = STR("empty_profiles");
}

/* The first product of it, name/version, as far as it is printable. */
static struct str client_of(const struct request *r)
{
    struct str s = head_get(r->head, STR("user-agent"));
    size_t len = 0;

    while (len < s.len && len < CLIENT_MAX_BYTES && s.p[len] > ' ' && s.p[len] < 0x7f && s.p[len] != '(')
        len++;
    return (struct str){s.p, len};
}

/* The name as sent; where the upload did not come far enough to say its service, what stands before its labels. */
static void note_name(struct note *n, const struct request *r)
{
    struct buf memory = {.p = malloc(r->target.query.len + 1), .cap = r->target.query.len + 1};
    struct fault f = {.err = E_OK};
    struct str name;

    if (memory.p && target_param(&r->target, "name", &memory, &name, &f) == E_OK) {
        const char *brace = name.len ? memchr(name.p, '{', name.len) : NULL;
        if (n->e.n_services == 0 && name.len)
            add_service(n, str_trim((struct str){name.p, brace ? (size_t)(brace - name.p) : name.len}));
        n->e.name = keep(n, name, NAME_MAX_BYTES);
    }
    buf_free(&memory);
}

static void note_cut(struct note *n, const struct request *r)
{
    char text[160];

    n->e.verdict = VERDICT_CUT;
    n->e.reason = str_of(close_name(r->cut));
    if (n->e.stored)
        snprintf(text, sizeof text, "the client was gone before its answer; what it sent is stored");
    else
        snprintf(text, sizeof text, "no answer: the connection ended (%s) when %llu bytes of the body had been taken",
                 close_name(r->cut), (unsigned long long)r->body_bytes);
    n->e.message = keep(n, str_of(text), MESSAGE_MAX_BYTES);
}

static void write_note(struct note *n, struct request *r, int status)
{
    struct upload_entry *e = &n->e;

    if (r->refused)
        say(n, r->fault.err == E_INTERNAL ? VERDICT_FAILED : VERDICT_REFUSED, r->fault.err, r->fault.text);
    else if (status == 0)
        note_cut(n, r);
    if (r->routed.route == ROUTE_INGEST)
        note_name(n, r);
    e->status = (uint32_t)status;
    e->time_ns = r->arrival_ns;
    e->key = str_of(r->access.name);
    e->route = str_of(route_names[r->routed.route]);
    e->bytes = r->body_bytes;
    e->client = client_of(r);
    r->noted = true;
    uploads_add(r->app->uploads, str_of(r->access.project), e);
}

void note_answered(struct request *r, int status)
{
    struct note here;

    if (r->routed.who != ROUTE_SEND || !r->access.project || r->noted)
        return;
    if (!r->note) {
        here.e = (struct upload_entry){0};
        here.used = 0;
    }
    write_note(r->note ? r->note : &here, r, status);
}

void note_ended(struct request *r)
{
    note_answered(r, 0);
    free(r->note);
    r->note = NULL;
}
