/* Writes JSON into a buffer as it goes. Never emits invalid UTF-8 or a raw control character, whatever a client has
 * sent. */
#ifndef GATEWAY_JSON_H
#define GATEWAY_JSON_H

#include "codecs/base.h"

/* Zero is a good start, but for `out`, which is borrowed. */
struct json {
    struct buf *out;
    bool comma; /* the next value or key needs one in front */
};

void json_open(struct json *j, char bracket);  /* '{' or '[' */
void json_close(struct json *j, char bracket); /* '}' or ']' */
void json_key(struct json *j, const char *key);
void json_key_str(struct json *j, struct str key);
void json_str(struct json *j, struct str s); /* bytes that are no UTF-8 become U+FFFD */
void json_int(struct json *j, int64_t v);
void json_uint(struct json *j, uint64_t v);
void json_bool(struct json *j, bool v);
void json_null(struct json *j);
void json_share(struct json *j, int64_t part, int64_t whole); /* part / whole; 0 of nothing is 0 */
void json_ratio(struct json *j, int64_t value, uint64_t times,
                uint64_t by); /* value * times / by, exact where it is whole; by > 0 */

/* Length of the UTF-8 character at the front of s, 0 where there is none. */
size_t json_utf8(struct str s);

#endif
