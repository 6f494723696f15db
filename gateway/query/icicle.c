/* A flame graph out of characters: a row for each level, boxes as wide as their share of 100 columns. */
#include <stdio.h>

#include "gateway/query/flamegraph.h"
#include "gateway/query/text.h"

static uint32_t column_of(int64_t x, int64_t total)
{
    return total > 0 ? (uint32_t)((double)x / (double)total * TEXT_COLUMNS + 0.5) : 0;
}

/* "|name 42.1 %   ": the name is cut before the number goes. */
static void put_box(struct buf *out, const struct flame *f, const struct flame_box *b, uint32_t width)
{
    struct str name = f->names[b->name];
    char share[16] = "";
    size_t room = width - 1, n;
    int len = snprintf(share, sizeof(share), " %.1f %%", 100.0 * (double)b->total / (double)f->total);
    buf_char(out, '|');
    if (room >= (size_t)len + 4) {
        n = text_name(out, name, room - (size_t)len);
        buf_str(out, str_of(share));
        n += (size_t)len;
    } else {
        n = text_name(out, name, room);
    }
    for (; n < room; n++)
        buf_char(out, ' ');
}

static bool put_level(struct buf *out, const struct flame *f, uint32_t level)
{
    uint32_t column = 0;
    bool any = false;
    for (uint32_t i = f->level_at[level]; i < f->level_at[level + 1]; i++) {
        const struct flame_box *b = &f->boxes[i];
        uint32_t from = column_of(b->x, f->total), until = column_of(b->x + b->total, f->total);
        if (until <= from)
            continue;
        for (; column < from; column++)
            buf_char(out, ' ');
        put_box(out, f, b, until - from);
        column = until;
        any = true;
    }
    if (any)
        buf_char(out, '\n');
    return any;
}

void icicle_write(const struct ask *a, const struct gathered *g, const struct flame *f)
{
    struct buf *out = &a->answer->body;
    text_head(out, a, g);
    if (f->total == 0)
        return;
    for (uint32_t d = 0; d < f->n_levels; d++)
        if (!put_level(out, f, d))
            break;
    if (f->cut_nodes)
        buf_printf(out, "(%llu more in boxes named other)\n", (unsigned long long)f->cut_nodes);
}
