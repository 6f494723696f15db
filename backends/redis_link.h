/*
 * One connection to Redis, blocking, for threads that may wait: commands are collected and sent together, each with a
 * deadline; a lost connection is made again when the next commands come, not too often. The only file that knows
 * hiredis. One thread at a time.
 *
 * Blocking on purpose: all of Redis is done on threads of its own, so that the loop cannot be held up by it, socket
 * time-outs are real deadlines, and none of the asynchronous adapter's traps (storage.md 4) exist here.
 */
#ifndef BACKENDS_REDIS_LINK_H
#define BACKENDS_REDIS_LINK_H

#include "codecs/base.h"

enum { REDIS_HOST_MAX = 256, REDIS_NAME_MAX = 512 };

/* redis://[[user][:password]@]host[:port][/db], or unix:///path[?db=N] behind redis: as redis:///path. Percent
 * encoding in user and password. */
struct redis_address {
    char host[REDIS_HOST_MAX]; /* or the path of a socket, which begins with '/' */
    char user[REDIS_NAME_MAX], password[REDIS_NAME_MAX];
    uint16_t port;
    uint32_t db;
};
/* rest: what is behind "redis:". E_BAD_INPUT: f says what is wrong, without the password. */
enum err redis_address_parse(struct redis_address *a, struct str rest, struct fault *f) MUST_CHECK;

struct redis_link;
/* Connects when it is first needed. address outlives it. NULL: no memory. */
struct redis_link *redis_link_new(const struct redis_address *address, uint32_t deadline_ms) MUST_CHECK;
void redis_link_free(struct redis_link *l); /* NULL is fine */

/* One more command for the next run; arguments are copied. Failing to connect shows in the run. */
void redis_command(struct redis_link *l, const struct str *arguments, unsigned n);
/* The same, of plain words and strings: redis_commandf(l, 3, STR("SET"), key, value). */
#define REDIS_COMMAND(l, ...)                                                                                          \
    redis_command((l), (const struct str[]){__VA_ARGS__}, COUNTOF(((const struct str[]){__VA_ARGS__})))

void redis_forget(struct redis_link *l); /* the commands collected so far: they are not sent */

struct redis_reply; /* borrowed for the callback */
/* `number`: of its command in this run, from 0. Not E_OK ends the run with it; the connection goes. */
typedef enum err (*redis_answer)(void *ctx, unsigned number, const struct redis_reply *r);
/* Sends, and hears every reply in order; answer may be NULL. E_STORE_DOWN: cannot be reached, or did not answer in
 * time: how much has been done is unknown. Error replies go to `answer`; without one they end the run. */
enum err redis_run(struct redis_link *l, redis_answer answer, void *ctx, struct fault *f) MUST_CHECK;

bool redis_is_nil(const struct redis_reply *r);
bool redis_is_error(const struct redis_reply *r);   /* redis_text: what it says */
struct str redis_text(const struct redis_reply *r); /* of a string, a status or an error; else empty */
size_t redis_items(const struct redis_reply *r);    /* of a list; else 0 */
const struct redis_reply *redis_item(const struct redis_reply *r, size_t i);

#endif
