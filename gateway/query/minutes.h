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

/* A minute, or an hour that came as such. */
struct minute {
    uint64_t want; /* sum of share_check over the profiles that count */
    uint32_t rows; /* profiles, or rows of the hour; 0: nothing, or (of minutes) their hour came whole */
    bool taken;
};
/* A stretch of them, and which of them have rows. */
struct minute_list {
    struct minute *at;
    int64_t first, n;
    int64_t met_first, met_last; /* none: met_last < met_first */
};
/* The pieces of one minute or hour as they come. */
enum { PIECES_MAX = 32 };
struct pieces {
    const struct minute_list *of;
    int64_t place;
    struct arena *arena; /* of what follows; NULL: none */
    struct shares list[PIECES_MAX];
    unsigned n;
};
struct minutes {
    struct ask *ask;
    bool used; /* else everything is merged */
    struct minute_list minutes, hours;
    struct idmap functions;
    struct share *sums; /* by place in `functions` */
    uint32_t n_sums, cap_sums;
    int64_t total;
    struct pieces pieces;
    uint32_t open; /* minutes and hours with rows that were not taken */
    bool away;     /* the share store could not be asked: everything is merged */
};

/* Whether this question can be answered so; `used` says so. */
enum err minutes_open(struct minutes *m, struct ask *a) MUST_CHECK;
void minutes_close(struct minutes *m);
/* Tells it of a profile that counts; then it reads the shares of a type. */
void minutes_want(struct minutes *m, const struct stored *p);
enum err minutes_read(struct minutes *m, struct str type_id) MUST_CHECK;
/* Whether there is nothing that shares are kept of. */
bool minutes_none(const struct minutes *m);
/* Whether profiles of this time have to be merged. For scan_spec. */
bool minutes_open_at(void *minutes, int64_t time_ns);
/* The sum of a function, or NULL. */
const struct share *minutes_find(const struct minutes *m, const struct identity *id);

#endif
