/*
 * Segments oldest first; the last one is written to while `write_fd` is open. A reader's place is (cur, at); segments
 * before it are only waiting for spool_log_trim. A payload is written before its frame's head, so that what a crash of
 * the process cuts short reads as the end.
 */
#include "backends/spool_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/spool_file.h"

enum { SEGMENT_BYTES = 16 << 20, SEGMENT_LEAST = 64 << 10, SEGMENTS_IN_MAX = 8 };

struct segment {
    uint64_t number, size, used; /* used: where its entries end */
    uint64_t groups, records;    /* not dealt with yet */
    bool kept;                   /* the reader has put something off here */
    bool looked_at;              /* counted, its end found; always so for our own */
};

struct spool_log {
    int dir_fd, lock_fd, write_fd, read_fd; /* -1: none */
    uint64_t max_bytes, segment_bytes, bytes, next_number;
    struct segment *list;
    size_t n, cap;

    size_t cur; /* being read */
    uint64_t at;
    uint64_t entry_bytes; /* of the entry that was read; 0: none */
    uint64_t entry_records;
    bool entry_group;

    uint64_t corrupt;
    bool full;
    char why[160];
};

static void say(struct spool_log *l, uint64_t number, const char *what, uint64_t at)
{
    snprintf(l->why, sizeof l->why, "%016llx.spool: %s at byte %llu", (unsigned long long)number, what,
             (unsigned long long)at);
}

static struct segment *add_segment(struct spool_log *l, uint64_t number, uint64_t size)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 16;
        struct segment *list = realloc(l->list, cap * sizeof *list);

        if (!list)
            return NULL;
        l->list = list;
        l->cap = cap;
    }
    l->list[l->n] = (struct segment){.number = number, .size = size, .used = size};
    l->bytes += size;
    if (number >= l->next_number)
        l->next_number = number + 1;
    return &l->list[l->n++];
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int open_segment(const struct spool_log *l, uint64_t number, int flags)
{
    char name[SPOOL_NAME];

    spool_file_name(number, name);
    return openat(l->dir_fd, name, flags | O_CLOEXEC, 0600);
}

static int order_segments(const void *pa, const void *pb)
{
    const struct segment *a = pa, *b = pb;

    return (a->number > b->number) - (a->number < b->number);
}

static bool list_segments(struct spool_log *l, const char *dir, struct fault *f)
{
    DIR *d = opendir(dir);
    bool ok = d;

    if (!d)
        fault_set(f, E_INTERNAL, "spool: %s: %s", dir, strerror(errno));
    for (struct dirent *e; ok && (e = readdir(d));) {
        uint64_t number;
        struct stat st;

        if (!spool_file_number(e->d_name, &number) || fstatat(l->dir_fd, e->d_name, &st, 0) != 0)
            continue;
        ok = add_segment(l, number, (uint64_t)st.st_size);
        if (!ok)
            fault_set(f, E_NO_MEMORY, NULL);
    }
    if (d)
        closedir(d);
    if (l->n)
        qsort(l->list, l->n, sizeof *l->list, order_segments);
    return ok;
}

/* And the directory above it, which may be data_dir on a first start. */
static void make_directory(const char *dir)
{
    char *above = strdup(dir), *slash = above ? strrchr(above, '/') : NULL;

    if (slash && slash != above) {
        *slash = '\0';
        (void)mkdir(above, 0700); /* opening it tells */
    }
    free(above);
    (void)mkdir(dir, 0700);
}

static bool take_directory(struct spool_log *l, const char *dir, struct fault *f)
{
    make_directory(dir);
    l->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    l->lock_fd = l->dir_fd < 0 ? -1 : openat(l->dir_fd, SPOOL_LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (l->lock_fd < 0) {
        fault_set(f, E_INTERNAL, "spool: %s: %s", dir, strerror(errno));
        return false;
    }
    if (flock(l->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    fault_set(f, E_INTERNAL, "spool: %s belongs to another process; every replica needs a data_dir of its own", dir);
    return false;
}

struct spool_log *spool_log_open(const char *dir, uint64_t max_bytes, struct fault *f)
{
    struct spool_log *l = calloc(1, sizeof *l);

    if (!l) {
        fault_set(f, E_NO_MEMORY, NULL);
        return NULL;
    }
    l->dir_fd = l->lock_fd = l->write_fd = l->read_fd = -1;
    l->max_bytes = max_bytes;
    l->segment_bytes = max_bytes / SEGMENTS_IN_MAX;
    if (l->segment_bytes > SEGMENT_BYTES)
        l->segment_bytes = SEGMENT_BYTES;
    if (l->segment_bytes < SEGMENT_LEAST)
        l->segment_bytes = SEGMENT_LEAST;
    l->next_number = 1;
    l->at = SPOOL_MAGIC_BYTES;
    if (take_directory(l, dir, f) && list_segments(l, dir, f))
        return l;
    spool_log_close(l);
    return NULL;
}

/* Gives back what is not used of the segment that is written to; the next entry begins another. */
static void seal(struct spool_log *l)
{
    struct segment *s = l->n ? &l->list[l->n - 1] : NULL;

    if (l->write_fd < 0)
        return;
    if (ftruncate(l->write_fd, (off_t)s->used) == 0) {
        l->bytes -= s->size - s->used;
        s->size = s->used;
    }
    close_fd(&l->write_fd);
}

void spool_log_close(struct spool_log *l)
{
    if (!l)
        return;
    spool_log_trim(l);
    seal(l);
    close_fd(&l->read_fd);
    close_fd(&l->lock_fd);
    close_fd(&l->dir_fd);
    free(l->list);
    free(l);
}

static enum spool_result failed(struct spool_log *l, int error, const char *what)
{
    snprintf(l->why, sizeof l->why, "%s: %s", what, strerror(error));
    return error == ENOSPC || error == EDQUOT ? SPOOL_NO_SPACE : SPOOL_FAILED;
}

/* Made at its full size, its name durable. */
static enum spool_result begin_segment(struct spool_log *l, uint64_t need)
{
    uint64_t size = need > l->segment_bytes ? need : l->segment_bytes, number = l->next_number;
    char name[SPOOL_NAME];

    if (l->bytes + size > l->max_bytes) {
        snprintf(l->why, sizeof l->why, "spool.max_bytes are in use");
        return SPOOL_FULL;
    }
    int fd = open_segment(l, number, O_RDWR | O_CREAT | O_EXCL);
    int error = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)size);
    if (!error && !spool_file_write(fd, SPOOL_MAGIC, SPOOL_MAGIC_BYTES, 0))
        error = errno;
    if (!error && (fdatasync(fd) != 0 || fsync(l->dir_fd) != 0))
        error = errno;
    struct segment *s = error ? NULL : add_segment(l, number, size);
    if (!s) {
        close_fd(&fd);
        spool_file_name(number, name);
        unlinkat(l->dir_fd, name, 0);
        return failed(l, error ? error : ENOMEM, "a new segment");
    }
    s->used = SPOOL_MAGIC_BYTES;
    s->looked_at = true;
    l->write_fd = fd;
    return SPOOL_OK;
}

static enum spool_result append(struct spool_log *l, struct str payload)
{
    uint8_t head[SPOOL_FRAME_BYTES];
    uint64_t need = SPOOL_FRAME_BYTES + payload.len;
    struct segment *s = l->n ? &l->list[l->n - 1] : NULL;

    if (l->write_fd >= 0 && need > s->size - s->used)
        seal(l);
    if (l->write_fd < 0) {
        enum spool_result r = begin_segment(l, SPOOL_MAGIC_BYTES + need);

        if (r != SPOOL_OK)
            return r;
    }
    s = &l->list[l->n - 1];
    spool_frame_head(payload, head);
    if (spool_file_write(l->write_fd, payload.p, payload.len, s->used + SPOOL_FRAME_BYTES) &&
        spool_file_write(l->write_fd, head, sizeof head, s->used)) {
        s->used += need;
        return SPOOL_OK;
    }
    enum spool_result r = failed(l, errno, "writing");
    seal(l);
    return r;
}

enum spool_result spool_log_append(struct spool_log *l, struct str payload, const struct spool_entry *e)
{
    enum spool_result r = append(l, payload);

    l->full = r != SPOOL_OK;
    if (r == SPOOL_OK && e->kind == SPOOL_GROUP) {
        l->list[l->n - 1].groups++;
        l->list[l->n - 1].records += e->group.n;
    }
    return r;
}

enum spool_result spool_log_sync(struct spool_log *l)
{
    if (l->write_fd < 0 || fdatasync(l->write_fd) == 0)
        return SPOOL_OK;
    enum spool_result r = failed(l, errno, "fdatasync");
    l->full = true;
    seal(l);
    return r;
}

/* Nothing behind this byte can be read. */
static void cut(struct spool_log *l, struct segment *s, uint64_t at, const char *what)
{
    int fd = open_segment(l, s->number, O_RDWR);

    l->corrupt++;
    say(l, s->number, what, at);
    s->used = at;
    if (fd >= 0 && ftruncate(fd, (off_t)at) == 0) {
        l->bytes -= s->size > at ? s->size - at : 0;
        s->size = s->size > at ? at : s->size;
    }
    if (fd >= 0)
        close(fd);
}

static void look_over(struct spool_log *l, struct segment *s, struct str bytes)
{
    struct spool_entry e;
    struct str payload;
    enum spool_step step;
    size_t at = 0;

    for (step = spool_file_begin(bytes, &at); step == SPOOL_ENTRY;) {
        size_t before = at;

        step = spool_frame_next(bytes, &at, &payload);
        if (step == SPOOL_ENTRY && !spool_entry_read(payload, &e)) {
            step = SPOOL_TORN;
            at = before;
        }
        if (step != SPOOL_ENTRY || e.kind != SPOOL_GROUP)
            continue;
        s->groups++;
        s->records += e.group.n;
    }
    if (step == SPOOL_TORN)
        cut(l, s, at, "damaged");
    else
        s->used = at > SPOOL_MAGIC_BYTES ? at : SPOOL_MAGIC_BYTES;
}

/* Without memory for the whole segment nothing is counted, and reading finds out by itself. */
bool spool_log_scan(struct spool_log *l)
{
    struct buf bytes = {0};
    struct segment *s = l->list;

    while (s < l->list + l->n && s->looked_at)
        s++;
    if (!l->n || s == l->list + l->n)
        return false;
    int fd = open_segment(l, s->number, O_RDONLY);
    if (fd >= 0 && spool_file_read(fd, &bytes))
        look_over(l, s, buf_view(&bytes));
    close_fd(&fd);
    buf_free(&bytes);
    s->looked_at = true;
    return true;
}

static bool to_next_segment(struct spool_log *l)
{
    if (l->cur + 1 >= l->n)
        return false;
    l->cur++;
    l->at = SPOOL_MAGIC_BYTES;
    close_fd(&l->read_fd);
    return true;
}

/* At (cur, at), which is before the segment's end. SPOOL_END: nothing behind it, by a crash. later: not now. */
static enum spool_step read_frame(struct spool_log *l, const struct segment *s, struct buf *bytes, bool *later)
{
    uint8_t head[SPOOL_FRAME_BYTES];

    if (l->read_fd < 0 && (l->read_fd = open_segment(l, s->number, O_RDONLY)) < 0) {
        *later = errno != ENOENT;
        return SPOOL_TORN;
    }
    bytes->len = 0;
    if (s->used - l->at < sizeof head)
        return SPOOL_TORN;
    if (!spool_file_at(l->read_fd, head, sizeof head, l->at)) {
        *later = errno != 0;
        return SPOOL_TORN;
    }
    uint32_t length = spool_frame_length(head);
    if (!length || length > s->used - l->at - sizeof head)
        return length ? SPOOL_TORN : SPOOL_END;
    if (!spool_file_room(bytes, length) || !spool_file_at(l->read_fd, bytes->p, length, l->at + sizeof head)) {
        *later = errno != 0;
        return SPOOL_TORN;
    }
    bytes->len = length;
    return spool_frame_whole(head, buf_view(bytes)) ? SPOOL_ENTRY : SPOOL_TORN;
}

static void give_up_segment(struct spool_log *l, struct segment *s)
{
    if (l->cur + 1 == l->n)
        seal(l);
    cut(l, s, l->at, "damaged");
    s->groups = s->records = 0;
}

enum spool_step spool_log_read(struct spool_log *l, struct buf *bytes, struct spool_entry *e)
{
    while (l->cur < l->n) {
        struct segment *s = &l->list[l->cur];
        bool later = false;
        enum spool_step step = l->at < s->used ? read_frame(l, s, bytes, &later) : SPOOL_END;

        if (later)
            return SPOOL_TORN;
        if (step == SPOOL_ENTRY && spool_entry_read(buf_view(bytes), e)) {
            l->entry_bytes = SPOOL_FRAME_BYTES + bytes->len;
            l->entry_group = e->kind == SPOOL_GROUP;
            l->entry_records = e->group.n;
            return SPOOL_ENTRY;
        }
        if (step == SPOOL_END)
            s->used = l->at < s->used ? l->at : s->used;
        else
            give_up_segment(l, s);
        if (!to_next_segment(l))
            break;
    }
    return SPOOL_END;
}

void spool_log_next(struct spool_log *l)
{
    struct segment *s = &l->list[l->cur];

    ASSERT(l->entry_bytes);
    l->at += l->entry_bytes;
    l->entry_bytes = 0;
    if (!l->entry_group)
        return;
    s->groups -= s->groups > 0;
    s->records -= s->records < l->entry_records ? s->records : l->entry_records;
}

void spool_log_put_off(struct spool_log *l)
{
    ASSERT(l->entry_bytes);
    l->list[l->cur].kept = true;
    l->at += l->entry_bytes;
    l->entry_bytes = 0;
}

void spool_log_rewind(struct spool_log *l)
{
    bool any = false;

    spool_log_trim(l);
    for (size_t i = 0; i < l->n; i++)
        any |= l->list[i].kept;
    if (!any)
        return;
    seal(l);
    for (size_t i = 0; i < l->n; i++) {
        l->list[i].kept = l->list[i].looked_at = false;
        l->list[i].groups = l->list[i].records = 0;
    }
    l->cur = 0;
    l->at = SPOOL_MAGIC_BYTES;
    close_fd(&l->read_fd);
    while (spool_log_scan(l))
        ;
}

void spool_log_refuse(struct spool_log *l)
{
    l->corrupt++;
    say(l, l->list[l->cur].number, "an entry that cannot be read", l->at);
}

void spool_log_trim(struct spool_log *l)
{
    size_t n = l->cur, kept = 0;
    char name[SPOOL_NAME];

    if (l->cur < l->n && l->list[l->cur].looked_at && l->at >= l->list[l->cur].used && !l->list[l->cur].kept) {
        n++;
        if (n == l->n)
            seal(l);
        close_fd(&l->read_fd);
        l->at = SPOOL_MAGIC_BYTES;
    }
    for (size_t i = 0; i < n; i++) {
        if (l->list[i].kept) {
            l->list[kept++] = l->list[i];
            continue;
        }
        spool_file_name(l->list[i].number, name);
        unlinkat(l->dir_fd, name, 0);
        l->bytes -= l->list[i].size;
        l->full = false;
    }
    if (n > kept)
        memmove(l->list + kept, l->list + n, (l->n - n) * sizeof *l->list);
    l->n -= n - kept;
    l->cur = kept;
}

void spool_log_stats(const struct spool_log *l, struct spool_stats *out)
{
    out->bytes = l->bytes;
    out->segments = l->n;
    out->corrupt = l->corrupt;
    out->full = l->full;
    out->groups = out->records = 0;
    for (size_t i = 0; i < l->n; i++) {
        out->groups += l->list[i].groups;
        out->records += l->list[i].records;
    }
}

const char *spool_log_why(const struct spool_log *l)
{
    return l->why;
}
