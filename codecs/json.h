/*
 * A pull tokenizer of JSON that arrives in pieces: one event a call, strings in pieces, depth bounded, nothing
 * allocated. Keys longer than JSON_KEY_MAX are cut (nobody looks for them).
 */
#ifndef CODECS_JSON_H
#define CODECS_JSON_H

#include "codecs/base.h"

enum { JSON_DEPTH_MAX = 64, JSON_KEY_MAX = 64 };

enum json_event {
    JSON_NEED_MORE, /* all input was taken */
    JSON_BAD,       /* json->reason */
    JSON_OBJECT,
    JSON_OBJECT_END,
    JSON_ARRAY,
    JSON_ARRAY_END,
    JSON_KEY,    /* text: until the next call */
    JSON_STRING, /* a string value begins */
    JSON_PIECE,  /* of it; text: part of the input, or until the next call */
    JSON_STRING_END,
    JSON_SCALAR, /* number, true, false, null; text is what was sent, cut to JSON_KEY_MAX */
};

struct json {
    const char *reason;
    uint32_t depth;
    uint64_t arrays; /* bit d: level d is an array */
    enum {
        JS_VALUE,
        JS_VALUE_OR_END,
        JS_KEY_OR_END,
        JS_KEY_NEXT,
        JS_COLON,
        JS_COMMA,
        JS_IN_KEY,
        JS_IN_STRING,
        JS_IN_SCALAR,
        JS_DONE
    } state; /* zeroed: at the beginning */
    enum { ESC_NONE, ESC_BACKSLASH, ESC_HEX } escape;
    uint32_t hex, n_hex, high; /* a \u escape, and the first half of a pair */
    char text[JSON_KEY_MAX];
    size_t n_text;
};
enum json_event json_next(struct json *j, struct str *in, struct str *text) MUST_CHECK;
bool json_done(struct json *j); /* at the end of the input: whether a whole value was there */

#endif
