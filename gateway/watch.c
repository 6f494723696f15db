/* Files that may change. */
#include "gateway/watch.h"

static struct stat look(const char *path)
{
    struct stat s;

    if (stat(path, &s) != 0)
        s = (struct stat){0};
    return s;
}

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

void watch_add(struct watch *w, enum watch_kind kind, const char *path)
{
    if (!path || w->n == WATCH_FILES)
        return;
    struct stat s = look(path);
    w->files[w->n++] = (struct watched){.path = path, .kind = kind, .read = s, .seen = s};
}

void watch_replace(struct watch *w, const struct watch *next)
{
    struct watch old = *w;

    *w = *next;
    for (size_t i = 0; i < w->n; i++)
        for (size_t j = 0; j < old.n; j++)
            if (w->files[i].kind == old.files[j].kind && strcmp(w->files[i].path, old.files[j].path) == 0) {
                w->files[i].read = old.files[j].read;
                w->files[i].seen = old.files[j].seen;
            }
}

void watch_mark(struct watch *w, enum watch_kind kind)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->files[i].kind == kind)
            w->files[i].read = w->files[i].seen = look(w->files[i].path);
}

unsigned watch_look(struct watch *w)
{
    unsigned kinds = 0;

    for (size_t i = 0; i < w->n; i++) {
        struct watched *f = &w->files[i];
        struct stat now = look(f->path);
        if (same(&now, &f->seen) && !same(&now, &f->read))
            kinds |= 1u << f->kind;
        f->seen = now;
    }
    for (unsigned k = WATCH_CONF; k <= WATCH_CERTS; k++)
        if (kinds & 1u << k)
            watch_mark(w, (enum watch_kind)k);
    return kinds;
}
