/* The tokens of a selector: names, strings in three kinds of quotes, punctuation. Faults say at which byte. */
#ifndef GATEWAY_QUERY_SELECTOR_LEX_H
#define GATEWAY_QUERY_SELECTOR_LEX_H

#include "codecs/base.h"

struct lex {
    struct str text; /* borrowed */
    size_t at;
    struct fault *fault; /* borrowed */
};
struct lex lex_of(struct str text, struct fault *f);
size_t lex_at(const struct lex *l);
bool lex_end(const struct lex *l);
void lex_space(struct lex *l);
bool lex_peek(const struct lex *l, struct str token);
bool lex_take(struct lex *l, struct str token);
/* A label's name, bare or quoted, into out. */
enum err lex_name(struct lex *l, struct buf *out) MUST_CHECK;
/* The name in front of a brace, which may hold colons. */
enum err lex_metric(struct lex *l, struct buf *out) MUST_CHECK;
/* A string with its escapes undone, into out. */
enum err lex_string(struct lex *l, struct buf *out) MUST_CHECK;
enum err lex_fail(struct lex *l, const char *what);
enum err lex_fail_at(struct lex *l, size_t at, const char *what);
enum err lex_no_memory(struct lex *l);

#endif
