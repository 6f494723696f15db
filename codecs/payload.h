/*
 * The bytes of one profile (a body, a part, a raw_profile): gzip layers found by their magic, then pprof or folded
 * text. Also what identity and originals need: a digest of the bytes as sent, and where asked for the bytes.
 */
#ifndef CODECS_PAYLOAD_H
#define CODECS_PAYLOAD_H

#include "codecs/folded.h"
#include "codecs/layer.h"
#include "codecs/pprof.h"

enum payload_kind { PAYLOAD_PPROF, PAYLOAD_FOLDED };
enum { HEAD_BYTES = 16 };

struct payload;
/* What one layer unpacks to, until its first bytes have told what it is. */
struct payload_level {
    struct payload *payload;
    struct layer *layer; /* it is gzip: goes on to the next level */
    char head[HEAD_BYTES];
    uint32_t n_head;
    bool known;
    struct str replay; /* of head, still to be passed on */
};

struct payload {
    struct intake *in;
    enum payload_kind kind;
    bool alone; /* its fault is the request's */
    bool ended;
    struct fault fault;
    struct payload_level levels[LAYERS_MAX + 1];
    struct pprof *pprof; /* one of the two, once there is a byte */
    struct folded *folded;
    struct hash_state *hashing; /* until it ended */
    struct hash128 digest;
    uint64_t bytes;
    char *original;
    size_t original_cap;
};

struct payload *payload_new(struct intake *in, enum payload_kind kind,
                            bool alone) MUST_CHECK; /* NULL: in->fault is set */
/* STEP_FAIL: the request fails. A fault of this payload alone is kept here, and the rest of its bytes swallowed. */
enum step payload_feed(struct payload *p, struct str *in, uint32_t *budget) MUST_CHECK;
enum step payload_end(struct payload *p, uint32_t *budget) MUST_CHECK;
bool payload_empty(const struct payload *p); /* not one byte came out of the layers */
void payload_drop(struct payload *p);        /* what is not the arena's; NULL is fine */

#endif
