/* ISA-L behind our slices: members in a row, padding behind them, and what is wrong in words. */
#include "codecs/inflate.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>

struct inflate {
    struct inflate_state s;
    enum { BEFORE_MEMBER, IN_MEMBER, BEHIND_MEMBER, IN_PADDING } at;
    const char *reason;
};

static void member_begin(struct inflate *z)
{
    isal_inflate_reset(&z->s);
    z->s.crc_flag = ISAL_GZIP;
    z->at = IN_MEMBER;
}

struct inflate *inflate_new(void)
{
    struct inflate *z = malloc(sizeof *z);

    if (!z)
        return NULL;
    isal_inflate_init(&z->s);
    inflate_reset(z);
    return z;
}

void inflate_reset(struct inflate *z)
{
    z->at = BEFORE_MEMBER;
    z->reason = NULL;
}

static const char *reason_of(int code)
{
    switch (code) {
    case ISAL_INVALID_WRAPPER:
        return "not a gzip header";
    case ISAL_UNSUPPORTED_METHOD:
        return "gzip with an unknown compression method";
    case ISAL_INCORRECT_CHECKSUM:
        return "gzip checksum or length does not match";
    case ISAL_NEED_DICT:
        return "gzip that needs a dictionary";
    default:
        return "corrupt deflate data";
    }
}

/* Between members: padding, the next member, or garbage. false: stop here, z->reason may be set. */
static bool between(struct inflate *z, struct str *in)
{
    while (in->len && z->at != BEFORE_MEMBER && *in->p == 0) {
        z->at = IN_PADDING;
        in->p++;
        in->len--;
    }
    if (in->len == 0)
        return false;
    if (z->at != BEFORE_MEMBER && (z->at == IN_PADDING || (uint8_t)*in->p != 0x1f)) {
        z->reason = "garbage after the end of the gzip stream";
        return false;
    }
    member_begin(z);
    return true;
}

bool inflate_pull(struct inflate *z, struct str *in, void *out, size_t cap, size_t *n)
{
    *n = 0;
    if (z->at != IN_MEMBER && !between(z, in))
        return z->reason == NULL;
    uint32_t give = in->len < UINT32_MAX / 2 ? (uint32_t)in->len : UINT32_MAX / 2;
    /* ISA-L takes a pointer to non-const but does not write through it. */
    memcpy(&z->s.next_in, &(const void *){in->p}, sizeof z->s.next_in);
    z->s.avail_in = give;
    z->s.next_out = out;
    z->s.avail_out = (uint32_t)cap;
    int r = isal_inflate(&z->s);
    if (r < 0 || r == ISAL_NEED_DICT) {
        z->reason = reason_of(r);
        return false;
    }
    in->p += give - z->s.avail_in;
    in->len -= give - z->s.avail_in;
    *n = cap - z->s.avail_out;
    if (z->s.block_state == ISAL_BLOCK_FINISH)
        z->at = BEHIND_MEMBER;
    return true;
}

bool inflate_ended(const struct inflate *z)
{
    return z->at == BEHIND_MEMBER || z->at == IN_PADDING;
}

const char *inflate_reason(const struct inflate *z)
{
    return z->reason ? z->reason : "";
}

size_t inflate_bytes(void)
{
    return sizeof(struct inflate);
}

void inflate_free(struct inflate *z)
{
    free(z);
}
