/*
 * Bodies for the load generator: one profile, sent again and again, each time as another upload. Only the end differs:
 * a fresh time_nanos (pprof field 9, the last one wins), in a stored deflate block that closes an .open stream (see
 * bodies.py), in a gzip member of its own behind a .gz, or as it is behind raw protobuf.
 */
#ifndef BENCH_UPLOAD_H
#define BENCH_UPLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UPLOAD_TAIL_MAX = 64, UPLOAD_PRE_MAX = 512, UPLOAD_HEAD_MAX = 1024 };
enum upload_kind { UPLOAD_INGEST, UPLOAD_PUSH, UPLOAD_SINK, UPLOAD_GET };
enum body_kind { BODY_OPEN, BODY_GZIP, BODY_RAW };

struct body {
    enum body_kind kind;
    const uint8_t *data;
    size_t len;
    uint32_t crc, isize; /* BODY_OPEN: of what `data` holds */
};

/* One request, ready for writev: head, pre, the shared body, tail, post. */
struct upload {
    char head[UPLOAD_HEAD_MAX];
    uint8_t pre[UPLOAD_PRE_MAX], tail[UPLOAD_TAIL_MAX], post[UPLOAD_TAIL_MAX];
    size_t head_len, pre_len, tail_len, post_len;
    const struct body *body;
};

/* What all uploads of a run have in common. */
struct upload_plan {
    enum upload_kind kind;
    const char *host, *path, *app, *header; /* path: of sink and get */
    unsigned series;                        /* distinct label sets */
};

/* The file's bytes; false with errno set, or for an .open file that is too short. Never freed. */
bool body_load(struct body *b, const char *path);
/* Request number `seq`, its profile's time being `time_ns`. `body` is NULL for UPLOAD_GET. */
void upload_make(struct upload *u, const struct upload_plan *p, const struct body *body, uint64_t seq, int64_t time_ns);
/* What inflate_floor inflates, too: the tail alone. Returns its length, at most UPLOAD_TAIL_MAX. */
size_t body_tail(const struct body *b, int64_t time_ns, uint8_t *out);

#endif
