/*
 * Folding of repeated log lines. The first line of a kind (level, event, text fields; numbers may differ) is written at
 * once, those like it within an interval are counted, and told by one line with suppressed=N at its end. An event has
 * at most FOLD_VARIANTS kinds at a time; what comes beyond them is one more kind, so that texts chosen by a client do
 * not make a flood either. Lines at level info tell of what an operator or the process did, and are always written. Any
 * thread.
 */
#ifndef GATEWAY_FOLD_H
#define GATEWAY_FOLD_H

#include "gateway/log.h"

enum { FOLD_KINDS = 256, FOLD_VARIANTS = 16, FOLD_FIELDS = 6, FOLD_TEXT = 320 };

/* A kind whose interval ended with lines left out. Texts point into itself, so it is not to be moved. */
struct fold_line {
    int level;
    const char *event;
    struct log_field fields[FOLD_FIELDS + 1]; /* the text fields of the first line, cut to FOLD_TEXT; then suppressed */
    size_t n;
    char text[FOLD_TEXT];
};
typedef void fold_write(const struct fold_line *line);

/* 0: nothing is folded. */
void fold_interval(int64_t ns);
/* Whether this line is to be written. The event is kept by pointer. */
bool fold_first(int64_t now_ns, int level, const char *event, const struct log_field *fields, size_t n,
                fold_write *write);
/* Tells what was left out in the intervals that have ended by now; INT64_MAX: in all. */
void fold_flush(int64_t now_ns, fold_write *write);

#endif
