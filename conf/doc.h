/*
 * A YAML document as a tree of nodes that know their place, and the list of what is wrong with it. Strict: one
 * document, no anchors, aliases, tags or duplicate keys; ${VAR} in values. libyaml is used nowhere else in conf/.
 */
#ifndef CONF_DOC_H
#define CONF_DOC_H

#include "conf/conf.h"

enum { DOC_BYTES_MAX = 256 * 1024, DOC_DEPTH_MAX = 8, DOC_KEYS_MAX = 4096 };

enum doc_kind { DOC_TEXT, DOC_LIST, DOC_MAP };

/* In the source's arena, as are its texts, which end with a NUL that does not count. */
struct doc_node {
    enum doc_kind kind;
    unsigned line, col;         /* of the value, from 1; 0: no place of its own */
    unsigned key_line, key_col; /* of the key, in a map */
    bool quoted;
    struct str key, text;
    size_t n; /* of children */
    struct doc_node *first, *last, *next;
};

/* Where a document comes from and where its errors go. */
struct source {
    const char *file;
    struct arena *arena;
    struct conf_errors *errors;
};

/* An empty document is an empty map. NULL: no tree worth walking; errors have been listed either way. */
struct doc_node *doc_parse(const struct source *s, struct str yaml) MUST_CHECK;
/* One more line, "file:line:col: text"; without the place if line is 0. */
void doc_error(const struct source *s, unsigned line, unsigned col, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* The value of "name" or "section.name" in a document of options. NULL: not given. */
const struct doc_node *doc_find(const struct doc_node *root, struct str name);
/* No value at all: `key:`, `key: ~`, `key: null`. */
bool doc_is_null(const struct doc_node *n);

#endif
