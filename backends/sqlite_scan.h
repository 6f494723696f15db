/* One scan under way, for the files that do it: sqlite_scan.c, sqlite_scan_names.c, sqlite_scan_hours.c. */
#ifndef BACKENDS_SQLITE_SCAN_H
#define BACKENDS_SQLITE_SCAN_H

#include "backends/once.h"
#include "backends/sqlite_store.h"

enum { DAY_FILES_MAX = 24 };

/* What is known of an id (series, type set) within a scan. */
struct cached {
    int64_t id;
    bool wanted;
    struct series series;
    struct sample_type *types;
    uint32_t n_types;
};

struct cache {
    struct cached **slots;
    size_t n, cap;
};

struct scan {
    struct sample_store *store;
    const struct selection *sel;
    enum scan_what what;
    scan_row row;
    void *ctx;
    struct fault *f;

    struct arena *arena;
    struct cache series, typesets;
    struct file *files[DAY_FILES_MAX];
    uint32_t n_files;
    struct once_row *rows;
    size_t n, cap;
    struct once_row *hours; /* of the day; n_hours of cap_hours */
    size_t n_hours, cap_hours;
};

static inline bool scan_wants_hours(const struct scan *s)
{
    return s->what & SCAN_HOURS && !(s->what & SCAN_NEWEST_FIRST);
}

enum err scan_broken(struct scan *s, const struct file *t);
enum err scan_no_memory(struct scan *s);
/* A row to be filled; NULL: no memory. */
struct once_row *scan_add_row(struct scan *s);

/* sqlite_scan_names.c: what an id stands for, read once. scan_known: one that has been found before. */
enum err scan_find_series(struct scan *s, struct file *t, struct str service, int64_t id,
                          struct cached **out) MUST_CHECK;
enum err scan_find_typeset(struct scan *s, struct file *t, int64_t id, struct cached **out) MUST_CHECK;
struct cached *scan_known_series(const struct scan *s, int64_t id);

/*
 * sqlite_scan_hours.c. Which whole hours of one day, from..last, come as hour rows: bit i is the i-th hour of the day.
 * Their rows are noted in s->hours.
 */
enum err scan_list_hours(struct scan *s, int64_t service, int64_t from, int64_t last, uint32_t *taken) MUST_CHECK;
enum err scan_give_hour(struct scan *s, const struct once_row *r) MUST_CHECK;

#endif
