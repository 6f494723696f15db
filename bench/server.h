/* What a server process has used so far, as /proc tells: CPU in steps of a clock tick, memory now and at its peak. */
#ifndef BENCH_SERVER_H
#define BENCH_SERVER_H

struct server_use {
    double cpu; /* seconds, user and kernel, all threads */
    long rss_kb, hwm_kb;
};

/* Zeros where pid is not above 0 or the process is gone. */
struct server_use server_use(int pid);
/* From now on hwm_kb is the peak of what follows. */
void server_reset_peak(int pid);

#endif
