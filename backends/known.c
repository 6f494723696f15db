/* Sets of stored ids in a small hash table; the one used longest ago goes first. */
#include "backends/known.h"

#include <stdlib.h>

enum { BUCKETS = 256 };

struct set {
    struct set *next;
    struct known_key key;
    struct idset *ids;
    uint64_t used;
};

struct known {
    struct set *buckets[BUCKETS];
    size_t bytes, max_bytes;
    uint64_t clock;
};

static struct set **bucket_of(struct known *k, struct known_key key)
{
    return &k->buckets[((uint64_t)key.service ^ (uint32_t)key.day ^ key.class_days) % BUCKETS];
}

static struct set *find(struct known *k, struct known_key key)
{
    for (struct set *s = *bucket_of(k, key); s; s = s->next)
        if (s->key.service == key.service && s->key.day == key.day && s->key.class_days == key.class_days)
            return s;
    return NULL;
}

static size_t set_bytes(const struct set *s)
{
    return sizeof *s + idset_bytes(s->ids);
}

/* Frees the set that *at points to. */
static void drop(struct known *k, struct set **at)
{
    struct set *s = *at;

    *at = s->next;
    k->bytes -= set_bytes(s);
    idset_free(s->ids);
    free(s);
}

static bool drop_oldest(struct known *k)
{
    struct set **oldest = NULL;

    for (size_t b = 0; b < BUCKETS; b++)
        for (struct set **at = &k->buckets[b]; *at; at = &(*at)->next)
            if (!oldest || (*at)->used < (*oldest)->used)
                oldest = at;
    if (oldest)
        drop(k, oldest);
    return oldest != NULL;
}

static struct set *add_set(struct known *k, struct known_key key)
{
    struct set **bucket = bucket_of(k, key);
    struct set *s = calloc(1, sizeof *s);

    if (!s || !(s->ids = idset_new())) {
        free(s);
        return NULL;
    }
    s->key = key;
    s->next = *bucket;
    *bucket = s;
    k->bytes += set_bytes(s);
    return s;
}

static bool add_ids(struct idset *ids, const uint64_t *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!idset_add(ids, list[i]))
            return false;
    return true;
}

struct known *known_new(size_t max_bytes)
{
    struct known *k = calloc(1, sizeof *k);

    if (k)
        k->max_bytes = max_bytes;
    return k;
}

void known_free(struct known *k)
{
    if (!k)
        return;
    while (drop_oldest(k))
        continue;
    free(k);
}

const struct idset *known_get(struct known *k, struct known_key key)
{
    struct set *s = find(k, key);

    if (!s)
        return NULL;
    s->used = ++k->clock;
    return s->ids;
}

void known_add(struct known *k, struct known_key key, const struct symbols *const *list, uint32_t n)
{
    struct set *s = find(k, key);

    if (!s && !(s = add_set(k, key)))
        return;
    s->used = ++k->clock;
    k->bytes -= set_bytes(s);
    for (uint32_t i = 0; i < n; i++)
        if (!add_ids(s->ids, list[i]->frame_ids, list[i]->n_frames) ||
            !add_ids(s->ids, list[i]->stack_ids, list[i]->n_stacks))
            break;
    k->bytes += set_bytes(s);
    while (k->bytes > k->max_bytes && drop_oldest(k))
        continue;
}

void known_forget(struct known *k, uint16_t class_days, int32_t day)
{
    for (size_t b = 0; b < BUCKETS; b++)
        for (struct set **at = &k->buckets[b]; *at;) {
            if ((*at)->key.day == day && (*at)->key.class_days == class_days)
                drop(k, at);
            else
                at = &(*at)->next;
        }
}

size_t known_bytes(const struct known *k)
{
    return k->bytes;
}
