/* Answers as text: at most 100 columns, values with units that people read, control characters escaped. */
#ifndef GATEWAY_QUERY_TEXT_H
#define GATEWAY_QUERY_TEXT_H

#include "gateway/query/gather.h"

enum { TEXT_COLUMNS = 100 };

/* Client bytes with C0, C1 and broken UTF-8 escaped, cut to `columns` characters (the last one is … then). Returns
 * those written. */
size_t text_put(struct buf *out, struct str s, size_t columns);
/* The same, but the end stays and the first one is …: files, where what matters comes last. */
size_t text_end(struct buf *out, struct str s, size_t columns);
/* A function's name, whose end stays; of "name (path:line)" the name and the path's end. */
size_t text_name(struct buf *out, struct str s, size_t columns);
/* The same, filled up with spaces to `columns`. */
void text_pad_name(struct buf *out, struct str s, size_t columns);
/* "42.1 %", right-aligned in 7 columns; "0 %" of nothing. */
void text_percent(struct buf *out, int64_t part, int64_t whole);
/* "42 %", "4.2 %", "0.1 %": as in a sentence. */
void text_percent_words(struct buf *out, int64_t part, int64_t whole);
/* "3 m 42.1 s", "1.5 GiB", "12 goroutines" */
void text_value(struct buf *out, double value, struct str unit);
/* "CPU time", "memory", or the raw name of a type that is in no group. */
void text_group(struct buf *out, struct str type);
/* "in the last hour", "from ... until ..." */
void text_window(struct buf *out, const struct ask *a);
/* "checkout · cpu · last hour · 12 profiles · 3 m 42.1 s", a line of its own. */
void text_head(struct buf *out, const struct ask *a, const struct gathered *g);

#endif
