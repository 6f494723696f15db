/* The bounds that decoding keeps to. Filled by conf/ (limits.*); each is named by that name where it refuses. */
#ifndef CODECS_LIMITS_H
#define CODECS_LIMITS_H

#include <stddef.h>
#include <stdint.h>

struct limits {
    size_t body;            /* bytes of a request body on the wire */
    size_t inflated;        /* bytes that one compressed layer may unpack to */
    size_t decoded;         /* bytes of memory that one request may take decoded */
    size_t field;           /* bytes of one protobuf field that is not descended into (a string, a sample) */
    uint32_t profiles;      /* profiles in one request */
    uint32_t samples;       /* of one profile */
    uint32_t strings;       /* in the table of one profile; 0: as many */
    uint32_t depth;         /* frames of a stack; deeper ones keep the leaf side below one frame "[truncated]" */
    uint32_t labels;        /* of a series */
    uint32_t sample_labels; /* of one sample */
    uint32_t label_name, label_value; /* bytes */
    uint32_t parts;                   /* of a multipart body */
};

#endif
