/* Folded text: what other tools for flame graphs take. Only what would break its lines is escaped. */
#include "gateway/query/flamegraph.h"
#include "gateway/query/text.h"

struct folding {
    struct ask *ask;
    struct stacks *stacks;
};

/* A semicolon would be one frame more. */
static void put_name(struct buf *out, struct str s)
{
    while (s.len) {
        const char *semicolon = memchr(s.p, ';', s.len);
        size_t n = semicolon ? (size_t)(semicolon - s.p) : s.len;
        text_put(out, (struct str){s.p, n}, SIZE_MAX / 2);
        if (semicolon) {
            buf_str(out, STR("\\x3b"));
            n++;
        }
        s = (struct str){s.p + n, s.len - n};
    }
}

static enum err on_stack(void *ctx, const struct stack *st)
{
    struct folding *f = ctx;
    struct buf *out = &f->ask->answer->body;
    for (uint32_t i = 0; i < st->n; i++) {
        struct str label;
        enum err e = flame_label(f->ask, &f->stacks->fns[st->fn[i]], &label);
        if (e)
            return e;
        if (i)
            buf_char(out, ';');
        put_name(out, label);
    }
    buf_printf(out, " %lld\n", (long long)st->value);
    return out->failed ? fault_set(&f->ask->fault, E_NO_MEMORY, NULL) : E_OK;
}

enum err folded_write(struct ask *a, struct stacks *s)
{
    struct folding f = {a, s};
    return stacks_walk(s, on_stack, &f);
}
