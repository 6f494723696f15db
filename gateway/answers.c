/*
 * Memory of answers on their way. A client that asks for much and does not read holds it until timeouts.write; many
 * such clients must not hold more than the share of answers. When a large answer finds no room there, those that have
 * taken theirs the slowest are cut, and if nobody is slow, the new answer becomes a 503: its client asks again later.
 */
#include "gateway/conn_parts.h"

enum {
    SMALL_BYTES = 16 << 10, /* answers of this size always find room: there are no more of them than connections */
    FRESH_MS = 1000,        /* whose answer began so lately is not called slow */
    SLOW_BYTES = 64 << 10,  /* taken in a second, at least; the same as senders must send (design.md 3) */
};

static size_t held(const struct conn *c)
{
    return c->reply.headers.cap + c->reply.body.cap;
}

/* Bytes of the answer that the client has taken in each second. */
static uint64_t pace(struct conn *c, uint64_t ms)
{
    size_t whole = c->reply_head.len + c->reply.body.len, given = c->secure ? c->secure->sent : whole;
    size_t waits = conn_unread(c);

    return (given > waits ? given - waits : 0) * 1000 / ms;
}

/* The slowest large one; NULL: nobody is slow. */
static struct conn *slowest(const struct app *app)
{
    uint64_t now = uv_now(app->loop), least = SLOW_BYTES;
    struct conn *found = NULL;

    for (struct conn *c = app->conns; c; c = c->next) {
        if (c->state != CONN_REPLY || c->reply_held <= SMALL_BYTES || now - c->reply_ms < FRESH_MS)
            continue;
        uint64_t bytes = pace(c, now - c->reply_ms);
        if (bytes < least) {
            least = bytes;
            found = c;
        }
    }
    return found;
}

static bool fits(const struct app *app, size_t n)
{
    uint64_t used = ledger_used(&app->ledger, LEDGER_answers);

    return n <= SMALL_BYTES || used == 0 || used + n <= ledger_share_answers(app->ledger.limit);
}

/* Cuts slow ones until n bytes fit. */
static bool make_room(struct app *app, size_t n)
{
    while (!fits(app, n)) {
        struct conn *slow = slowest(app);
        if (!slow)
            return false;
        answers_end(slow);
        conn_close(slow, CLOSE_UNREAD, true);
    }
    return true;
}

bool answers_room(struct app *app)
{
    return make_room(app, SMALL_BYTES + 1);
}

static void refuse(struct conn *c, size_t n)
{
    struct fault f = {.err = E_OK};
    bool head_only = c->reply.head_only;

    fault_set(&f, E_OVERLOADED,
              "no room for an answer of %zu bytes: %llu bytes of answers wait to be read, at most %llu", n,
              (unsigned long long)ledger_used(&c->app->ledger, LEDGER_answers),
              (unsigned long long)ledger_share_answers(c->app->ledger.limit));
    c->app->metrics.refused[f.err]++;
    reply_free(&c->reply);
    c->reply = (struct reply){.head_only = head_only};
    reply_fault(&c->reply, &f);
}

void answers_begin(struct conn *c)
{
    size_t n = held(c);

    if (c->where == ROUTE_PUBLIC && !make_room(c->app, n))
        refuse(c, n);
    c->reply_ms = uv_now(c->app->loop);
    c->reply_held = held(c);
    ledger_charge(&c->app->ledger, LEDGER_answers, (int64_t)c->reply_held);
}

void answers_end(struct conn *c)
{
    ledger_charge(&c->app->ledger, LEDGER_answers, -(int64_t)c->reply_held);
    c->reply_held = 0;
}
