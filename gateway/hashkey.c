/* The hash key file: any text of at least 16 bytes; one that we make holds 256 random bits in hexadecimal. */
#include "gateway/hashkey.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uv.h>

enum { TEXT_MAX = 4096, TEXT_MIN = 16, RANDOM_BYTES = 32 };

/* Every folder in front of the last '/'. */
static void make_folders(const char *path)
{
    char dir[TEXT_MAX];

    for (size_t i = 1; path[i] && i < sizeof dir; i++) {
        if (path[i] != '/')
            continue;
        memcpy(dir, path, i);
        dir[i] = 0;
        mkdir(dir, 0700);
    }
}

static bool write_all(int fd, const char *text, size_t n)
{
    return write(fd, text, n) == (ssize_t)n && fsync(fd) == 0;
}

static enum err make(const char *path, struct fault *f)
{
    unsigned char random[RANDOM_BYTES];
    char text[2 * RANDOM_BYTES + 2];

    make_folders(path);
    if (uv_random(NULL, NULL, random, sizeof random, 0, NULL) != 0)
        return fault_set(f, E_INTERNAL, "no random numbers for %s", path);
    for (size_t i = 0; i < RANDOM_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", random[i]);
    text[2 * RANDOM_BYTES] = '\n';
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return E_OK;
    if (fd < 0)
        return fault_set(f, E_INTERNAL, "%s: %s", path, strerror(errno));
    bool ok = write_all(fd, text, 2 * RANDOM_BYTES + 1);
    close(fd);
    if (ok)
        return E_OK;
    unlink(path);
    return fault_set(f, E_INTERNAL, "%s: cannot be written", path);
}

enum err hashkey_load(const char *path, struct hash_key *out, struct fault *f)
{
    char text[TEXT_MAX];

    if (access(path, F_OK) != 0 && make(path, f) != E_OK)
        return f->err;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fault_set(f, E_INTERNAL, "%s: %s", path, strerror(errno));
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    struct str seed = str_trim((struct str){text, n > 0 ? (size_t)n : 0});
    if (seed.len < TEXT_MIN)
        return fault_set(f, E_INTERNAL, "%s: fewer than %d bytes are no key", path, TEXT_MIN);
    hash_key_derive(out, seed);
    return E_OK;
}
