/* The name of one attempt to store one profile. */
#ifndef BACKENDS_ATTEMPT_H
#define BACKENDS_ATTEMPT_H

#include "codecs/base.h"

/* 32 hexadecimal digits as text, the id that people see. */
struct attempt {
    uint64_t boot;  /* random per process start */
    uint64_t group; /* counts up from 1, 48 bits */
    uint16_t place; /* in the group */
};
enum { ATTEMPT_TEXT = 33 };
void attempt_format(struct attempt a, char out[ATTEMPT_TEXT]);
bool attempt_parse(struct str text, struct attempt *out);

#endif
