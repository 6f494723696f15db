/* Log lines: rendering with escapes, and one write(2) per line to standard error. */
#include "gateway/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "gateway/fold.h"

enum { LINE_MAX_BYTES = 4096 };

int log_level = LOG_INFO;
static bool as_json;

static const char *const level_names[] = {"error", "warn", "info", "debug"};

/* Writes into a fixed line; what does not fit is dropped, the newline always fits. */
struct line {
    char *p;
    size_t len, cap;
};

static void put(struct line *l, const char *p, size_t n)
{
    if (n > l->cap - l->len)
        n = l->cap - l->len;
    memcpy(l->p + l->len, p, n);
    l->len += n;
}

static void put_text(struct line *l, const char *z)
{
    put(l, z, strlen(z));
}

/* C0, C1, quotes and backslashes as escapes, so that a line stays a line whatever a client sent. What does not fit is
 * left out by whole escapes, and the closing quote always has room: a long JSON line is JSON still. */
static void put_quoted(struct line *l, struct str s)
{
    put(l, "\"", 1);
    bool utf8 = utf8_valid(s);
    for (size_t i = 0; i < s.len && l->cap - l->len > 10; i++) {
        unsigned char c = (unsigned char)s.p[i];
        char esc[8];
        bool c1 = utf8 && c == 0xc2 && i + 1 < s.len && (unsigned char)s.p[i + 1] < 0xa0;
        if (c == '"' || c == '\\') {
            put(l, (char[]){'\\', (char)c}, 2);
        } else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8)) {
            snprintf(esc, sizeof esc, "\\u%04x", c);
            put(l, esc, 6);
        } else if (c1) {
            snprintf(esc, sizeof esc, "\\u%04x", (unsigned char)s.p[++i]);
            put(l, esc, 6);
        } else {
            size_t n = 1; /* a character is not cut */
            while (c >= 0xc0 && i + n < s.len && ((unsigned char)s.p[i + n] & 0xc0) == 0x80)
                n++;
            put(l, s.p + i, n);
            i += n - 1;
        }
    }
    put(l, "\"", 1);
}

static bool plain(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c <= ' ' || c >= 0x7f || c == '"' || c == '=' || c == '\\')
            return false;
    }
    return s.len > 0;
}

static void put_field(struct line *l, const struct log_field *f, bool json)
{
    char number[24];

    if (l->cap - l->len < strlen(f->key) + 32)
        return; /* a field stands whole or not at all */
    put_text(l, json ? ",\"" : " ");
    put_text(l, f->key);
    put_text(l, json ? "\":" : "=");
    if (f->is_number) {
        snprintf(number, sizeof number, "%" PRId64, f->number);
        put_text(l, number);
    } else if (!json && plain(f->text)) {
        put(l, f->text.p, f->text.len);
    } else {
        put_quoted(l, f->text);
    }
}

size_t log_render(char *out, size_t cap, bool json, int64_t now_ns, int level, const char *event,
                  const struct log_field *fields, size_t n)
{
    struct line l = {out, 0, cap - 4};
    time_t s = (time_t)(now_ns / 1000000000);
    struct tm tm;
    char when[64];

    gmtime_r(&s, &tm);
    size_t at = strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(when + at, sizeof when - at, ".%03dZ", (int)(now_ns / 1000000 % 1000));
    put_text(&l, json ? "{\"time\":\"" : "time=");
    put_text(&l, when);
    put_text(&l, json ? "\",\"level\":\"" : " level=");
    put_text(&l, level_names[level]);
    put_text(&l, json ? "\",\"event\":" : " event=");
    if (json || !plain(str_of(event)))
        put_quoted(&l, str_of(event));
    else
        put_text(&l, event);
    for (size_t i = 0; i < n; i++)
        put_field(&l, &fields[i], json);
    l.cap = cap;
    put_text(&l, json ? "}\n" : "\n");
    return l.len;
}

void log_setup(int level, bool json, int64_t fold_ns)
{
    log_level = level;
    as_json = json;
    fold_interval(fold_ns);
}

static void write_line(int64_t now_ns, int level, const char *event, const struct log_field *fields, size_t n)
{
    char line[LINE_MAX_BYTES];
    size_t len = log_render(line, sizeof line, as_json, now_ns, level, event, fields, n);
    ssize_t written = write(STDERR_FILENO, line, len);
    (void)written; /* nobody left to tell */
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void write_folded(const struct fold_line *l)
{
    write_line(clock_ns(CLOCK_REALTIME), l->level, l->event, l->fields, l->n);
}

void log_fields(int level, const char *event, const struct log_field *fields, size_t n)
{
    if (fold_first(clock_ns(CLOCK_MONOTONIC), level, event, fields, n, write_folded))
        write_line(clock_ns(CLOCK_REALTIME), level, event, fields, n);
}

void log_flush(bool all)
{
    fold_flush(all ? INT64_MAX : clock_ns(CLOCK_MONOTONIC), write_folded);
}
