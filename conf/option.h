/* The table of options: find one by its name, set it from a node of the configuration, write its value as text. */
#ifndef CONF_OPTION_H
#define CONF_OPTION_H

#include "conf/doc.h"

enum option_kind {
    OPTION_LISTEN,   /* one listener, or a list of them */
    OPTION_ADMIN,    /* an address, or off */
    OPTION_TEXT,     /* not empty */
    OPTION_STORE,    /* "sqlite:"; has a twin NAME_file */
    OPTION_PREFIXES, /* list of paths */
    OPTION_HEADERS,  /* list of header names, kept in lower case */
    OPTION_NETWORKS, /* list of CIDRs */
    OPTION_WINDOW,   /* a duration in ns, or off: -1 */
    OPTION_DAYS,
    OPTION_DAYS_OFF,  /* days, or off: 0 */
    OPTION_DAY_MAP,   /* name: days */
    OPTION_OVERRIDES, /* project: options of its own */
    OPTION_SIZE,
    OPTION_COUNT,
    OPTION_TIME, /* a duration in ms */
    OPTION_ROLES,
    OPTION_MAY,
    OPTION_MIGRATE,
    OPTION_FORMAT,
    OPTION_LEVEL,
    OPTION_PROJECT /* empty: none */
};

struct option {
    struct str name; /* "limits.body" */
    enum option_kind kind;
    size_t field, width, count; /* offsets into struct conf, and the field's size */
    const char *text;           /* the default, as YAML */
    int64_t least, most;
    bool restart; /* a new value takes effect at the next start */
    const char *help;
};

/* A word and what it stands for; a list ends with a NULL. */
struct option_word {
    const char *text;
    uint64_t value;
};

size_t option_count(void);
const struct option *option_at(size_t i);
const struct option *option_find(struct str name); /* NULL: none */
/* Whether options begin with `name` and a dot. */
bool option_is_section(struct str name);
/* The option whose twin `name` is ("samples" for "samples_file"), NULL: none. */
const struct option *option_of_file(struct str name);

/* Replaces the value in c; strings live in the source's arena. What is wrong is listed, and c keeps what it had. */
void option_set(const struct source *s, struct conf *c, const struct option *o, const struct doc_node *n);
/* What `off` for its whole section means to this option. */
void option_set_off(struct conf *c, const struct option *o);
/* The value as one line of YAML; reading it gives an equal value. */
void option_text(const struct conf *c, const struct option *o, struct buf *out);

/* The words that a kind knows. */
const struct option_word *option_words(enum option_kind kind);
/* A SIZE, COUNT or TIME as it is written. */
void option_number_text(struct buf *b, enum option_kind kind, uint64_t v);

/* A letter, a digit, '.', '_' or '-'. */
bool option_is_word_char(char c);
/* A project's name: 1 to 100 bytes of printable UTF-8, no '/', no white space around it. */
bool option_is_project(struct str s);

#endif
