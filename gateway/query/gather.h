/* The merged samples of a selection, with their symbols and with what answers say about where they come from. */
#ifndef GATEWAY_QUERY_GATHER_H
#define GATEWAY_QUERY_GATHER_H

#include "codecs/merge.h"
#include "gateway/query/minutes.h"
#include "gateway/query/typesel.h"

/* A service of the selection, and the days whose symbols it needs. */
struct gathered_service {
    struct str name;
    int32_t first_day, last_day;
};
struct gathered {
    struct tally tally;
    const struct type_row *type; /* NULL: no such type here, nothing was merged; or every type was */
    struct merge *merge;
    const struct merged *merged; /* NULL: nothing */
    struct symtab *symtab;
    struct gathered_service *services;
    uint32_t n_services, cap_services;
    int64_t total;          /* of what was not merged */
    struct minutes minutes; /* at NULL: everything was merged */
    struct str spy;         /* of all profiles; empty where they differ */
};
/* GATHER_SHARES: one type, and only self and total of functions are wanted: minutes may stand for merging. */
enum gather_types { GATHER_ONE_TYPE, GATHER_ALL_TYPES, GATHER_SHARES };
/* by_labels: keep label sets apart, for downloads. gather_close in any case. */
enum err gather(struct ask *a, enum gather_types types, bool by_labels, struct gathered *g) MUST_CHECK;
void gather_close(struct gathered *g);

/* The fields that all answers about profiles carry. g->merged NULL: total and average are 0. */
void gather_head(struct json *j, const struct ask *a, const struct gathered *g);
/* The same where "series" is a field of the answer itself: their number is called `series` then. */
void gather_head_as(struct json *j, const struct ask *a, const struct gathered *g, const char *series);
/* The same for lists, which are about no type. `count`: what the number of profiles is called there. */
void gather_list_head(struct json *j, const struct ask *a, const struct tally *t, const char *count);
int64_t gather_total(const struct gathered *g);
/* The service that the answer is about: the one asked for, or the only one there; empty: several. */
struct str gather_service(const struct ask *a, const struct gathered *g);

#endif
