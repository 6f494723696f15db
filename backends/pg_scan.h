/* A scan on its way: pg_scan.c decides what counts, pg_fetch.c fetches. */
#ifndef BACKENDS_PG_SCAN_H
#define BACKENDS_PG_SCAN_H

#include "backends/once.h"
#include "backends/pg_names.h"
#include "backends/postgres_read.h"
#include "backends/postgres_store.h"

/* Ids that have been met and not been fetched; in the arena. */
struct pg_pending {
    int64_t *ids;
    uint32_t n, cap;
};

struct pg_scan {
    struct sample_store *store;
    const struct selection *sel;
    enum scan_what what;
    scan_row row;
    void *ctx;
    struct fault *f;

    struct pg_call *call;
    struct arena *arena;
    struct pg_names series, typesets, services;
    struct pg_pending new_series, new_typesets, all_services;
    struct once_row *rows; /* of the day: id is the service's */
    size_t n, cap;
    struct once_row *hours; /* of the day: series_id is the row's own */
    size_t n_hours, cap_hours;
    int32_t day;
    bool raw_gone;    /* hours are all there is of most of the day's profiles */
    size_t at, until; /* of the rows, what is being given out */
    enum err stopped; /* by whom the rows are for */
};

struct once_row *pg_scan_add_row(struct pg_scan *s); /* zeroed; NULL: no memory */
bool pg_scan_cancelled(const struct pg_scan *s);
enum err pg_scan_no_memory(struct pg_scan *s);
/* Runs, visits, and frees the parameters. A visitor of ours that stops has set s->f. */
enum err pg_scan_run(struct pg_scan *s, struct pg_statement *q, enum pg_call_how how, pg_row row);

/* The services of the selection. */
enum err pg_fetch_services(struct pg_scan *s);
/* Days from first to last that have partitions, sorted, in the arena. */
enum err pg_fetch_days(struct pg_scan *s, int32_t first, int32_t last, struct pg_pending *days);
/* Adds the rows from..last inclusive of some services, and what is near to them, and the names that they are of. */
enum err pg_fetch_rows(struct pg_scan *s, const struct pg_pending *services, int64_t from, int64_t last);
/* The row of an attempt, and its names; E_NOT_FOUND. */
enum err pg_fetch_attempt(struct pg_scan *s, struct attempt a);
/* The marks of the repeated rows, which are of the days first..last. */
enum err pg_fetch_marks(struct pg_scan *s, int32_t first, int32_t last);

/* pg_scan_hours.c */
/* Which hours of the day, wholly in from..last, stand for themselves: s->hours, and what services' names say. */
enum err pg_scan_list_hours(struct pg_scan *s, int64_t from, int64_t last);
/* Profiles from..last that are in none of those. */
enum err pg_scan_list_rest(struct pg_scan *s, int64_t from, int64_t last);
/* Gives out rows at..until, all of which are hours. */
enum err pg_scan_give_hours(struct pg_scan *s);

/* As in sqlite_scan.c: a retry of a payload without a time of its own may lie a little outside of the window. */
static const int64_t pg_scan_margin_ns = 600 * INT64_C(1000000000);
int64_t pg_scan_shift(int64_t ns, int64_t by); /* saturates */

#endif
