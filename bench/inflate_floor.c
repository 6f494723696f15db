/*
 * inflate_floor: what it costs just to gunzip the uploads, with ISA-L, 64 KiB of output at a time, as a gateway has to.
 *
 *   inflate_floor FILE.open SECONDS      prints microseconds of CPU per upload
 *
 * Each round inflates another upload (its own tail), and checks that all of it came out.
 */
#include "bench/upload.h"

#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Bytes that came out; 0 for an error, the CRC's included. */
static size_t inflate_all(struct inflate_state *z, const uint8_t *data, size_t len, size_t tail_len,
                          const uint8_t *tail)
{
    static uint8_t out[64 << 10];
    const uint8_t *parts[2] = {data, tail};
    size_t lens[2] = {len, tail_len}, total = 0;
    isal_inflate_init(z);
    z->crc_flag = ISAL_GZIP;
    for (int i = 0; i < 2; i++) {
        z->next_in = (uint8_t *)(uintptr_t)parts[i];
        z->avail_in = (uint32_t)lens[i];
        do {
            z->next_out = out;
            z->avail_out = sizeof out;
            if (isal_inflate(z) != ISAL_DECOMP_OK)
                return 0;
            total += sizeof out - z->avail_out;
        } while (z->avail_out == 0);
    }
    return z->block_state == ISAL_BLOCK_FINISH ? total : 0;
}

int main(int argc, char **argv)
{
    struct body b;
    static struct inflate_state z;
    uint8_t tail[UPLOAD_TAIL_MAX];
    if (argc != 3 || !body_load(&b, argv[1]) || b.kind != BODY_OPEN) {
        fprintf(stderr, "usage: inflate_floor FILE.open SECONDS\n");
        return 2;
    }
    double start = cpu_seconds(), end = start + strtod(argv[2], NULL), t;
    long n = 0;
    do {
        size_t tail_len = body_tail(&b, 1700000000000000000 + n, tail);
        if (inflate_all(&z, b.data, b.len, tail_len, tail) != b.isize + 11u) {
            fprintf(stderr, "%s: does not inflate\n", argv[1]);
            return 1;
        }
        n++;
        t = cpu_seconds();
    } while (t < end);
    printf("%.3f\n", (t - start) / (double)n * 1e6);
    return 0;
}
