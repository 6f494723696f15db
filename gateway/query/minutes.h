/*
 * Function shares by minute (backends/shares.h) in place of merging, where the question allows it: self and total of
 * one service in whole minutes, no selector. A minute is taken only if it holds exactly the profiles that count; the
 * others are merged.
 */
#ifndef GATEWAY_QUERY_MINUTES_H
#define GATEWAY_QUERY_MINUTES_H

#include "codecs/identity.h"
#include "codecs/idmap.h"
#include "codecs/shares.h"
#include "gateway/query/ask.h"

/* What answers say then. */
#define MINUTES_AWAY "function shares are away: added up from the profiles"

struct minute {
    uint64_t want; /* sum of share_check over the profiles that count */
    uint32_t profiles;
    bool taken;
    bool hour; /* the first profile of an hour that is merged whole */
};
/* The pieces of one minute as they come. */
enum { PIECES_MAX = 32 };
struct pieces {
    int64_t minute;
    struct arena *arena; /* of what follows; NULL: none */
    struct shares list[PIECES_MAX];
    unsigned n;
};
struct minutes {
    struct ask *ask;
    int64_t first;
    uint32_t n;
    struct minute *at; /* NULL: not used, everything is merged */
    struct idmap functions;
    struct share *sums; /* by place in `functions` */
    uint32_t n_sums, cap_sums;
    int64_t total;
    struct pieces pieces;
    uint32_t open;                     /* minutes with profiles that were not taken */
    int64_t first_single, last_single; /* minutes of profiles that came singly; none: last < first */
    bool away;                         /* the share store could not be asked: everything is merged */
};

/* Whether this question can be answered so; at stays NULL if not. */
enum err minutes_open(struct minutes *m, struct ask *a) MUST_CHECK;
void minutes_close(struct minutes *m);
/* Tells it of a profile that counts; then it reads the shares of a type. */
void minutes_want(struct minutes *m, const struct stored *p);
enum err minutes_read(struct minutes *m, struct str type_id) MUST_CHECK;
/* Whether profiles of this time have to be merged. For scan_spec. */
bool minutes_open_at(void *minutes, int64_t time_ns);
/* The sum of a function, or NULL. */
const struct share *minutes_find(const struct minutes *m, const struct identity *id);

#endif
