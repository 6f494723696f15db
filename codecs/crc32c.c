/* ISA-L's, which takes and gives the register as it is: inverted here, as everybody else writes it down. */
#include "codecs/crc32c.h"

#include <isa-l/crc.h>

uint32_t crc32c(uint32_t before, const void *p, size_t n)
{
    enum { STEP = 1 << 30 };
    unsigned char *at = (unsigned char *)(uintptr_t)p;
    uint32_t r = ~before;

    for (size_t step; n; n -= step, at += step) {
        step = n < STEP ? n : STEP;
        r = crc32_iscsi(at, (int)step, r);
    }
    return ~r;
}
