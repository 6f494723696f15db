/* Adds up the shares of those minutes that hold just what counts. */
#include "gateway/query/minutes.h"

#include "backends/shares.h"

enum { MINUTES_MAX = 100 * 24 * 60, FIRST_SUMS = 1024 };

enum err minutes_open(struct minutes *m, struct ask *a)
{
    const struct query *q = a->q;
    int64_t first = share_minute(a->window.from_ns), last = share_minute(a->window.until_ns - 1);

    *m = (struct minutes){.ask = a, .first = first, .first_single = INT64_MAX, .last_single = INT64_MIN};
    if (!q->shares || a->selector || a->one_profile || !a->params.value[PARAM_SERVICE].len || last < first ||
        last - first >= MINUTES_MAX)
        return E_OK;
    m->n = (uint32_t)(last - first + 1);
    m->at = NEW(a->arena, struct minute, m->n);
    return m->at ? E_OK : ask_no_memory(a);
}

void minutes_close(struct minutes *m)
{
    idmap_free(&m->functions);
    arena_free(m->pieces.arena);
    m->pieces.arena = NULL;
    m->at = NULL;
}

static struct minute *find(const struct minutes *m, int64_t minute)
{
    return minute >= m->first && minute < m->first + m->n ? &m->at[minute - m->first] : NULL;
}

void minutes_want(struct minutes *m, const struct stored *p)
{
    struct minute *at = find(m, share_minute(p->time_ns));

    ASSERT(at != NULL);
    if (at->profiles++ == 0)
        m->open++;
    at->hour |= p->hour != NULL;
    if (!p->hour) {
        int64_t minute = share_minute(p->time_ns);
        m->first_single = minute < m->first_single ? minute : m->first_single;
        m->last_single = minute > m->last_single ? minute : m->last_single;
    }
    at->want += share_check(p->attempt.boot, p->attempt.group, p->attempt.place);
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
    struct minute *at = p->arena ? find(m, p->minute) : NULL;
    uint64_t check = 0;
    bool over = false;
    enum err e = E_OK;

    for (unsigned i = 0; i < p->n; i++)
        check += p->list[i].check;
    if (at && at->profiles && !at->hour && !at->taken && check == at->want) {
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
static enum err on_piece(void *ctx, int64_t minute, struct str packed)
{
    struct minutes *m = ctx;
    struct pieces *p = &m->pieces;
    struct fault why = {0};
    enum err e = ask_look(m->ask);

    if (e == E_OK && p->arena && p->minute != minute)
        e = settle(m);
    if (e)
        return e;
    if (!p->arena && !(p->arena = arena_new(m->ask->q->memory_limit / 4)))
        return fault_set(&m->ask->fault, E_NO_MEMORY, NULL);
    p->minute = minute;
    if (p->n < PIECES_MAX && shares_unpack(packed, p->arena, &p->list[p->n], &why) == E_OK)
        p->n++;
    return E_OK;
}

enum err minutes_read(struct minutes *m, struct str type_id)
{
    const struct query *q = m->ask->q;
    struct fault why = {0};

    if (m->open == 0 || m->last_single < m->first_single)
        return E_OK;
    struct share_of of = {q->project, m->ask->params.value[PARAM_SERVICE], type_id};
    enum err e = q->shares->minutes(q->share_store, &of, m->first_single, m->last_single, on_piece, m, &why);
    if (e == E_OK)
        return settle(m);
    m->away = e == E_STORE_DOWN && !m->ask->fault.err;
    if (m->away)
        return E_OK;
    return m->ask->fault.err ? m->ask->fault.err : fault_set(&m->ask->fault, e, why.text[0] ? "%s" : NULL, why.text);
}

bool minutes_open_at(void *minutes, int64_t time_ns)
{
    const struct minutes *m = minutes;
    const struct minute *at = find(m, share_minute(time_ns));

    return at && at->profiles && !at->taken;
}

const struct share *minutes_find(const struct minutes *m, const struct identity *id)
{
    uint32_t place = idmap_get(&m->functions, identity_hash(id, m->ask->q->key));

    return place == IDMAP_NONE ? NULL : &m->sums[place];
}
