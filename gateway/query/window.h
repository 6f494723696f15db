/* The window of a read: from and until as people write them, widened to whole minutes (api.md, common parameters). */
#ifndef GATEWAY_QUERY_WINDOW_H
#define GATEWAY_QUERY_WINDOW_H

#include "codecs/base.h"

/* Half open, ns since 1970. */
struct window {
    int64_t from_ns, until_ns;
    bool by_default; /* the last hour, because nothing was said */
};
/* Empty strings: absent. E_BAD_REQUEST names "from" or "until". */
enum err window_parse(struct window *w, struct str from, struct str until, int64_t now_ns, struct fault *f) MUST_CHECK;
/* One time: RFC 3339, Unix by digits, now and offsets. false: none of these, or outside of what int64 ns can hold. */
bool window_time(struct str text, int64_t now_ns, int64_t *out) MUST_CHECK;
/* "90s", "5m", "1h30m", "2d", "1w", or seconds without a unit. */
bool window_duration(struct str text, int64_t *out_ns) MUST_CHECK;
/* RFC 3339 in UTC with nanoseconds. */
enum { WINDOW_TEXT = 40 };
void window_format(int64_t ns, char out[WINDOW_TEXT]);

#endif
