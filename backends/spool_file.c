/* Segments as files, for the spool and for `flamegate spool`. */
#include "backends/spool_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void spool_file_name(uint64_t number, char out[SPOOL_NAME])
{
    snprintf(out, SPOOL_NAME, "%016" PRIx64 ".spool", number);
}

bool spool_file_number(const char *name, uint64_t *number)
{
    char again[SPOOL_NAME];
    char *end;

    *number = strtoull(name, &end, 16);
    spool_file_name(*number, again);
    return strcmp(name, again) == 0;
}

bool spool_file_room(struct buf *b, size_t n)
{
    if (b->cap < n) {
        char *p = realloc(b->p, n);

        if (!p) {
            errno = ENOMEM;
            return false;
        }
        b->p = p;
        b->cap = n;
    }
    return true;
}

bool spool_file_at(int fd, void *p, size_t n, uint64_t at)
{
    char *to = p;

    while (n) {
        ssize_t k = pread(fd, to, n, (off_t)at);

        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0) {
            errno = k < 0 ? errno : 0;
            return false;
        }
        to += k;
        at += (uint64_t)k;
        n -= (size_t)k;
    }
    return true;
}

bool spool_file_read(int fd, struct buf *bytes)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || !spool_file_room(bytes, (size_t)st.st_size + 1))
        return false;
    if (!spool_file_at(fd, bytes->p, (size_t)st.st_size, 0))
        return false;
    bytes->len = (size_t)st.st_size;
    return true;
}

enum spool_step spool_file_begin(struct str segment, size_t *at)
{
    static const char nothing[SPOOL_MAGIC_BYTES];
    size_t n = segment.len < SPOOL_MAGIC_BYTES ? segment.len : SPOOL_MAGIC_BYTES;

    *at = 0;
    if (n == 0 || memcmp(segment.p, nothing, n) == 0)
        return SPOOL_END;
    if (n < SPOOL_MAGIC_BYTES || memcmp(segment.p, SPOOL_MAGIC, n) != 0)
        return SPOOL_TORN;
    *at = SPOOL_MAGIC_BYTES;
    return SPOOL_ENTRY;
}

bool spool_file_write(int fd, const void *p, size_t n, uint64_t at)
{
    const char *from = p;

    while (n) {
        ssize_t k = pwrite(fd, from, n, (off_t)at);

        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        from += k;
        at += (uint64_t)k;
        n -= (size_t)k;
    }
    return true;
}
