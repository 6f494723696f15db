/* Whose code a frame is: the own-code rules of every language, one table (rules.def), applied when reading.
 * design.md 7. */
#ifndef GATEWAY_QUERY_RULES_H
#define GATEWAY_QUERY_RULES_H

#include "codecs/base.h"

enum language {
    LANG_ANY,
    LANG_GO,
    LANG_PYTHON,
    LANG_NODE,
    LANG_JAVA,
    LANG_RUBY,
    LANG_DOTNET,
    LANG_RUST,
    LANG_NATIVE,
    LANG_COUNT
};
enum owner { OWNER_OWN, OWNER_LIBRARY, OWNER_RUNTIME, OWNER_KERNEL };
enum rule_field { FIELD_FUNCTION, FIELD_FILE, FIELD_MAPPING };
enum rule_how {
    HOW_IS,
    HOW_STARTS,
    HOW_ENDS,
    HOW_CONTAINS,
    HOW_PACKAGE, /* the pattern, then '.' or '/' */
    HOW_LACKS,   /* the opposite of contains */
    HOW_CLASS,   /* begins with the pattern, whose '/' may be a '.' */
};
struct rule {
    enum language language;
    enum rule_field field;
    enum rule_how how;
    struct str pattern;
    enum owner owner;
};
/* The table, in order: the first rule of a frame's language (or of any) that fits decides; none: own code. */
extern const struct rule rules[];
extern const size_t n_rules;

/* What is known of a frame. Folded text has no files: its names may hold one, which contains-rules on files look at
 * too. */
struct place {
    struct str function, file, mapping;
};
/* The language that an agent (pyroscope_spy) is for; LANG_ANY: not known. */
enum language rules_agent_language(struct str spy);
/* By the frame's file; else `fallback`, where that is known; else by what its name looks like. */
enum language rules_language(const struct place *p, enum language fallback);
enum owner rules_owner(const struct place *p, enum language language);

const char *language_name(enum language l);
const char *owner_name(enum owner o);
const char *rule_field_name(enum rule_field f);
const char *rule_how_name(enum rule_how h);

#endif
