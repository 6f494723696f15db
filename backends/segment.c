/*
 * Segments are listed in memory per store (project, class, day, number, bytes); the folder listing at start is all the
 * state there is. Names: DIR/PROJECT/000000012-c15-2026-11-30, PROJECT being a keyed hash, since a project's name may
 * be no file name.
 */
#include "backends/segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/day.h"

enum { SEGMENT_MAX_BYTES = 64 << 20, SEGMENT_MIN_BYTES = 64 << 10, OPEN_MAX = 16, NAME_MAX_BYTES = 80 };

struct segment {
    uint64_t project;
    int64_t number;
    int32_t day;
    uint16_t class_days;
    uint64_t bytes;
    int fd; /* -1: not open */
    bool dirty;
    uint64_t used;
};

struct segments {
    char *dir;
    const struct hash_key *key;
    uint64_t max_bytes, segment_bytes;
    struct segment *list;
    size_t n, cap, n_open;
    uint64_t clock;
};

struct entry_head {
    uint64_t len, sum, boot, group_place;
};

static struct entry_head head_of(const struct segments *s, struct attempt a, struct str bytes)
{
    return (struct entry_head){bytes.len, hash64(s->key, bytes.p, bytes.len), a.boot, a.group << 16 | a.place};
}

static uint64_t project_id(const struct segments *s, struct str project)
{
    return hash64(s->key, project.p, project.len);
}

/* Path of a segment, or of the project's folder where number is 0. */
static char *path_of(const struct segments *s, uint64_t project, int64_t number, uint16_t class_days, int32_t day)
{
    size_t size = strlen(s->dir) + NAME_MAX_BYTES;
    char *path = malloc(size), text[DAY_TEXT];

    if (!path)
        return NULL;
    day_format(day, text);
    if (number)
        snprintf(path, size, "%s/%016llx/%09lld-c%u-%s", s->dir, (unsigned long long)project, (long long)number,
                 (unsigned)class_days, text);
    else
        snprintf(path, size, "%s/%016llx", s->dir, (unsigned long long)project);
    return path;
}

static char *segment_path(const struct segments *s, const struct segment *g)
{
    return path_of(s, g->project, g->number, g->class_days, g->day);
}

static bool sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0)
        close(fd);
    return ok;
}

static struct segment *add_segment(struct segments *s, struct segment g)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 16;
        struct segment *list = realloc(s->list, cap * sizeof *list);

        if (!list)
            return NULL;
        s->list = list;
        s->cap = cap;
    }
    s->list[s->n] = g;
    return &s->list[s->n++];
}

static void shut(struct segments *s, struct segment *g)
{
    if (g->fd < 0)
        return;
    close(g->fd);
    g->fd = -1;
    s->n_open--;
}

static void remove_segment(struct segments *s, struct segment *g)
{
    char *path = segment_path(s, g);

    shut(s, g);
    if (path)
        unlink(path);
    free(path);
    *g = s->list[--s->n];
}

static void load_project(struct segments *s, const char *folder)
{
    struct buf path = {0};
    unsigned long long project = strtoull(folder, NULL, 16);
    DIR *d;

    buf_printf(&path, "%s/%s", s->dir, folder);
    buf_char(&path, '\0');
    d = path.failed ? NULL : opendir(path.p);
    for (struct dirent *e; d && (e = readdir(d));) {
        struct segment g = {.project = project, .fd = -1};
        unsigned class_days;
        const char *at = e->d_name;
        long long number;
        struct stat st;
        int used = 0;

        if (sscanf(at, "%lld-c%u-%n", &number, &class_days, &used) != 2 || !used)
            continue;
        at += used;
        if (!day_parse(&at, &g.day) || *at || fstatat(dirfd(d), e->d_name, &st, 0))
            continue;
        g.number = number;
        g.class_days = (uint16_t)class_days;
        g.bytes = (uint64_t)st.st_size;
        if (!add_segment(s, g))
            break;
    }
    if (d)
        closedir(d);
    buf_free(&path);
}

static bool load(struct segments *s)
{
    DIR *d = opendir(s->dir);

    if (!d)
        return false;
    for (struct dirent *e; (e = readdir(d));)
        if (strlen(e->d_name) == 16)
            load_project(s, e->d_name);
    closedir(d);
    return true;
}

struct segments *segments_open(const char *dir, const struct hash_key *key, uint64_t max_bytes, struct fault *f)
{
    struct segments *s = calloc(1, sizeof *s);

    if (!s || !(s->dir = strdup(dir))) {
        free(s);
        fault_set(f, E_NO_MEMORY, NULL);
        return NULL;
    }
    s->key = key;
    s->max_bytes = max_bytes;
    s->segment_bytes = max_bytes / 8 < SEGMENT_MAX_BYTES ? max_bytes / 8 : SEGMENT_MAX_BYTES;
    if (s->segment_bytes < SEGMENT_MIN_BYTES)
        s->segment_bytes = SEGMENT_MIN_BYTES;
    if ((mkdir(dir, 0777) && errno != EEXIST) || !load(s)) {
        fault_set(f, E_STORE_DOWN, "%s: %s", dir, strerror(errno));
        segments_close(s);
        return NULL;
    }
    return s;
}

void segments_close(struct segments *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        shut(s, &s->list[i]);
    free(s->list);
    free(s->dir);
    free(s);
}

/* The one to append to, or NULL. Also the project's bytes and its highest number. */
static struct segment *find_current(struct segments *s, uint64_t project, uint16_t class_days, int32_t day,
                                    int64_t *last)
{
    struct segment *best = NULL;

    *last = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct segment *g = &s->list[i];

        if (g->project != project)
            continue;
        *last = g->number > *last ? g->number : *last;
        if (g->class_days == class_days && g->day == day && g->bytes < s->segment_bytes &&
            (!best || g->number > best->number))
            best = g;
    }
    return best;
}

static void shut_oldest(struct segments *s)
{
    struct segment *oldest = NULL;

    for (size_t i = 0; i < s->n; i++)
        if (s->list[i].fd >= 0 && !s->list[i].dirty && (!oldest || s->list[i].used < oldest->used))
            oldest = &s->list[i];
    if (oldest)
        shut(s, oldest);
}

/* Opens g for writing; new_one: makes it, and its folder. */
static bool open_segment(struct segments *s, struct segment *g, bool new_one)
{
    char *path = segment_path(s, g), *folder = path_of(s, g->project, 0, 0, 0);
    bool ok = path && folder;

    if (s->n_open >= OPEN_MAX)
        shut_oldest(s);
    if (ok && new_one)
        ok = (mkdir(folder, 0777) == 0 && sync_folder(s->dir)) || errno == EEXIST;
    if (ok)
        g->fd = open(path, O_WRONLY | O_CLOEXEC | (new_one ? O_CREAT | O_EXCL : 0), 0666);
    ok = ok && g->fd >= 0;
    s->n_open += ok;
    if (ok && new_one)
        ok = sync_folder(folder);
    free(path);
    free(folder);
    return ok;
}

static struct segment *new_segment(struct segments *s, uint64_t project, int64_t number, uint16_t class_days,
                                   int32_t day)
{
    struct segment *g = add_segment(
        s, (struct segment){.project = project, .number = number, .class_days = class_days, .day = day, .fd = -1});

    if (g && !open_segment(s, g, true)) {
        remove_segment(s, g);
        return NULL;
    }
    return g;
}

static uint64_t bytes_of(const struct segments *s, uint64_t project)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < s->n; i++)
        if (s->list[i].project == project)
            bytes += s->list[i].bytes;
    return bytes;
}

/* Removes the oldest segments until `more` bytes fit in the project's budget. */
static void make_room(struct segments *s, uint64_t project, uint64_t more)
{
    uint64_t bytes = bytes_of(s, project);

    while (bytes + more > s->max_bytes) {
        struct segment *oldest = NULL;

        for (size_t i = 0; i < s->n; i++) {
            struct segment *g = &s->list[i];

            if (g->project == project &&
                (!oldest || g->day < oldest->day || (g->day == oldest->day && g->number < oldest->number)))
                oldest = g;
        }
        if (!oldest)
            return;
        bytes -= oldest->bytes;
        remove_segment(s, oldest);
    }
}

static bool write_at(int fd, const void *p, size_t n, uint64_t at)
{
    for (const char *c = p; n;) {
        ssize_t w = pwrite(fd, c, n, (off_t)at);

        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return false;
        c += w;
        n -= (size_t)w;
        at += (uint64_t)w;
    }
    return true;
}

bool segments_append(struct segments *s, struct str project, uint16_t class_days, int32_t day, struct attempt a,
                     struct str bytes, struct segment_place *place)
{
    struct entry_head head = head_of(s, a, bytes);
    uint64_t id = project_id(s, project);
    struct segment *g;
    int64_t last;

    *place = (struct segment_place){.segment = -1};
    if (sizeof head + bytes.len > s->max_bytes)
        return true;
    make_room(s, id, sizeof head + bytes.len);
    g = find_current(s, id, class_days, day, &last);
    if (!g)
        g = new_segment(s, id, last + 1, class_days, day);
    else if (g->fd < 0 && !open_segment(s, g, false))
        return false;
    if (!g)
        return false;
    g->used = ++s->clock;
    g->dirty = true;
    if (!write_at(g->fd, &head, sizeof head, g->bytes) || !write_at(g->fd, bytes.p, bytes.len, g->bytes + sizeof head))
        return false;
    *place = (struct segment_place){.segment = g->number, .at = (int64_t)g->bytes};
    g->bytes += sizeof head + bytes.len;
    return true;
}

bool segments_sync(struct segments *s)
{
    bool ok = true;

    for (size_t i = 0; i < s->n; i++) {
        if (!s->list[i].dirty)
            continue;
        ok = fdatasync(s->list[i].fd) == 0 && ok;
        s->list[i].dirty = false;
    }
    return ok;
}

void segments_expire(struct segments *s, int32_t today)
{
    for (size_t i = 0; i < s->n;) {
        if (day_expired(s->list[i].day, s->list[i].class_days, today))
            remove_segment(s, &s->list[i]);
        else
            i++;
    }
}

static bool read_at(int fd, void *p, size_t n, uint64_t at)
{
    for (char *c = p; n;) {
        ssize_t r = pread(fd, c, n, (off_t)at);

        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return false;
        c += r;
        n -= (size_t)r;
        at += (uint64_t)r;
    }
    return true;
}

/* The entry at `at`, whole or nothing. */
static enum err read_entry(const struct segments *s, int fd, uint64_t at, struct attempt a, struct buf *out,
                           struct fault *f)
{
    struct entry_head head;
    enum err e = E_OK;
    struct stat st;
    char *p;

    if (fstat(fd, &st) || !read_at(fd, &head, sizeof head, at) || head.boot != a.boot ||
        head.group_place != (a.group << 16 | a.place) || head.len > (uint64_t)st.st_size)
        return fault_set(f, E_INTERNAL, "the original is damaged");
    p = malloc(head.len ? head.len : 1);
    if (!p)
        return fault_set(f, E_NO_MEMORY, NULL);
    if (!read_at(fd, p, head.len, at + sizeof head))
        e = fault_set(f, E_INTERNAL, "the original is damaged");
    else if (hash64(s->key, p, head.len) != head.sum)
        e = fault_set(f, E_INTERNAL, "the original is damaged");
    if (!e)
        buf_add(out, p, head.len);
    free(p);
    return e ? e : out->failed ? fault_set(f, E_NO_MEMORY, NULL) : E_OK;
}

enum err segments_read(const struct segments *s, struct str project, uint16_t class_days, int32_t day,
                       struct segment_place place, struct attempt a, struct buf *out, struct fault *f)
{
    char *path = path_of(s, project_id(s, project), place.segment, class_days, day);
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    int why = path ? errno : ENOMEM;
    enum err e;

    free(path);
    if (fd < 0)
        return fault_set(f, why == ENOENT ? E_NOT_FOUND : E_STORE_DOWN, "original: %s", strerror(why));
    e = read_entry(s, fd, (uint64_t)place.at, a, out, f);
    close(fd);
    return e;
}
