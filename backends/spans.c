#include "backends/spans.h"

#include <stdlib.h>

enum { UNITE_FROM = 4096 };

static int by_start(const void *pa, const void *pb)
{
    const struct span *a = pa, *b = pb;

    return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

void spans_unite(struct spans *s)
{
    uint32_t n = s->n;

    if (n > 1)
        qsort(s->list, n, sizeof *s->list, by_start);
    s->n = n ? 1 : 0;
    for (uint32_t i = 1; i < n; i++) {
        struct span *last = &s->list[s->n - 1];

        if (s->list[i].from_ns > last->until_ns)
            s->list[s->n++] = s->list[i];
        else if (s->list[i].until_ns > last->until_ns)
            last->until_ns = s->list[i].until_ns;
    }
}

bool spans_add(struct spans *s, struct span span)
{
    struct span *last = s->n ? &s->list[s->n - 1] : NULL;

    if (span.until_ns <= span.from_ns)
        return true;
    if (last && span.from_ns >= last->from_ns && span.from_ns <= last->until_ns) {
        if (span.until_ns > last->until_ns)
            last->until_ns = span.until_ns;
        return true;
    }
    if (s->n == s->cap && s->n >= UNITE_FROM)
        spans_unite(s);
    if (s->n >= s->cap - s->cap / 4) { /* uniting has to be worth it */
        uint32_t cap = s->cap ? s->cap * 2 : 16;
        struct span *list = realloc(s->list, cap * sizeof *list);

        if (!list)
            return false;
        s->list = list;
        s->cap = cap;
    }
    s->list[s->n++] = span;
    return true;
}

void spans_free(struct spans *s)
{
    free(s->list);
    *s = (struct spans){0};
}
