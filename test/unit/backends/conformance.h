/*
 * What every sample store has to do (backends/backend.h), whatever it is made of: one suite, run over an address. A
 * store's test includes conformance.c, adds its own cases with the same world, and hands over CONFORMANCE_TESTS.
 */
#ifndef TEST_UNIT_BACKENDS_CONFORMANCE_H
#define TEST_UNIT_BACKENDS_CONFORMANCE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "backends/backend.h"

#define SECOND INT64_C(1000000000)
#define DAY (86400 * SECOND)
enum { TODAY = 20787 }; /* 2026-11-30 */
#define NOON (TODAY * DAY + 12 * 3600 * SECOND)

/* A loop, a folder that goes with it, and a store in it. */
struct world {
    uv_loop_t loop;
    struct store_host host;
    struct hash_key key;
    char dir[64];
    const struct backend *backend;
    struct sample_store *store;
    atomic_int errors; /* log lines of level 0 */
    atomic_llong account;
    bool inside_put, closed;
    int dones;
    uint64_t next_group;
};

extern const char *conformance_address; /* "sqlite:" */
int world_setup(void **state);
int world_teardown(void **state);
void world_open(struct world *w);
void world_close(struct world *w);
void world_reopen(struct world *w); /* also: every mark is in */

/* What a record of the tests is made from; zeroes are fine. */
struct wish {
    const char *project, *service, *pod;
    int64_t time_ns;
    uint64_t content; /* 0: unlike any other */
    bool identity;
    uint32_t stacks, first_stack; /* 0: three */
    int64_t value;                /* of every sample */
    const char *original;         /* NULL: not kept */
};
struct record *make_record(struct world *w, struct wish wish);

/* Fills g with these records and puts it; the records are freed. */
void put_wishes(struct world *w, struct group *g, uint16_t class_days, const struct wish *wishes, uint16_t n);
void put_group(struct world *w, struct group *g); /* until its done */
void put_one(struct world *w, struct group *g, uint16_t class_days, struct wish wish);
void free_group(struct group *g);

/* A selection's rows, copied. */
struct seen {
    struct attempt attempt;
    int64_t time_ns, total;
    char service[32], pod[32];
    size_t body;
};
struct seeing {
    struct seen rows[512];
    int n;
    enum err stop; /* given back at the first row */
    struct fault fault;
};
enum err see(struct world *w, struct seeing *s, const char *service, int64_t from, int64_t until, enum scan_what what);
int count(struct world *w, int64_t from, int64_t until); /* of project "p", all services */

extern const struct CMUnitTest conformance_tests[];
extern const size_t conformance_n_tests;

#endif
