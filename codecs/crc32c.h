/* CRC-32C (Castagnoli), which the processor computes: for what we write to a disk ourselves. */
#ifndef CODECS_CRC32C_H
#define CODECS_CRC32C_H

#include "codecs/base.h"

/* Of bytes that follow those that gave `before`; 0: nothing came before. */
uint32_t crc32c(uint32_t before, const void *p, size_t n);

#endif
