/* New and revoked keys: the file is read, changed as a whole, and replaced in one step under a lock. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/keyring.h"
#include "auth/secret.h"

#define HEADER "# Keys of Flamegate, written by `flamegate key`. Only hashes of the secrets are kept.\n"

void key_hash(struct str secret, uint8_t out[32])
{
    secret_hash(secret, out);
}

/* The file that is replaced, and its locked folder. */
struct place {
    char path[4096]; /* symbolic links resolved: the link itself is never replaced */
    char folder[4096];
    int fd;
};

static enum err io_fault(struct fault *f, const char *path)
{
    return fault_set(f, E_INTERNAL, "%s: %s%s", path, strerror(errno),
                     errno == EROFS || errno == EACCES ? "; --print gives the line without writing the file" : "");
}

static enum err place_open(struct place *p, const char *path, struct fault *f)
{
    char *real = realpath(path, NULL);
    int n = snprintf(p->path, sizeof p->path, "%s", real ? real : path);

    free(real);
    if (n < 0 || (size_t)n + 16 >= sizeof p->path)
        return fault_set(f, E_INTERNAL, "%.100s…: the path is too long", path);
    memcpy(p->folder, p->path, (size_t)n + 1);
    char *folder = dirname(p->folder);
    memmove(p->folder, folder, strlen(folder) + 1);
    if (mkdir(p->folder, 0700) != 0 && errno != EEXIST)
        return io_fault(f, p->folder);
    p->fd = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->fd < 0)
        return io_fault(f, p->folder);
    if (flock(p->fd, LOCK_EX) == 0)
        return E_OK;
    enum err e = io_fault(f, p->folder);
    close(p->fd);
    return e;
}

static bool write_all(int fd, struct str s)
{
    while (s.len) {
        ssize_t n = write(fd, s.p, s.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        s.p += n;
        s.len -= (size_t)n;
    }
    return true;
}

/* Whoever may read the old file may read the new one. */
static bool keep_owner(int fd, const char *old)
{
    struct stat st;

    if (stat(old, &st) != 0)
        return errno == ENOENT;
    return (st.st_uid == geteuid() && st.st_gid == getegid()) || fchown(fd, st.st_uid, st.st_gid) == 0;
}

static enum err replace(const struct place *p, struct str text, struct fault *f)
{
    char tmp[sizeof p->path + 16];

    snprintf(tmp, sizeof tmp, "%s.XXXXXX", p->path);
    int fd = mkostemp(tmp, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return io_fault(f, p->folder);
    bool good = keep_owner(fd, p->path) && write_all(fd, text) && fsync(fd) == 0;
    good = good && rename(tmp, p->path) == 0 && fsync(p->fd) == 0;
    enum err e = good ? E_OK : io_fault(f, p->path);
    if (!good)
        unlink(tmp);
    close(fd);
    return e;
}

static enum err save(const struct place *p, const struct keyring *ring, struct fault *f)
{
    struct buf b = {0};
    enum err e;

    buf_str(&b, STR(HEADER));
    for (size_t i = 0; i < ring->n; i++)
        key_line(&ring->keys[i], &b);
    e = b.failed ? fault_set(f, E_NO_MEMORY, NULL) : replace(p, buf_view(&b), f);
    buf_free(&b);
    return e;
}

/* The file's keys; none if there is no file yet. */
static struct keyring *load_or_new(const char *path, struct fault *f)
{
    struct fault inner = {0};
    struct keyring *ring = keyring_load(path, &inner);

    if (!ring && inner.err == E_NOT_FOUND && !(ring = keyring_new()))
        inner = (struct fault){.err = E_NO_MEMORY, .text = "out of memory"};
    if (!ring)
        fault_set(f, inner.err, "%s", inner.text);
    return ring;
}

static enum err check(const struct key *k, struct str imported, struct fault *f)
{
    if (!key_name_valid(str_of(k->name)))
        return fault_set(f, E_BAD_INPUT, "a key's name has 1 to %d printable characters", KEY_NAME_MAX);
    if (!key_project_valid(str_of(k->project)))
        return fault_set(f, E_BAD_INPUT, "a project's name has 1 to %d printable characters, no '/'", KEY_NAME_MAX);
    const char *objection = imported.len ? secret_objection(imported) : NULL;
    return objection ? fault_set(f, E_BAD_INPUT, "%s", objection) : E_OK;
}

static enum err add_and_save(const char *path, const struct key *k, struct fault *f)
{
    struct place p;
    enum err e = place_open(&p, path, f);

    if (e != E_OK)
        return e;
    struct keyring *ring = load_or_new(p.path, f);
    e = ring ? keyring_add(ring, k, f) : f->err;
    if (e == E_OK)
        e = save(&p, ring, f);
    keyring_free(ring);
    close(p.fd);
    return e;
}

enum err key_create(const char *path, const struct key *k, struct str imported_secret, bool print_only,
                    char secret[SECRET_TEXT + 1], struct buf *line, struct fault *f)
{
    uint8_t random[SECRET_TEXT / 2];
    struct key made = *k;
    enum err e = check(k, imported_secret, f);

    secret[0] = '\0';
    if (e != E_OK)
        return e;
    if (!secret_init())
        return fault_set(f, E_INTERNAL, "there is no source of random bytes");
    if (imported_secret.len) {
        secret_hash(imported_secret, made.hash);
    } else {
        secret_random(random, sizeof random);
        secret_hex(random, sizeof random, secret);
        secret_wipe(random, sizeof random);
        secret_hash(str_of(secret), made.hash);
    }
    key_line(&made, line);
    if (line->failed)
        e = fault_set(f, E_NO_MEMORY, NULL);
    else if (!print_only)
        e = add_and_save(path, &made, f);
    if (e != E_OK)
        secret_wipe(secret, SECRET_TEXT + 1);
    return e;
}

enum err key_revoke(const char *path, struct str name, struct fault *f)
{
    struct place p;
    struct key *k = NULL;
    enum err e = place_open(&p, path, f);

    if (e != E_OK)
        return e;
    struct keyring *ring = keyring_load(p.path, f);
    if (!ring) {
        e = f->err;
    } else if (!(k = keyring_named(ring, name))) {
        e = fault_set(f, E_NOT_FOUND, "there is no key named \"%.*s\"", (int)(name.len > 100 ? 100 : name.len), name.p);
    } else if (k->enabled) {
        k->enabled = false;
        e = save(&p, ring, f);
    }
    keyring_free(ring);
    close(p.fd);
    return e;
}
