/*
 * Reading: one answer to one GET under /api/v1 (api.md). Runs on a thread of the query lane: blocks, reads the store,
 * computes, writes the whole answer into a buffer. Knows nothing of sockets or of the loop.
 */
#ifndef GATEWAY_QUERY_QUERY_H
#define GATEWAY_QUERY_QUERY_H

#include "backends/shares.h"
#include "backends/uploads.h"
#include "codecs/base.h"

struct query {
    struct str path;   /* behind "/api/v1/", not decoded: "functions", "profiles/ID/pprof", "labels/pod" */
    struct str params; /* behind '?', not decoded */
    struct str accept; /* Accept header, or empty */
    struct str project;
    int64_t now_ns;
    const struct backend *backend;
    struct sample_store *store;
    const struct hash_key *key;            /* the store's */
    const struct share_reader_ops *shares; /* NULL: no function shares are kept */
    struct share_store *share_store;
    struct uploads *uploads;
    struct str only_key;       /* uploads of this key alone; empty: of the project */
    size_t memory_limit;       /* of this query */
    int64_t deadline_ns;       /* CLOCK_MONOTONIC; past it: 504 */
    const atomic_bool *cancel; /* set by the loop when the client has gone or the deadline has passed */
};

struct answer {
    int status;
    const char *content_type; /* static */
    char disposition[160];    /* Content-Disposition, or empty */
    bool nosniff;
    struct buf body; /* the caller frees */
};

/* Always gives an answer, errors included ({"code","message"}). */
void query_run(const struct query *q, struct answer *a);
/* Whether `path` is one of ours at all (else 404 unimplemented before any token is looked at is wrong: it is 404
 * after). */
bool query_known(struct str path);

#endif
