/* Days since 1970, UTC: what files, classes and expiry are counted in. */
#ifndef BACKENDS_DAY_H
#define BACKENDS_DAY_H

#include "codecs/base.h"

#define DAY_NS (86400 * INT64_C(1000000000))

enum { DAY_TEXT = 16 };
int64_t day_now_ns(void); /* the stores' only look at the wall clock */
int32_t day_of(int64_t ns);
/* The day's first nanosecond; saturates at the ends of int64. */
int64_t day_start(int32_t day);
void day_format(int32_t day, char out[DAY_TEXT]); /* "2026-11-30" */
/* Reads "2026-11-30" at *text and moves it behind. */
bool day_parse(const char **text, int32_t *day);
/* Whether everything of a class's day has expired on the day `today`. */
static inline bool day_expired(int32_t day, uint16_t class_days, int32_t today)
{
    return day < (int64_t)today - class_days;
}

#endif
