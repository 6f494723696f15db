/* Inside of reading a pprof: what pprof.c (tables) and pprof_sample.c (samples) share. */
#ifndef CODECS_PPROF_FIELDS_H
#define CODECS_PPROF_FIELDS_H

#include "codecs/pprof.h"

enum step pprof_malformed(struct pprof *d, const char *what);
bool pprof_wide(struct pprof *d, uint64_t id,
                uint32_t *code); /* the code of an id of 32 bits and more; false: no room */
enum step pprof_add_sample(struct pprof *d, struct str msg);

static inline uint32_t pprof_string_index(uint64_t v)
{
    return v < PPROF_NO_STRING ? (uint32_t)v : PPROF_NO_STRING;
}

#endif
