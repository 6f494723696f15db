/* Sums per type and per function, made the plainest way: what any reading of a profile must come to. */
#ifndef TEST_ORACLE_TALLY_H
#define TEST_ORACLE_TALLY_H

#include "codecs/record.h"

enum { TALLY_TYPES = 64 };

struct tally_row {
    struct str name, file;
    int64_t self[TALLY_TYPES], total[TALLY_TYPES];
    uint64_t stamp;
};
struct tally {
    struct arena *a;
    struct {
        struct str type, unit;
        int64_t total;
    } types[TALLY_TYPES];
    uint32_t n_types;
    struct tally_row *rows;
    uint32_t n_rows, cap_rows;
    uint32_t *slots, n_slots; /* row + 1, by content */
    uint64_t samples;
    bool over;
};
struct tally_frame {
    struct str name, file;
};

struct tally *tally_new(struct arena *a);
/* Frames leaf first; values per type. */
void tally_sample(struct tally *t, const struct tally_frame *frames, uint32_t n, const int64_t *values);
struct tally_row *tally_find(const struct tally *t, struct str name, struct str file); /* NULL: none */
/* What a sealed record says; asserts that it opens. Names borrow from the record. */
struct tally *tally_record(struct arena *a, const struct record *r);
/* NULL, or in words what differs (in static memory). */
const char *tally_differs(const struct tally *a, const struct tally *b);

#endif
