/* A table of lists, keyed at random, so that nobody can choose addresses that meet in one list. */
#include "gateway/crowd.h"

#include <stdlib.h>

#include "codecs/hash.h"

enum { LISTS = 4096, NETWORK_BYTES = 8 };

struct member {
    struct member *next;
    uint8_t ip[16];
    uint32_t open;
};

struct crowd {
    struct hash_key key;
    size_t addresses;
    struct member *lists[LISTS];
};

struct crowd *crowd_new(void)
{
    struct crowd *c = calloc(1, sizeof *c);

    if (c)
        hash_key_random(&c->key);
    return c;
}

void crowd_free(struct crowd *c)
{
    for (size_t i = 0; c && i < LISTS; i++)
        for (struct member *m = c->lists[i], *next; m; m = next) {
            next = m->next;
            free(m);
        }
    free(c);
}

static bool is_v4(const uint8_t ip[16])
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

    return memcmp(ip, mapped, sizeof mapped) == 0;
}

/* Where the member is, or would go. */
static struct member **find(struct crowd *c, const struct address *a, uint8_t ip[16])
{
    memcpy(ip, a->ip, 16);
    if (!is_v4(ip))
        memset(ip + NETWORK_BYTES, 0, 16 - NETWORK_BYTES);
    struct member **at = &c->lists[hash64(&c->key, ip, 16) % LISTS];
    while (*at && memcmp((*at)->ip, ip, 16) != 0)
        at = &(*at)->next;
    return at;
}

bool crowd_enter(struct crowd *c, const struct address *a, uint32_t most)
{
    uint8_t ip[16];
    struct member **at = find(c, a, ip);

    if (!*at) {
        *at = calloc(1, sizeof **at);
        if (!*at)
            return false;
        memcpy((*at)->ip, ip, 16);
        c->addresses++;
    }
    if ((*at)->open >= most)
        return false;
    (*at)->open++;
    return true;
}

void crowd_leave(struct crowd *c, const struct address *a)
{
    uint8_t ip[16];
    struct member **at = find(c, a, ip), *m = *at;

    ASSERT(m && m->open > 0);
    if (--m->open)
        return;
    *at = m->next;
    c->addresses--;
    free(m);
}

size_t crowd_addresses(const struct crowd *c)
{
    return c->addresses;
}
