/* Which rows of a selection count: sorting by content id brings retries and siblings side by side. */
#include "backends/once.h"

#include <stdlib.h>

static int order_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static bool same_content(const struct once_row *a, const struct once_row *b)
{
    return a->content_id.hi == b->content_id.hi && a->content_id.lo == b->content_id.lo;
}

int once_order(const struct once_row *a, const struct once_row *b)
{
    int c = (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);

    if (!c)
        c = order_u64(a->attempt.boot, b->attempt.boot);
    if (!c)
        c = order_u64(a->attempt.group, b->attempt.group);
    if (!c)
        c = order_u64(a->attempt.place, b->attempt.place);
    return c;
}

static int order_content(const void *pa, const void *pb)
{
    const struct once_row *a = pa, *b = pb;
    int c = order_u64(a->content_id.hi, b->content_id.hi);

    if (!c)
        c = order_u64(a->content_id.lo, b->content_id.lo);
    return c ? c : once_order(a, b);
}

size_t once_find(struct once_row *rows, size_t n)
{
    size_t repeated = 0;

    if (n)
        qsort(rows, n, sizeof *rows, order_content);
    for (size_t i = 0; i < n; i++) {
        rows[i].repeated =
            (i > 0 && same_content(&rows[i - 1], &rows[i])) || (i + 1 < n && same_content(&rows[i], &rows[i + 1]));
        repeated += rows[i].repeated;
    }
    return repeated;
}

static void choose_run(struct once_row *run, size_t n)
{
    bool identity = false, any = false;

    for (size_t i = 0; i < n; i++)
        identity |= run[i].identity;
    for (size_t i = 0; i < n; i++) {
        run[i].counts = run[i].told && !(identity && any);
        any |= run[i].counts;
    }
    if (!any)
        run[0].counts = true;
}

void once_choose(struct once_row *rows, size_t n)
{
    for (size_t i = 0, end; i < n; i = end) {
        end = i + 1;
        while (end < n && same_content(&rows[i], &rows[end]))
            end++;
        choose_run(rows + i, end - i);
    }
}
