/* Unconsumed input and its private buffer. */
#include "gateway/input.h"

#include <stdlib.h>

static bool in_own(const struct input *in)
{
    const char *p = in->body_len ? in->body : in->raw;

    return in->own && p >= in->own && p < in->own + in->own_cap;
}

void input_lend(struct input *in, char *p, size_t n)
{
    ASSERT(input_len(in) == 0);
    in->body = in->raw = p;
    in->body_len = 0;
    in->raw_len = n;
}

/* Moves what is left to the front of a buffer with room for `more` behind it. */
static bool settle(struct input *in, size_t more, struct ledger *l)
{
    size_t need = input_len(in) + more, body = in->body_len, raw = in->raw_len;
    char *p = in->own;

    if (need > in->own_cap) {
        p = malloc(need);
        if (!p)
            return false;
        ledger_charge(l, LEDGER_connections, (int64_t)need - (int64_t)in->own_cap);
    }
    if (body)
        memmove(p, in->body, body);
    if (raw)
        memmove(p + body, in->raw, raw);
    if (p != in->own) {
        free(in->own);
        in->own = p;
        in->own_cap = need;
    }
    in->body = p;
    in->raw = p + body;
    return true;
}

bool input_keep(struct input *in, struct ledger *l)
{
    if (input_len(in) == 0 || in_own(in))
        return true;
    return settle(in, 0, l);
}

bool input_add(struct input *in, const char *p, size_t n, struct ledger *l)
{
    if (!settle(in, n, l))
        return false;
    memcpy(in->raw + in->raw_len, p, n);
    in->raw_len += n;
    return true;
}

void input_trim(struct input *in, struct ledger *l)
{
    if (input_len(in) == 0)
        input_free(in, l);
}

void input_free(struct input *in, struct ledger *l)
{
    ledger_charge(l, LEDGER_connections, -(int64_t)in->own_cap);
    free(in->own);
    *in = (struct input){0};
}
