/*
 * The store's life, and its lane: one thread that writes, fed by the loop through a small queue under a lock, answering
 * over one uv_async. Of puts there is at most one, so only marks need memory.
 */
#include "backends/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/sqlite_shares.h"

static const uint64_t IDLE_NS = 100 * UINT64_C(1000000);

int64_t sqlite_service_id(const struct sample_store *s, struct str project, struct str service)
{
    uint64_t pair[2] = {hash64(s->host->key, project.p, project.len), hash64(s->host->key, service.p, service.len)};

    return (int64_t)(hash64(s->host->key, pair, sizeof pair) >> 1);
}

static void free_store(struct sample_store *s)
{
    catalog_close(s->catalog);
    segments_close(s->segments);
    known_free(s->known);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    free(s->dir);
    free(s->samples_dir);
    free(s->originals_dir);
    free(s);
}

/* Appends to the queue's end; the lock is held. */
static void queue_mark(struct lane_queue *q, struct mark_job *m)
{
    if (!q->marks)
        q->marks_tail = &q->marks;
    *q->marks_tail = m;
    q->marks_tail = &m->next;
}

static bool has_work(const struct lane_queue *q)
{
    return q->marks || q->put || q->expire || q->close || q->job;
}

/* Waits for work and takes all of it; with something left to do when idle, only for a while. false: nothing came. */
static bool take_work(struct sample_store *s, struct lane_queue *work, bool leftover)
{
    uv_mutex_lock(&s->lock);
    if (!has_work(&s->queue) && leftover)
        uv_cond_timedwait(&s->wake, &s->lock, IDLE_NS);
    while (!has_work(&s->queue) && !leftover)
        uv_cond_wait(&s->wake, &s->lock);
    *work = s->queue;
    s->queue = (struct lane_queue){0};
    uv_mutex_unlock(&s->lock);
    return has_work(work);
}

/* Marks of the put's file ride in its transaction; the others have to be written before, or after, by themselves. */
static struct mark_job *cut_riders(struct mark_job **marks, const struct group *put)
{
    struct mark_job *riders = NULL, **tail = &riders;

    for (struct mark_job **at = marks; put && *at;) {
        struct mark_job *m = *at;

        if (m->key.day != put->day || m->key.class_days != put->class_days) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        m->next = NULL;
        *tail = m;
        tail = &m->next;
    }
    return riders;
}

static void report(struct sample_store *s, struct group *done, bool ended)
{
    uv_mutex_lock(&s->lock);
    if (done)
        s->done = done;
    s->ended = ended;
    uv_mutex_unlock(&s->lock);
    uv_async_send(&s->async);
}

static void end_lane(struct sample_store *s)
{
    sqlite_write_marks(s, NULL);
    for (struct mark_job *next; s->unmarked; s->unmarked = next) {
        next = s->unmarked->next;
        store_log(s->host, 0, "store=sqlite ev=mark_lost group=%llu", (unsigned long long)s->unmarked->group);
        free(s->unmarked);
    }
    sqlite_write_close_files(s);
    s->host->account(s->host->ctx, "symbols", -(int64_t)s->known_charged);
    report(s, NULL, true);
}

static void run_job(struct sample_store *s, struct lane_job *j)
{
    j->run(s, j);
    uv_mutex_lock(&s->lock);
    j->done = true;
    uv_cond_broadcast(&s->job_done);
    uv_mutex_unlock(&s->lock);
}

void sqlite_run_job(struct sample_store *s, struct lane_job *j)
{
    uv_mutex_lock(&s->lock);
    ASSERT(!s->queue.job && !s->queue.close);
    j->done = false;
    s->queue.job = j;
    uv_cond_signal(&s->wake);
    while (!j->done)
        uv_cond_wait(&s->job_done, &s->lock);
    uv_mutex_unlock(&s->lock);
}

static void run_lane(void *arg)
{
    struct sample_store *s = arg;

    for (bool busy = false;;) {
        struct lane_queue work;

        busy = take_work(s, &work, busy || s->unmarked);

        if (work.put) {
            struct mark_job *riders = cut_riders(&work.marks, work.put);

            sqlite_write_put(s, work.put, riders);
            report(s, work.put, false);
        }
        if (work.marks || (s->unmarked && !busy))
            sqlite_write_marks(s, work.marks);
        if (work.expire)
            sqlite_write_expire(s, work.expire_ns);
        if (work.job)
            run_job(s, work.job);
        if (work.close)
            break;
        sqlite_write_checkpoint(s, !busy);
    }
    end_lane(s);
}

static void on_closed(uv_handle_t *h)
{
    struct sample_store *s = h->data;
    void (*closed)(void *ctx) = s->closed;
    void *ctx = s->closed_ctx;

    free_store(s);
    closed(ctx);
}

static void on_report(uv_async_t *h)
{
    struct sample_store *s = h->data;
    struct group *done;
    bool ended;

    uv_mutex_lock(&s->lock);
    done = s->done;
    s->done = NULL;
    ended = s->ended;
    uv_mutex_unlock(&s->lock);
    if (done)
        done->done(done);
    if (!ended || uv_is_closing((uv_handle_t *)&s->async))
        return;
    uv_thread_join(&s->thread);
    uv_cond_destroy(&s->job_done);
    uv_cond_destroy(&s->wake);
    uv_mutex_destroy(&s->lock);
    uv_close((uv_handle_t *)&s->async, on_closed);
}

/* DIR/NAME, made if it is not there. */
static char *make_folder(const char *dir, const char *name)
{
    size_t size = strlen(dir) + strlen(name) + 2;
    char *path = malloc(size);

    if (!path)
        return NULL;
    snprintf(path, size, "%s%s%s", dir, *name ? "/" : "", name);
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void)mkdir(path, 0777); /* the last one tells */
        *slash = '/';
    }
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return path;
    free(path);
    return NULL;
}

static bool make_folders(struct sample_store *s, struct str address)
{
    struct buf dir = {0};

    buf_str(&dir, address.len ? address : str_of(s->host->data_dir));
    buf_char(&dir, '\0');
    if (!dir.failed)
        s->dir = make_folder(dir.p, "");
    if (s->dir)
        s->samples_dir = make_folder(s->dir, "samples");
    if (s->samples_dir)
        s->originals_dir = make_folder(s->dir, "originals");
    buf_free(&dir);
    return s->originals_dir != NULL;
}

/* Two writers would each believe that their own sets of stored ids are all there is to know. */
static bool lock_folder(struct sample_store *s, struct fault *f)
{
    struct buf path = {0};

    buf_printf(&path, "%s/lock", s->samples_dir);
    buf_char(&path, '\0');
    s->lock_fd = path.failed ? -1 : open(path.p, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (s->lock_fd < 0)
        fault_set(f, E_STORE_DOWN, "%s: %s", s->samples_dir, strerror(errno));
    else if (flock(s->lock_fd, LOCK_EX | LOCK_NB))
        fault_set(f, E_STORE_DOWN, "%s: in use by another process", s->samples_dir);
    buf_free(&path);
    return f->err == E_OK;
}

static bool open_parts(struct sample_store *s, struct str address, struct fault *f)
{
    if (!make_folders(s, address)) {
        fault_set(f, E_STORE_DOWN, "cannot make the store's folders in %s: %s", s->dir ? s->dir : s->host->data_dir,
                  strerror(errno));
        return false;
    }
    if (!lock_folder(s, f))
        return false;
    s->known = known_new(s->host->symbols_memory);
    if (!s->known)
        fault_set(f, E_NO_MEMORY, NULL);
    else if ((s->catalog = catalog_open(s->samples_dir, s->host->key, f)))
        s->segments = segments_open(s->originals_dir, s->host->key, s->host->originals_max_bytes, f);
    return s->segments != NULL;
}

static bool start_lane(struct sample_store *s)
{
    if (uv_mutex_init(&s->lock))
        return false;
    if (uv_cond_init(&s->wake)) {
        uv_mutex_destroy(&s->lock);
        return false;
    }
    if (uv_cond_init(&s->job_done)) {
        uv_cond_destroy(&s->wake);
        uv_mutex_destroy(&s->lock);
        return false;
    }
    if (uv_thread_create(&s->thread, run_lane, s)) {
        uv_cond_destroy(&s->job_done);
        uv_cond_destroy(&s->wake);
        uv_mutex_destroy(&s->lock);
        return false;
    }
    return true;
}

static void on_unused(uv_handle_t *h)
{
    free_store(h->data);
}

static struct sample_store *sqlite_open(const struct store_host *h, struct str address, struct fault *f)
{
    struct sample_store *s = calloc(1, sizeof *s);

    if (!s) {
        fault_set(f, E_NO_MEMORY, NULL);
        return NULL;
    }
    *f = (struct fault){0};
    s->host = h;
    s->lock_fd = -1;
    atomic_init(&s->healthy, true);
    atomic_init(&s->raw_since, INT64_MIN);
    if (!open_parts(s, address, f) || uv_async_init(h->loop, &s->async, on_report)) {
        fault_set(f, E_NO_MEMORY, NULL);
        free_store(s);
        return NULL;
    }
    sqlite_look_raw(s);
    s->async.data = s;
    if (!start_lane(s)) {
        fault_set(f, E_NO_MEMORY, "cannot start the store's thread");
        uv_close((uv_handle_t *)&s->async, on_unused);
        return NULL;
    }
    return s;
}

static void sqlite_put(struct sample_store *s, struct group *g)
{
    uv_mutex_lock(&s->lock);
    ASSERT(!s->queue.put && !s->queue.close);
    s->queue.put = g;
    uv_cond_signal(&s->wake);
    uv_mutex_unlock(&s->lock);
}

static void sqlite_mark(struct sample_store *s, const struct group *g, uint64_t told)
{
    struct mark_job *m = malloc(sizeof *m);

    if (!m) {
        store_log(s->host, 0, "store=sqlite ev=mark_lost group=%llu", (unsigned long long)g->id);
        return;
    }
    *m = (struct mark_job){
        .key = {g->class_days, g->day},
        .boot = g->boot,
        .group = g->id,
        .told = told,
    };
    uv_mutex_lock(&s->lock);
    queue_mark(&s->queue, m);
    uv_cond_signal(&s->wake);
    uv_mutex_unlock(&s->lock);
}

static void sqlite_expire(struct sample_store *s, int64_t now_ns)
{
    uv_mutex_lock(&s->lock);
    s->queue.expire = true;
    s->queue.expire_ns = now_ns;
    uv_cond_signal(&s->wake);
    uv_mutex_unlock(&s->lock);
}

static void sqlite_close(struct sample_store *s, void (*closed)(void *ctx), void *ctx)
{
    s->closed = closed;
    s->closed_ctx = ctx;
    uv_mutex_lock(&s->lock);
    s->queue.close = true;
    uv_cond_signal(&s->wake);
    uv_mutex_unlock(&s->lock);
}

static bool sqlite_healthy(const struct sample_store *s)
{
    return atomic_load(&s->healthy);
}

static int64_t sqlite_raw_since(const struct sample_store *s)
{
    return atomic_load(&s->raw_since);
}

static const struct sample_store_ops write_ops = {
    .scheme = "sqlite",
    .open = sqlite_open,
    .put = sqlite_put,
    .mark = sqlite_mark,
    .expire = sqlite_expire,
    .close = sqlite_close,
    .healthy = sqlite_healthy,
};
static const struct sample_reader_ops read_ops = {
    .scan = sqlite_scan,
    .symbols = sqlite_symbols,
    .original = sqlite_original,
    .raw_since = sqlite_raw_since,
};
const struct backend backend_sqlite = {
    .write = &write_ops, .read = &read_ops, .shares = &shares_sqlite, .hours = &sqlite_hour_ops};
