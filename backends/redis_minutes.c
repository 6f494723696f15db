/*
 * Function shares as they add up minute by minute in this process. Each minute is a field of its own in its hash,
 * written whole each time that it has changed, so that doing it twice changes nothing. A minute that was forgotten and
 * comes back is another field beside the old one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "backends/redis_store.h"

enum { SLOTS_FIRST = 256, FLUSH_MAX = 256, RECORD_ARENA = 64 << 20 };

struct minute_sum {
    struct minute_sum *older, *newer;
    uint64_t id; /* hash of the key */
    char key[REDIS_KEY];
    uint64_t number;
    struct shares sums; /* rows on malloc */
    int64_t touched_ns;
    bool changed, sent; /* sent: in the run under way */
};

static uint64_t service_hash(const struct hash_key *k, const struct share_of *of)
{
    uint64_t pair[2] = {hash64(k, of->project.p, of->project.len), hash64(k, of->service.p, of->service.len)};

    return hash64(k, pair, sizeof pair);
}

static void key_of(const struct hash_key *k, const struct share_of *of, char kind, int64_t at, char out[REDIS_KEY])
{
    snprintf(out, REDIS_KEY, "fs:{%016llx}:%016llx:%c:%lld", (unsigned long long)service_hash(k, of),
             (unsigned long long)hash64(k, of->type_id.p, of->type_id.len), kind, (long long)at);
}

void redis_key_minute(const struct hash_key *k, const struct share_of *of, int64_t minute, char out[REDIS_KEY])
{
    key_of(k, of, 'm', minute, out);
}

void redis_key_hour(const struct hash_key *k, const struct share_of *of, int64_t hour, char out[REDIS_KEY])
{
    key_of(k, of, 'h', hour, out);
}

bool redis_minutes_init(struct redis_minutes *m, const struct hash_key *key)
{
    *m = (struct redis_minutes){.key = key, .cap = SLOTS_FIRST};
    m->slots = calloc(m->cap, sizeof *m->slots);
    return m->slots && uv_random(NULL, NULL, &m->boot, sizeof m->boot, 0, NULL) == 0;
}

static size_t slot_of(const struct redis_minutes *m, uint64_t id, const char *key)
{
    size_t i = id & (m->cap - 1);

    while (m->slots[i] && (m->slots[i]->id != id || strcmp(m->slots[i]->key, key) != 0))
        i = (i + 1) & (m->cap - 1);
    return i;
}

static void unlink_sum(struct redis_minutes *m, struct minute_sum *s)
{
    *(s->older ? &s->older->newer : &m->oldest) = s->newer;
    *(s->newer ? &s->newer->older : &m->newest) = s->older;
}

static void link_newest(struct redis_minutes *m, struct minute_sum *s)
{
    s->older = m->newest;
    s->newer = NULL;
    *(m->newest ? &m->newest->newer : &m->oldest) = s;
    m->newest = s;
}

static size_t sum_bytes(const struct minute_sum *s)
{
    return sizeof *s + s->sums.n * sizeof *s->sums.rows;
}

/* Slots behind a hole move up, as far as they belong there. */
static void close_hole(struct redis_minutes *m, size_t hole)
{
    size_t mask = m->cap - 1;

    for (size_t i = (hole + 1) & mask; m->slots[i]; i = (i + 1) & mask) {
        size_t home = m->slots[i]->id & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->slots[hole] = m->slots[i];
            m->slots[i] = NULL;
            hole = i;
        }
    }
}

static void forget(struct redis_minutes *m, struct minute_sum *s)
{
    size_t i = slot_of(m, s->id, s->key);

    m->slots[i] = NULL;
    close_hole(m, i);
    unlink_sum(m, s);
    m->n--;
    m->n_changed -= s->changed;
    m->bytes -= sum_bytes(s);
    free(s->sums.rows);
    free(s);
}

void redis_minutes_free(struct redis_minutes *m)
{
    while (m->oldest)
        forget(m, m->oldest);
    free(m->slots);
    m->slots = NULL;
}

static bool grow(struct redis_minutes *m)
{
    struct redis_minutes big = *m;

    big.cap = m->cap * 2;
    big.slots = calloc(big.cap, sizeof *big.slots);
    if (!big.slots)
        return false;
    for (struct minute_sum *s = m->oldest; s; s = s->newer)
        big.slots[slot_of(&big, s->id, s->key)] = s;
    free(m->slots);
    *m = big;
    return true;
}

static struct minute_sum *find(struct redis_minutes *m, const char *key)
{
    uint64_t id = hash64(m->key, key, strlen(key));
    struct minute_sum *s = m->slots[slot_of(m, id, key)];

    if (s)
        return s;
    if (m->n * 2 >= m->cap && !grow(m))
        return NULL;
    s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->id = id;
    s->number = ++m->made;
    snprintf(s->key, sizeof s->key, "%s", key);
    m->slots[slot_of(m, id, key)] = s;
    m->n++;
    m->bytes += sum_bytes(s);
    link_newest(m, s);
    return s;
}

/* a: for what is needed meanwhile. */
static bool add_one(struct redis_minutes *m, const char *key, const struct shares *more, struct arena *a,
                    int64_t now_ns)
{
    struct minute_sum *s = find(m, key);
    struct share *rows = NULL;
    struct shares sums;
    struct fault f = {0};

    if (!s || shares_add(&s->sums, more, a, &sums, &f) || !(rows = malloc((sums.n + 1) * sizeof *rows)))
        return false;
    if (sums.n)
        memcpy(rows, sums.rows, sums.n * sizeof *rows);
    m->bytes -= sum_bytes(s);
    free(s->sums.rows);
    s->sums = sums;
    s->sums.rows = rows;
    m->bytes += sum_bytes(s);
    m->n_changed += !s->changed;
    s->changed = true;
    s->sent = false;
    s->touched_ns = now_ns;
    unlink_sum(m, s);
    link_newest(m, s);
    return true;
}

bool redis_minutes_add(struct redis_minutes *m, const struct record *r, struct attempt a, int64_t now_ns)
{
    struct arena *arena = arena_new(RECORD_ARENA);
    struct shares *of_types = NULL;
    struct fault f = {0};
    bool ok = arena && shares_of(r, m->key, arena, &of_types, &f) == E_OK;

    for (uint32_t t = 0; ok && t < r->n_types; t++) {
        struct share_of of = {r->series.project, r->series.service, r->types[t].id};
        char key[REDIS_KEY];

        of_types[t].check = share_check(a.boot, a.group, a.place);
        redis_key_minute(m->key, &of, share_minute(r->time_ns), key);
        ok = add_one(m, key, &of_types[t], arena, now_ns);
    }
    arena_free(arena);
    return ok;
}

static void command(const struct redis_minutes *m, struct redis_link *l, const struct minute_sum *s, struct buf *packed)
{
    char field[40], ttl[16];

    packed->len = 0;
    shares_pack(&s->sums, packed);
    snprintf(field, sizeof field, "%016llx:%llu", (unsigned long long)m->boot, (unsigned long long)s->number);
    snprintf(ttl, sizeof ttl, "%d", MINUTE_TTL_S);
    REDIS_COMMAND(l, STR("HSET"), str_of(s->key), str_of(field), buf_view(packed));
    REDIS_COMMAND(l, STR("EXPIRE"), str_of(s->key), str_of(ttl));
}

/* From the newest on, since what has changed was touched lately. false: no memory. */
static bool collect(struct redis_minutes *m, struct redis_link *l)
{
    struct buf packed = {0};
    unsigned n = 0;
    bool ok;

    for (struct minute_sum *s = m->newest; s && n < FLUSH_MAX && n < m->n_changed; s = s->older) {
        if (!s->changed)
            continue;
        command(m, l, s, &packed);
        s->sent = true;
        n++;
    }
    ok = !packed.failed;
    buf_free(&packed);
    return ok;
}

enum err redis_minutes_flush(struct redis_minutes *m, struct redis_link *l, uint64_t *flushed, bool *left,
                             struct fault *f)
{
    enum err e = E_OK;

    if (!collect(m, l)) {
        redis_forget(l);
        e = fault_set(f, E_NO_MEMORY, NULL);
    } else if (m->n_changed) {
        e = redis_run(l, NULL, NULL, f);
    }
    for (struct minute_sum *s = m->newest; s; s = s->older) {
        if (!s->sent)
            continue;
        s->sent = false;
        if (e)
            continue;
        s->changed = false;
        m->n_changed--;
        ++*flushed;
    }
    *left = !e && m->n_changed > 0;
    return e;
}

void redis_minutes_spread(struct redis_minutes *m)
{
    for (struct minute_sum *s = m->oldest; s; s = s->newer)
        s->changed = true;
    m->n_changed = m->n;
}

void redis_minutes_trim(struct redis_minutes *m, int64_t before_ns, uint64_t max_bytes)
{
    for (struct minute_sum *s = m->oldest, *next; s && (s->touched_ns < before_ns || m->bytes > max_bytes); s = next) {
        next = s->newer;
        if (!s->changed || m->bytes > max_bytes)
            forget(m, s);
    }
}
