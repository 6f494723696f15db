/*
 * Inside of the embedded store. Its thread (the store lane, sqlite.c) does all writing; queries read on their own
 * threads through the catalog. What is below `lane only` is touched by that thread alone while it runs.
 */
#ifndef BACKENDS_SQLITE_STORE_H
#define BACKENDS_SQLITE_STORE_H

#include "backends/backend.h"
#include "backends/known.h"
#include "backends/segment.h"
#include "backends/sqlite_catalog.h"

enum { WRITE_FILES = 4 };

/* A mark on its way. Owned by the lane's queue. */
struct mark_job {
    struct mark_job *next;
    struct file_key key;
    uint64_t boot, group, told;
};

/* What another thread wants done between puts, and waits for. Embedded in its owner. */
struct lane_job {
    void (*run)(struct sample_store *s, struct lane_job *j);
    bool done;
};

/* What the lane is asked for; done in the order of asking, marks ahead of a put in its transaction where they can. */
struct lane_queue {
    struct mark_job *marks, **marks_tail;
    struct group *put;
    struct lane_job *job;
    bool expire, close;
    int64_t expire_ns;
};

struct sample_store {
    const struct store_host *host;
    char *dir, *samples_dir, *originals_dir;
    int lock_fd; /* one process per folder */
    struct catalog *catalog;
    struct segments *segments;
    atomic_bool healthy;
    _Atomic int64_t raw_since;

    uv_thread_t thread;
    uv_mutex_t lock; /* of queue, done, ended */
    uv_cond_t wake, job_done;
    uv_async_t async;
    struct lane_queue queue;
    struct group *done;
    bool ended;
    void (*closed)(void *ctx); /* loop only */
    void *closed_ctx;

    /* lane only */
    struct known *known;
    size_t known_charged;
    struct file *files; /* open for writing, used last first */
    unsigned n_files;
    struct mark_job *unmarked; /* failed; tried again */
    unsigned n_unmarked;
    int64_t dirty_gen;    /* of dirty rows that are written from now on */
    uint64_t listed_boot; /* puts of this boot up to this group came before the gen: their dirty rows may be gone */
    uint64_t listed_group;
    uint64_t put_boot, put_group; /* the last put */
};

/* From one thread at a time, not the loop: runs a job on the lane and waits for it. */
void sqlite_run_job(struct sample_store *s, struct lane_job *j);

int64_t sqlite_service_id(const struct sample_store *s, struct str project, struct str service);

/* On the lane. sqlite_write.c: marks of the same file ride along; they are freed, or kept to be tried again. */
void sqlite_write_put(struct sample_store *s, struct group *g, struct mark_job *marks);

/* sqlite_dirty.c, inside of the caller's transaction: what a put touches, and a mark that comes long after its put. */
bool sqlite_put_dirty(struct sample_store *s, struct file *t, const struct group *g, const int64_t *services,
                      uint64_t inserted) MUST_CHECK;
bool sqlite_mark_dirty(struct sample_store *s, struct file *t, const struct mark_job *m) MUST_CHECK;

/* sqlite_mark.c. write_marks: these, and those that failed before; puts: inside of the caller's transaction, they stay
 * the caller's. */
void sqlite_write_marks(struct sample_store *s, struct mark_job *marks);
bool sqlite_put_marks(struct sample_store *s, struct file *t, const struct mark_job *marks) MUST_CHECK;
void sqlite_keep_marks(struct sample_store *s, struct mark_job *marks);
void sqlite_free_marks(struct mark_job *marks);

/* sqlite_upkeep.c. The file open for writing, made if need be; NULL: logged. Valid until the next call, or give_up. */
struct file *sqlite_write_file(struct sample_store *s, struct file_key key) MUST_CHECK;
/* Begins a transaction whose commit waits for the disk (flush), or only for the kernel. */
bool sqlite_begin(struct file *t, bool flush) MUST_CHECK;
/* Rolls back and closes: a connection that failed is not trusted any further. */
void sqlite_give_up(struct sample_store *s, struct file *t, const char *what);
void sqlite_charge_known(struct sample_store *s);
void sqlite_write_expire(struct sample_store *s, int64_t now_ns);
/* Copies logs into their files: idle: whatever there is; else only logs that have grown large. */
void sqlite_write_checkpoint(struct sample_store *s, bool idle);
void sqlite_write_close_files(struct sample_store *s);

extern const struct hour_ops sqlite_hour_ops; /* sqlite_hours.c */

/* sqlite_raw.c: a slot of hour_ops; and what raw_since is when the store is opened. */
enum err sqlite_drop_raw(struct sample_store *s, int32_t day, bool *more, struct fault *f);
void sqlite_look_raw(struct sample_store *s);

/* sqlite_scan.c and sqlite_read.c, on threads of the query lane: slots of the reader. */
enum err sqlite_scan(struct sample_store *s, const struct selection *sel, enum scan_what what, scan_row row, void *ctx,
                     struct fault *f);
enum err sqlite_symbols(struct sample_store *s, struct str project, struct str service, int32_t first, int32_t last,
                        block_row row, void *ctx, struct fault *f);
enum err sqlite_original(struct sample_store *s, struct str project, struct attempt a, enum original_state *state,
                         struct buf *out, struct fault *f);
/* The row of an attempt, in whichever file it is: FILE_GET_ATTEMPT stepped onto it. E_NOT_FOUND: nowhere, or another
 * project's. */
enum err sqlite_find_attempt(struct sample_store *s, struct str project, struct attempt a, struct file **file,
                             struct db_stmt **row, struct fault *f);

#endif
