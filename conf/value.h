/* Numbers with units, and addresses: text to value, value to text. */
#ifndef CONF_VALUE_H
#define CONF_VALUE_H

#include "codecs/base.h"

enum value_result { VALUE_OK, VALUE_NO_NUMBER, VALUE_NO_UNIT, VALUE_BAD_UNIT, VALUE_TOO_LARGE };

/* "200000": digits only. */
enum value_result value_count(struct str s, uint64_t *n);
/* "16MiB": digits and one of B KiB MiB GiB TiB. */
enum value_result value_size(struct str s, uint64_t *bytes);
/* "10s": digits and one of ms s m h d. */
enum value_result value_time(struct str s, uint64_t *ms);
/* "host:port", "[::1]:port"; borrows host, without the brackets. */
bool value_address(struct str s, struct str *host, uint16_t *port);

/* The largest unit that gives a whole number. */
void value_size_text(struct buf *b, uint64_t bytes);
void value_time_text(struct buf *b, uint64_t ms);

#endif
