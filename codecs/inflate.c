/*
 * ISA-L behind our slices: members in a row, padding behind them, and what is wrong in words. Headers are read here:
 * ISA-L 2.30 refuses good ones with a header checksum, and takes or refuses others by how they arrive in pieces.
 */
#include "codecs/inflate.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>

enum { FIXED_BYTES = 10, HEAD_CRC = 2, EXTRA = 4, NAME = 8, COMMENT = 16, RESERVED = 0xe0 };

struct inflate {
    struct inflate_state s;
    enum { BEFORE_MEMBER, IN_HEADER, IN_MEMBER, BEHIND_MEMBER, IN_PADDING } at;
    const char *reason;
    uint32_t n_fixed, flags; /* of RFC 1952; a flag goes when its field has been read */
    uint32_t n_field, extra; /* bytes seen of the field at hand; length of the extra one */
    uint32_t crc, sent_crc;
};

static void member_begin(struct inflate *z)
{
    z->n_fixed = z->n_field = z->extra = z->crc = z->sent_crc = 0;
    z->at = IN_HEADER;
}

static void deflate_begin(struct inflate *z)
{
    isal_inflate_reset(&z->s);
    z->s.crc_flag = ISAL_GZIP_NO_HDR_VER;
    z->at = IN_MEMBER;
}

static bool bad(struct inflate *z, const char *why)
{
    z->reason = why;
    return false;
}

static bool fixed_byte(struct inflate *z, uint8_t b)
{
    z->n_fixed++;
    if ((z->n_fixed == 1 && b != 0x1f) || (z->n_fixed == 2 && b != 0x8b))
        return bad(z, "not a gzip header");
    if (z->n_fixed == 3 && b != 8)
        return bad(z, "gzip with an unknown compression method");
    if (z->n_fixed == 4 && b & RESERVED)
        return bad(z, "gzip header with unknown flags");
    if (z->n_fixed == 4)
        z->flags = b & ~1u; /* "probably text" says nothing */
    return true;
}

/* The optional field at hand: extra, name, comment, checksum, in this order. */
static bool field_byte(struct inflate *z, uint8_t b)
{
    uint32_t before = z->flags & (EXTRA | NAME | COMMENT), field = before ? before & -before : HEAD_CRC;
    bool end = b == 0;

    z->n_field++;
    if (field == EXTRA) {
        if (z->n_field <= 2)
            z->extra |= (uint32_t)b << 8 * (z->n_field - 1);
        end = z->n_field >= 2 && z->n_field == z->extra + 2;
    } else if (field == HEAD_CRC) {
        z->sent_crc |= (uint32_t)b << 8 * (z->n_field - 1);
        end = z->n_field == 2;
        if (end && z->sent_crc != (z->crc & 0xffff))
            return bad(z, "gzip header checksum does not match");
    }
    if (end) {
        z->flags &= ~field;
        z->n_field = 0;
    }
    return true;
}

static bool header(struct inflate *z, struct str *in)
{
    while (in->len && z->at == IN_HEADER) {
        uint8_t b = (uint8_t)*in->p;
        bool checksum = z->n_fixed == FIXED_BYTES && z->flags == HEAD_CRC;
        if (!(z->n_fixed < FIXED_BYTES ? fixed_byte(z, b) : field_byte(z, b)))
            return false;
        if (!checksum)
            z->crc = crc32_gzip_refl(z->crc, &b, 1);
        in->p++;
        in->len--;
        if (z->n_fixed == FIXED_BYTES && z->flags == 0)
            deflate_begin(z);
    }
    return true;
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
        return bad(z, "garbage after the end of the gzip stream");
    }
    member_begin(z);
    return true;
}

bool inflate_pull(struct inflate *z, struct str *in, void *out, size_t cap, size_t *n)
{
    *n = 0;
    if (z->at != IN_MEMBER && z->at != IN_HEADER && !between(z, in))
        return z->reason == NULL;
    if (z->at == IN_HEADER && (!header(z, in) || z->at == IN_HEADER))
        return z->reason == NULL;
    uint32_t give = in->len < UINT32_MAX / 2 ? (uint32_t)in->len : UINT32_MAX / 2;
    /* ISA-L takes a pointer to non-const but does not write through it. */
    memcpy(&z->s.next_in, &(const void *){in->p}, sizeof z->s.next_in);
    z->s.avail_in = give;
    z->s.next_out = out;
    z->s.avail_out = (uint32_t)cap;
    int r = isal_inflate(&z->s);
    if (r < 0) {
        return bad(z, r == ISAL_INCORRECT_CHECKSUM ? "gzip checksum or length does not match" : "corrupt deflate data");
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
