/*
 * Allocations that fail on request, for tests named test_*_fault.c: those link with
 * --wrap=malloc,--wrap=calloc,--wrap=realloc. Include it once, in the test itself.
 */
#ifndef TEST_ORACLE_FAILING_MALLOC_H
#define TEST_ORACLE_FAILING_MALLOC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Atomic: a thread of a store allocates too. */
static atomic_long fail_at = -1, calls;
static atomic_bool sticky;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static bool should_fail(void)
{
    if (fail_at < 0)
        return false;
    long k = calls++;
    return sticky ? k >= fail_at : k == fail_at;
}

void *__wrap_malloc(size_t n)
{
    return should_fail() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return should_fail() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return should_fail() ? NULL : __real_realloc(p, n);
}

/* Allocation number `at` from now on fails, the first being 0; or it and all behind it. */
static inline void fail_from(long at, bool from_then_on)
{
    calls = 0;
    sticky = from_then_on;
    fail_at = at;
}

/* How many there were since then. */
static inline long fail_no_more(void)
{
    fail_at = -1;
    return calls;
}

#endif
