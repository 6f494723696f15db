/* Growing arrays in an arena: a pointer, a count and a capacity. Memory grows with what arrived, never with what was
 * declared. */
#ifndef CODECS_VEC_H
#define CODECS_VEC_H

#include "codecs/base.h"

#include <stddef.h>

#define VEC(type)                                                                                                      \
    struct {                                                                                                           \
        type *p;                                                                                                       \
        uint32_t n, cap;                                                                                               \
    }
/* Whether `more` elements fit behind the last one, after growing if need be. false: arena_error says why. */
#define VEC_ROOM(a, v, more)                                                                                           \
    ((size_t)(more) <= (size_t)((v)->cap - (v)->n) || vec_grow((a), (v), sizeof *(v)->p, _Alignof(max_align_t), (more)))
bool vec_grow(struct arena *a, void *vec, size_t size, size_t align, size_t more) MUST_CHECK;

#endif
