/*
 * What a connection has read and not yet consumed: first de-chunked body bytes, then raw bytes. It lies in the loop's
 * shared buffer during a read, and in a private buffer, borrowed for as long as something is left, otherwise.
 */
#ifndef GATEWAY_INPUT_H
#define GATEWAY_INPUT_H

#include "gateway/ledger.h"

struct input {
    char *body, *raw;
    size_t body_len, raw_len;
    char *own; /* private memory, or NULL */
    size_t own_cap;
};
static inline size_t input_len(const struct input *in)
{
    return in->body_len + in->raw_len;
}
/* Points at bytes of the shared buffer; only when empty. */
void input_lend(struct input *in, char *p, size_t n);
/* Before the shared buffer is used again: keeps what is left. false: no memory. */
bool input_keep(struct input *in, struct ledger *l) MUST_CHECK;
/* Adds raw bytes behind what is left. false: no memory. */
bool input_add(struct input *in, const char *p, size_t n, struct ledger *l) MUST_CHECK;
/* Gives the private buffer back if nothing is left. */
void input_trim(struct input *in, struct ledger *l);
void input_free(struct input *in, struct ledger *l);

#endif
