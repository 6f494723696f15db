/* A segment as a file: its name, reading and writing it. */
#ifndef BACKENDS_SPOOL_FILE_H
#define BACKENDS_SPOOL_FILE_H

#include "backends/spool_entry.h"

#define SPOOL_LOCK "lock"
enum { SPOOL_NAME = 24 };
void spool_file_name(uint64_t number, char out[SPOOL_NAME]);
bool spool_file_number(const char *name, uint64_t *number); /* false: not a segment's name */

bool spool_file_room(struct buf *b, size_t n) MUST_CHECK; /* for n bytes from the beginning; false: errno */
bool spool_file_at(int fd, void *p, size_t n, uint64_t at) MUST_CHECK; /* false: errno, or 0 at the file's end */
bool spool_file_read(int fd, struct buf *bytes) MUST_CHECK;            /* all of it; false: no memory, or errno */
bool spool_file_write(int fd, const void *p, size_t n, uint64_t at) MUST_CHECK; /* false: errno */
/* Behind the magic; a file that was never begun (a crash while it was made) is SPOOL_END. */
enum spool_step spool_file_begin(struct str segment, size_t *at);

#endif
