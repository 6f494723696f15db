/* One read under way: what was asked, decoded, and everything that it holds until its answer is written. */
#ifndef GATEWAY_QUERY_ASK_H
#define GATEWAY_QUERY_ASK_H

#include "codecs/hash.h"
#include "gateway/json.h"
#include "gateway/query/params.h"
#include "gateway/query/query.h"
#include "gateway/query/selector.h"
#include "gateway/query/window.h"

struct ask {
    const struct query *q;
    struct params params;
    struct window window;
    struct selector *selector; /* NULL: everything */
    struct attempt attempt;    /* where `profile` is given */
    bool one_profile, text;
    uint32_t limit;        /* 0: the endpoint's own default */
    struct str rest;       /* of the path, decoded: NAME of labels, ID of profiles */
    struct arena *arena;   /* of the answer's own tables */
    struct arena *first;   /* where parameters are; the same, until ask_spend */
    struct hash_key key;   /* of tables over client bytes; random */
    struct answer *answer; /* its body is written last */
    struct fault fault;    /* the first thing that went wrong */
    uint32_t ticks;
};

/* Reads the parameters, of which `allowed` are known. Zeroed memory is a good start for a. */
enum err ask_open(struct ask *a, const struct query *q, uint32_t allowed, struct answer *answer) MUST_CHECK;
void ask_close(struct ask *a);

/* E_OK, or why to stop: the client is gone, the deadline has passed. Cheap enough for every sample; looks each 1,024th
 * time. */
enum err ask_alive(struct ask *a) MUST_CHECK;
/* The same, looking now. */
enum err ask_look(struct ask *a) MUST_CHECK;
/* After a NULL from the arena. */
enum err ask_no_memory(struct ask *a);
/* Other things hold `used` bytes now: from here on the answer's tables may take what is left of the limit. */
enum err ask_spend(struct ask *a, size_t used) MUST_CHECK;
/* 413: in words that say what to do. */
enum err ask_too_large(struct ask *a);

/* What is wanted by `format`: one of the names, or the first of them by default ("text" where Accept says so and it is
 * there). */
enum err ask_format(struct ask *a, const char *const *names, size_t n, size_t *which) MUST_CHECK;

#endif
