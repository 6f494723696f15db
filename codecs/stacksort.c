/* Three-way radix quicksort over frames: a frame that neighbours share is looked at once, not once per comparison. */
#include "codecs/stacksort.h"

/* A stack's frame at a depth, behind its end less than any. */
static uint64_t key(const struct sortable *s, uint32_t depth)
{
    return depth < s->n ? (uint64_t)s->refs[depth] + 1 : 0;
}

static void swap(struct sortable *a, struct sortable *b)
{
    struct sortable t = *a;

    *a = *b;
    *b = t;
}

/* Smaller keys to [0, *lt), equal ones to [*lt, *gt), larger ones behind. Returns the pivot. */
static uint64_t partition(struct sortable *s, size_t n, uint32_t depth, size_t *lt, size_t *gt)
{
    uint64_t pivot = key(&s[(s[0].id ^ s[n / 2].id) % n], depth);

    *lt = 0;
    *gt = n;
    for (size_t i = 0; i < *gt;) {
        uint64_t k = key(&s[i], depth);
        if (k < pivot)
            swap(&s[(*lt)++], &s[i++]);
        else if (k > pivot)
            swap(&s[i], &s[--*gt]);
        else
            i++;
    }
    return pivot;
}

/* Sorts s, all of which share their first `depth` frames. Recursion is on halves of random size, never on depth. */
static void sort_from(struct sortable *s, size_t n, uint32_t depth)
{
    while (n > 1) {
        size_t lt, gt;
        uint64_t pivot = partition(s, n, depth, &lt, &gt);
        sort_from(s, lt, depth);
        sort_from(s + gt, n - gt, depth);
        if (pivot == 0)
            return;
        s += lt;
        n = gt - lt;
        depth++;
    }
}

void stacksort(struct sortable *s, size_t n)
{
    sort_from(s, n, 0);
}
