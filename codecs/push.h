/* What a PushRequest says, however it is written: series with labels, and samples with a payload each, bound only at
 * the end. */
#ifndef CODECS_PUSH_H
#define CODECS_PUSH_H

#include "codecs/payload.h"
#include "codecs/profile.h"

struct push_series {
    uint32_t label_at, n_labels;
};
struct push_sample {
    struct payload *payload; /* NULL: no raw_profile */
    struct str id;
    uint32_t series;
};
struct push {
    struct intake *in;
    VEC(struct label) labels; /* of all series; copies */
    VEC(struct push_series) series;
    VEC(struct push_sample) samples;
    bool open; /* a series */
};

struct push *push_new(struct intake *in) MUST_CHECK; /* NULL: in->fault is set */
enum step push_series_begin(struct push *p) MUST_CHECK;
enum step push_label(struct push *p, struct str name, struct str value) MUST_CHECK; /* copies */
enum step push_sample_begin(struct push *p) MUST_CHECK;
enum step push_sample_id(struct push *p, struct str id) MUST_CHECK; /* copies */
/* A payload for the sample that was begun last; one that it had is dropped, as the later of two fields counts. */
struct payload *push_payload(struct push *p) MUST_CHECK; /* NULL: in->fault is set */
void push_series_end(struct push *p);
void push_drop(struct push *p); /* what is not the arena's; NULL is fine */

/* The two ways to write it. */
struct push_proto;
struct push_proto *push_proto_new(struct push *p) MUST_CHECK;
enum step push_proto_feed(struct push_proto *d, struct str *in, uint32_t *budget) MUST_CHECK;
enum step push_proto_end(struct push_proto *d, uint32_t *budget) MUST_CHECK;

struct push_json;
struct push_json *push_json_new(struct push *p) MUST_CHECK;
enum step push_json_feed(struct push_json *d, struct str *in, uint32_t *budget) MUST_CHECK;
enum step push_json_end(struct push_json *d, uint32_t *budget) MUST_CHECK;

#endif
