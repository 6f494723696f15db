/* Reads segments whole, one after another. */
#include "backends/spool_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "backends/spool_file.h"

static const size_t PROFILE_MEMORY = (size_t)1 << 30;

struct walk {
    int dir_fd;
    bool deep;
    void (*segment)(void *ctx, const struct spool_segment *s);
    void *ctx;
};

static int order_numbers(const void *pa, const void *pb)
{
    const uint64_t *a = pa, *b = pb;

    return (*a > *b) - (*a < *b);
}

static enum err list(const char *dir, uint64_t **numbers, size_t *n, struct fault *f)
{
    DIR *d = opendir(dir);
    enum err e = E_OK;

    if (!d)
        return fault_set(f, errno == ENOENT ? E_NOT_FOUND : E_INTERNAL, "%s: %s", dir, strerror(errno));
    for (struct dirent *entry; !e && (entry = readdir(d));) {
        uint64_t number, *more;

        if (!spool_file_number(entry->d_name, &number))
            continue;
        more = realloc(*numbers, (*n + 1) * sizeof *more);
        if (!more) {
            e = fault_set(f, E_NO_MEMORY, NULL);
            continue;
        }
        *numbers = more;
        more[(*n)++] = number;
    }
    closedir(d);
    if (*n)
        qsort(*numbers, *n, sizeof **numbers, order_numbers);
    return e;
}

static enum err check_body(const struct record *r, struct fault *f)
{
    struct arena *a = arena_new(PROFILE_MEMORY);
    struct record_view v;
    enum err e = a ? record_open(&v, r->body, a, f) : fault_set(f, E_NO_MEMORY, NULL);

    arena_free(a);
    return e;
}

static enum err check_records(struct spool_entry *e, struct fault *f)
{
    enum err err = spool_entry_records(e, f);

    for (uint16_t i = 0; !err && i < e->group.n; i++)
        err = check_body(e->group.records[i], f);
    for (uint16_t i = 0; i < e->group.n; i++)
        record_free(e->group.records[i]);
    return err;
}

static void count(struct spool_segment *s, const struct spool_entry *e)
{
    s->first_ns = s->first_ns ? s->first_ns : e->at_ns;
    s->last_ns = e->at_ns;
    if (e->kind == SPOOL_MARK) {
        s->marks++;
        return;
    }
    s->groups++;
    s->profiles += e->group.n;
}

/* E_BAD_INPUT: damaged, f says how. at: the entry's place. */
static enum err check_entry(const struct walk *w, struct spool_segment *s, struct str payload, struct fault *f)
{
    struct spool_entry e;

    if (!spool_entry_read(payload, &e))
        return fault_set(f, E_BAD_INPUT, "not an entry of a spool");
    count(s, &e);
    return w->deep && e.kind == SPOOL_GROUP ? check_records(&e, f) : E_OK;
}

static enum err check_bytes(const struct walk *w, struct spool_segment *s, struct str bytes, struct fault *f)
{
    struct fault damage = {0};
    struct str payload;
    size_t at, place;
    enum spool_step step = spool_file_begin(bytes, &at);

    for (place = at; step == SPOOL_ENTRY; place = at) {
        step = spool_frame_next(bytes, &at, &payload);
        if (step != SPOOL_ENTRY || check_entry(w, s, payload, &damage) == E_OK)
            continue;
        if (damage.err == E_NO_MEMORY)
            return fault_set(f, E_NO_MEMORY, NULL);
        snprintf(s->damage, sizeof s->damage, "entry at byte %zu: %.120s", place, damage.text);
        break;
    }
    if (step == SPOOL_TORN)
        snprintf(s->damage, sizeof s->damage, "entry at byte %zu: cut short, or not as its checksum says", place);
    s->used = at;
    return E_OK;
}

static enum err look(const struct walk *w, uint64_t number, struct fault *f)
{
    char name[SPOOL_NAME];
    struct spool_segment s = {.name = name};
    struct buf bytes = {0};
    enum err e = E_OK;

    spool_file_name(number, name);
    int fd = openat(w->dir_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? E_OK : fault_set(f, E_INTERNAL, "%s: %s", name, strerror(errno));
    if (spool_file_read(fd, &bytes))
        e = check_bytes(w, &s, buf_view(&bytes), f);
    else
        e = fault_set(f, E_INTERNAL, "%s: %s", name, strerror(errno));
    s.bytes = bytes.len;
    if (!e)
        w->segment(w->ctx, &s);
    buf_free(&bytes);
    close(fd);
    return e;
}

enum err spool_walk(const char *dir, bool deep, void (*segment)(void *ctx, const struct spool_segment *s), void *ctx,
                    struct fault *f)
{
    struct walk w = {.deep = deep, .segment = segment, .ctx = ctx};
    uint64_t *numbers = NULL;
    size_t n = 0;
    enum err e = list(dir, &numbers, &n, f);

    w.dir_fd = e ? -1 : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!e && w.dir_fd < 0)
        e = fault_set(f, E_INTERNAL, "%s: %s", dir, strerror(errno));
    for (size_t i = 0; !e && i < n; i++)
        e = look(&w, numbers[i], f);
    if (w.dir_fd >= 0)
        close(w.dir_fd);
    free(numbers);
    return e;
}

bool spool_walk_in_use(const char *dir)
{
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = dir_fd < 0 ? -1 : openat(dir_fd, SPOOL_LOCK, O_RDONLY | O_CLOEXEC);
    bool in_use = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0;

    if (fd >= 0)
        close(fd);
    if (dir_fd >= 0)
        close(dir_fd);
    return in_use;
}
