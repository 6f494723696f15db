/* Jobs of the spool's thread: the only one that touches the log. */
#ifndef BACKENDS_SPOOL_WORK_H
#define BACKENDS_SPOOL_WORK_H

#include "backends/pg_worker.h"
#include "backends/spool_log.h"

struct spool;

/* What every job says of the files. */
struct spool_job {
    struct pg_job job; /* first */
    struct spool *spool;
    struct spool_stats stats;
    char why[160]; /* something was damaged, or could not be written */
    bool busy;
};

struct spool_append {
    struct spool_job job; /* first */
    const struct group *group;
    bool copy; /* the caller is to get copies */
    struct record *copies[GROUP_MAX];
    bool copied;
    enum spool_result result;
};

struct spool_marked {
    struct group group; /* without records */
    uint64_t told;
};
struct spool_marks {
    struct spool_marked *list;
    size_t n, cap;
};
struct spool_mark_job {
    struct spool_job job; /* first */
    struct spool_marks marks;
    size_t written; /* the others found no room */
};

/* What becomes of the entry that was read before: it is read once more, is done with, stays for later; or all that
 * stayed is read again. */
enum spool_move { SPOOL_STAY, SPOOL_NEXT, SPOOL_PUT_OFF, SPOOL_REWIND };

struct spool_read_job {
    struct spool_job job; /* first */
    enum spool_move move;
    enum spool_step step;
    struct spool_entry entry; /* with its records */
    int64_t bytes;            /* of them */
};

struct spool_tend_job {
    struct spool_job job; /* first */
    bool trim, more;      /* trim, else look over another segment; there may be more */
};

/* Starts one; run is one of those below. */
void spool_submit(struct spool *s, struct spool_job *j, void (*run)(struct pg_job *j), void (*done)(struct pg_job *j));
void spool_work_append(struct pg_job *j);
void spool_work_marks(struct pg_job *j);
void spool_work_read(struct pg_job *j);
void spool_work_tend(struct pg_job *j);

#endif
