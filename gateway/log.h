/* Log lines: one event each, one write(2) each, as logfmt or JSON. Secrets are never handed to it. */
#ifndef GATEWAY_LOG_H
#define GATEWAY_LOG_H

#include "codecs/base.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
extern int log_level; /* lines above it are not written; set by log_setup */

/* Any thread. Text is escaped: it may come from a client. */
struct log_field {
    const char *key;
    struct str text;
    int64_t number;
    bool is_number;
};
#define LOG_STR(k, s)                                                                                                  \
    {                                                                                                                  \
        (k), (s), 0, false                                                                                             \
    }
#define LOG_TEXT(k, z)                                                                                                 \
    {                                                                                                                  \
        (k), str_of(z), 0, false                                                                                       \
    }
#define LOG_NUM(k, n)                                                                                                  \
    {                                                                                                                  \
        (k), {NULL, 0}, (int64_t)(n), true                                                                             \
    }

/* log_at(LOG_INFO, "listening", LOG_TEXT("address", a), LOG_NUM("port", p)); at least one field. */
#define log_at(level, event, ...)                                                                                      \
    do {                                                                                                               \
        if ((int)(level) <= log_level)                                                                                 \
            log_fields((level), (event), (const struct log_field[]){__VA_ARGS__},                                      \
                       COUNTOF(((const struct log_field[]){__VA_ARGS__})));                                            \
    } while (0)

/* fold_ns: lines like one that was written so lately are counted only (fold.h); 0: every line is written. */
void log_setup(int level, bool json, int64_t fold_ns);
/* Writes how many lines were left out, of the intervals that have ended or (before the process ends) of all. */
void log_flush(bool all);
void log_fields(int level, const char *event, const struct log_field *fields, size_t n);
/* The line itself, without writing it: for tests. Ends in '\n'; cut at cap. Returns its length. */
size_t log_render(char *out, size_t cap, bool json, int64_t now_ns, int level, const char *event,
                  const struct log_field *fields, size_t n);

#endif
