/* Adds up the shares of those minutes that hold just what counts. */
#include "gateway/query/minutes.h"

#include "backends/hours.h"
#include "backends/shares.h"

enum { MINUTES_MAX = 100 * 24 * 60, FIRST_SUMS = 1024 };

static bool open_list(struct minute_list *l, struct ask *a, int64_t first, int64_t last)
{
    *l = (struct minute_list){.first = first, .n = last - first + 1, .met_first = INT64_MAX, .met_last = INT64_MIN};
    l->at = NEW(a->arena, struct minute, (size_t)l->n);
    return l->at != NULL;
}

enum err minutes_open(struct minutes *m, struct ask *a)
{
    const struct query *q = a->q;
    int64_t first = share_minute(a->window.from_ns), last = share_minute(a->window.until_ns - 1);

    *m = (struct minutes){.ask = a};
    if (!q->shares || a->selector || a->one_profile || !a->params.value[PARAM_SERVICE].len || last < first ||
        last - first >= MINUTES_MAX)
        return E_OK;
    m->used = open_list(&m->minutes, a, first, last) &&
              open_list(&m->hours, a, hour_of(a->window.from_ns), hour_of(a->window.until_ns - 1));
    return m->used ? E_OK : ask_no_memory(a);
}

void minutes_close(struct minutes *m)
{
    idmap_free(&m->functions);
    arena_free(m->pieces.arena);
    m->pieces.arena = NULL;
    m->used = false;
}

static struct minute *find(const struct minute_list *l, int64_t place)
{
    return place >= l->first && place < l->first + l->n ? &l->at[place - l->first] : NULL;
}

void minutes_want(struct minutes *m, const struct stored *p)
{
    struct minute_list *l = p->hour ? &m->hours : &m->minutes;
    int64_t place = p->hour ? p->hour->hour : share_minute(p->time_ns);
    struct minute *at = find(l, place);

    ASSERT(at != NULL);
    if (at->rows++ == 0)
        m->open++;
    l->met_first = place < l->met_first ? place : l->met_first;
    l->met_last = place > l->met_last ? place : l->met_last;
    at->want += p->hour ? p->hour->check : share_check(p->attempt.boot, p->attempt.group, p->attempt.place);
}

static enum err add(struct minutes *m, const struct share *s)
{
    uint32_t place = idmap_add(&m->functions, s->function, m->n_sums);
    bool over = false;

    if (place == IDMAP_NONE)
        return fault_set(&m->ask->fault, E_NO_MEMORY, NULL);
    if (place == m->cap_sums) {
        uint32_t cap = m->cap_sums ? m->cap_sums * 2 : FIRST_SUMS;
        struct share *sums = GROW(m->ask->arena, m->sums, struct share, m->cap_sums, cap);
        if (!sums)
            return ask_no_memory(m->ask);
        m->sums = sums;
        m->cap_sums = cap;
    }
    if (place == m->n_sums)
        m->sums[m->n_sums++].function = s->function;
    m->sums[place].self = add_sat(m->sums[place].self, s->self, &over);
    m->sums[place].total = add_sat(m->sums[place].total, s->total, &over);
    return E_OK;
}

/* All pieces of a minute are there: it is taken if they hold just what counts. */
static enum err settle(struct minutes *m)
{
    struct pieces *p = &m->pieces;
    struct minute *at = p->arena ? find(p->of, p->place) : NULL;
    uint64_t check = 0;
    bool over = false;
    enum err e = E_OK;

    for (unsigned i = 0; i < p->n; i++)
        check += p->list[i].check;
    if (at && at->rows && !at->taken && check == at->want) {
        for (unsigned i = 0; i < p->n; i++) {
            for (uint32_t j = 0; e == E_OK && j < p->list[i].n; j++)
                e = add(m, &p->list[i].rows[j]);
            m->total = add_sat(m->total, p->list[i].total, &over);
        }
        at->taken = true;
        m->open--;
    }
    arena_free(p->arena);
    *p = (struct pieces){0};
    return e;
}

/* A piece that is not whole, or one too many, leaves its minute to be merged. */
static enum err on_piece(struct minutes *m, const struct minute_list *of, int64_t place, struct str packed)
{
    struct pieces *p = &m->pieces;
    struct fault why = {0};
    enum err e = ask_look(m->ask);

    if (e == E_OK && p->arena && (p->place != place || p->of != of))
        e = settle(m);
    if (e)
        return e;
    if (!p->arena && !(p->arena = arena_new(m->ask->q->memory_limit / 4)))
        return fault_set(&m->ask->fault, E_NO_MEMORY, NULL);
    p->of = of;
    p->place = place;
    if (p->n < PIECES_MAX && shares_unpack(packed, p->arena, &p->list[p->n], &why) == E_OK)
        p->n++;
    return E_OK;
}

static enum err on_minute(void *ctx, int64_t minute, struct str packed)
{
    struct minutes *m = ctx;

    return on_piece(m, &m->minutes, minute, packed);
}

static enum err on_hour(void *ctx, int64_t hour, struct str packed)
{
    struct minutes *m = ctx;

    return on_piece(m, &m->hours, hour, packed);
}

static enum err read_list(struct minutes *m, const struct minute_list *l, struct str type_id, struct fault *why)
{
    const struct query *q = m->ask->q;
    struct share_of of = {q->project, m->ask->params.value[PARAM_SERVICE], type_id};
    enum err e;

    if (l->met_last < l->met_first || (l == &m->hours && !q->shares->hours))
        return E_OK;
    if (l == &m->hours)
        e = q->shares->hours(q->share_store, &of, l->met_first, l->met_last, on_hour, m, why);
    else
        e = q->shares->minutes(q->share_store, &of, l->met_first, l->met_last, on_minute, m, why);
    return e ? e : settle(m);
}

enum err minutes_read(struct minutes *m, struct str type_id)
{
    struct fault why = {0};
    enum err e = read_list(m, &m->hours, type_id, &why);

    if (e == E_OK)
        e = read_list(m, &m->minutes, type_id, &why);
    if (e == E_OK)
        return E_OK;
    m->away = e == E_STORE_DOWN && !m->ask->fault.err;
    if (m->away)
        return E_OK;
    return m->ask->fault.err ? m->ask->fault.err : fault_set(&m->ask->fault, e, why.text[0] ? "%s" : NULL, why.text);
}

bool minutes_none(const struct minutes *m)
{
    const struct share_reader_ops *r = m->ask->q->shares;

    return m->minutes.met_last < m->minutes.met_first && (m->hours.met_last < m->hours.met_first || !r->hours);
}

/* An hour of a service comes whole or not at all, so the time tells which of the two it is about. */
bool minutes_open_at(void *minutes, int64_t time_ns)
{
    const struct minutes *m = minutes;
    const struct minute *at = find(&m->minutes, share_minute(time_ns)), *hour = find(&m->hours, hour_of(time_ns));

    return (at && at->rows && !at->taken) || (hour && hour->rows && !hour->taken);
}

const struct share *minutes_find(const struct minutes *m, const struct identity *id)
{
    uint32_t place = idmap_get(&m->functions, identity_hash(id, m->ask->q->key));

    return place == IDMAP_NONE ? NULL : &m->sums[place];
}
