/* A list of projects that have a rate, each with three buckets, and two sets of stacks: of the two, the older goes when
 * the younger is full. */
#include "gateway/ingest/throttle.h"

#include <inttypes.h>
#include <stdlib.h>

enum { REMEMBERED = 200000 }; /* stacks of a set */
static const double SECOND = 1e9;

enum { REQUESTS, BYTES, STACKS, BUCKETS };
static const char *const names[BUCKETS] = {"rates.requests", "rates.bytes", "rates.new_stacks"};

struct bucket {
    double tokens; /* below 0: taken in advance */
    int64_t at_ns; /* when that was so; 0: never used, full */
};

struct customer {
    struct customer *next;
    struct bucket buckets[BUCKETS];
    struct idset *young, *old;
    size_t name_len;
    char name[];
};

struct throttle {
    struct customer *first;
};

struct throttle *throttle_new(void)
{
    return calloc(1, sizeof(struct throttle));
}

void throttle_free(struct throttle *t)
{
    for (struct customer *c = t ? t->first : NULL, *next; c; c = next) {
        next = c->next;
        idset_free(c->young);
        idset_free(c->old);
        free(c);
    }
    free(t);
}

static struct customer *find(struct throttle *t, struct str project)
{
    struct customer *c = t->first;

    while (c && !str_eq((struct str){c->name, c->name_len}, project))
        c = c->next;
    if (c || !(c = calloc(1, sizeof *c + project.len)))
        return c;
    c->name_len = project.len;
    memcpy(c->name, project.p, project.len);
    c->next = t->first;
    t->first = c;
    return c;
}

static double rate_of(const struct conf_bounds *b, int which)
{
    return which == REQUESTS ? (double)b->rates.requests
           : which == BYTES  ? (double)b->rates.bytes
                             : (double)b->rates.new_stacks;
}

static double burst_of(const struct conf_bounds *b, int which)
{
    double burst = rate_of(b, which) * (double)b->rates.burst_ms / 1e3;
    double least = which == REQUESTS ? 1 : which == BYTES ? (double)b->limits.body : (double)b->limits.samples;

    return burst > least ? burst : least;
}

/* What has come in since it was looked at last. */
static void fill(struct bucket *k, double rate, double burst, int64_t now_ns)
{
    if (!k->at_ns)
        k->tokens = burst;
    else if (now_ns > k->at_ns)
        k->tokens += rate * (double)(now_ns - k->at_ns) / SECOND;
    if (k->tokens > burst)
        k->tokens = burst;
    k->at_ns = now_ns;
}

static enum err wait_for(const struct conf_bounds *b, int which, double tokens, double wanted, struct fault *f)
{
    double rate = rate_of(b, which), seconds = (wanted - tokens) / rate;

    f->retry_s = seconds < 1 ? 1 : seconds > 3600 ? 3600 : (uint32_t)seconds + 1;
    return fault_set(f, E_RATE_LIMITED,
                     "%s = %.0f a second (%.0f at once) is used up: %.0f wanted, %.0f left; again in %" PRIu32 " s",
                     names[which], rate, burst_of(b, which), wanted, tokens > 0 ? tokens : 0, f->retry_s);
}

enum err throttle_enter(struct throttle *t, struct str project, const struct conf_bounds *b, uint64_t bytes,
                        int64_t now_ns, struct fault *f)
{
    const double wanted[BUCKETS] = {1, bytes ? (double)bytes : 1, 1};
    struct customer *c;

    if (!b->rates.requests && !b->rates.bytes && !b->rates.new_stacks)
        return E_OK;
    c = find(t, project);
    for (int i = 0; c && i < BUCKETS; i++) {
        if (rate_of(b, i) <= 0)
            continue;
        fill(&c->buckets[i], rate_of(b, i), burst_of(b, i), now_ns);
        if (c->buckets[i].tokens < wanted[i])
            return wait_for(b, i, c->buckets[i].tokens, wanted[i], f);
    }
    if (c && b->rates.requests)
        c->buckets[REQUESTS].tokens -= 1;
    if (c && b->rates.bytes)
        c->buckets[BYTES].tokens -= (double)bytes;
    return E_OK;
}

static void take(struct customer *c, const struct conf_bounds *b, int which, double n, int64_t now_ns)
{
    fill(&c->buckets[which], rate_of(b, which), burst_of(b, which), now_ns);
    c->buckets[which].tokens -= n;
}

void throttle_bytes(struct throttle *t, struct str project, const struct conf_bounds *b, uint64_t bytes, int64_t now_ns)
{
    struct customer *c = b->rates.bytes && bytes ? find(t, project) : NULL;

    if (c)
        take(c, b, BYTES, (double)bytes, now_ns);
}

/* Whether it was not sent lately; it has been now. Without memory for it nothing is new. */
static bool meet(struct customer *c, uint64_t stack)
{
    if ((c->young && idset_has(c->young, stack)) || (c->old && idset_has(c->old, stack)))
        return false;
    if (c->young && idset_count(c->young) >= REMEMBERED) {
        idset_free(c->old);
        c->old = c->young;
        c->young = NULL;
    }
    if (!c->young)
        c->young = idset_new();
    return c->young && idset_add(c->young, stack);
}

void throttle_stacks(struct throttle *t, const struct record *r, const struct conf_bounds *b, int64_t now_ns)
{
    struct customer *c = b->rates.new_stacks && r->symbols ? find(t, r->series.project) : NULL;
    uint32_t fresh = 0;

    for (uint32_t i = 0; c && i < r->symbols->n_stacks; i++)
        fresh += meet(c, r->symbols->stack_ids[i]);
    if (fresh)
        take(c, b, STACKS, fresh, now_ns);
}

size_t throttle_bytes_held(const struct throttle *t)
{
    size_t n = 0;

    for (const struct customer *c = t->first; c; c = c->next)
        n += sizeof *c + c->name_len + (c->young ? idset_bytes(c->young) : 0) + (c->old ? idset_bytes(c->old) : 0);
    return n;
}
