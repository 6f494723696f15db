/* Marks on their way to the server. On the loop. */
#ifndef BACKENDS_PG_MARK_H
#define BACKENDS_PG_MARK_H

#include "backends/backend.h"
#include "backends/pg_link.h"

struct pg_mark {
    uint16_t class_days;
    int32_t day;
    uint64_t boot, group, told;
    uint64_t at_ms;    /* when it was asked for */
    int64_t closes_ns; /* from then on a listing may have seen its group without it */
};

/* When the first hour of the groups put lately closes; a ring. */
enum { PG_FRESH_MAX = 256 };
struct pg_fresh {
    struct {
        uint64_t boot, group;
        int64_t closes_ns;
    } list[PG_FRESH_MAX];
    size_t n;
};

/* Marks that wait, in the order of asking. */
struct pg_marks {
    struct pg_mark *list;
    size_t n, cap;
    size_t sent;  /* the first of them are in flight; 0: none */
    size_t alone; /* so many go one by one, since one of them failed */
    unsigned tries;
    struct pg_batch batch;
    struct pg_mark *kept; /* written lately, to be written again; a ring of MARKS_MAX */
    size_t kept_first, n_kept;
};

void pg_mark_fresh(struct sample_store *s, const struct group *g); /* it is being put */
void pg_mark_add(struct sample_store *s, const struct group *g, uint64_t told);
void pg_mark_send(struct sample_store *s);
void pg_mark_done(struct sample_store *s, bool ok, const struct pg_fault *f);
void pg_mark_again(struct sample_store *s); /* all of the last resend_ms */
void pg_mark_free(struct sample_store *s);

#endif
