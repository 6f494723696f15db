/* Inside of an upload: shared by upload.c (bytes in) and upload_finish.c (records out), by nobody else. */
#ifndef CODECS_UPLOAD_PARTS_H
#define CODECS_UPLOAD_PARTS_H

#include "codecs/multipart.h"
#include "codecs/push.h"
#include "codecs/series.h"

enum { SNIFF_MAX = 208 };

struct base {
    struct hash128 hash;
    uint32_t seen;
};

struct upload {
    struct intake in;
    struct layer *coding;
    struct payload *payload; /* pprof or folded as the body */
    struct multipart *multipart;
    struct push *push;
    struct push_proto *proto;
    struct push_json *json;
    char line[SNIFF_MAX]; /* first bytes of a pprof body, until it is known what it is */
    size_t n_line;
    bool sniffed;
    struct str replay;
    uint64_t wire;

    struct series series; /* of /ingest, without its name */
    bool cumulative;
    const struct suffix *suffix;

    struct outcome *outcomes; /* in the arena; the records are owned */
    uint32_t n_outcomes;
    struct base *bases; /* distinct content ids before their ordinal */
    uint32_t n_bases;
    struct index base_index;
    size_t record_bytes;
};

#endif
