/* Applies the own-code rules: finds a frame's language, then the first rule of it that fits. */
#include "gateway/query/rules.h"

#define RULE(language, field, how, pattern, owner)                                                                     \
    {LANG_##language, FIELD_##field, HOW_##how, {(pattern), sizeof(pattern) - 1}, OWNER_##owner},
const struct rule rules[] = {
#include "gateway/query/rules.def"
};
#undef RULE
const size_t n_rules = COUNTOF(rules);

const char *language_name(enum language l)
{
    static const char *const names[LANG_COUNT] = {"any",  "go",     "python", "node",  "java",
                                                  "ruby", "dotnet", "rust",   "native"};
    return names[l];
}

const char *owner_name(enum owner o)
{
    static const char *const names[] = {"own", "library", "runtime", "kernel"};
    return names[o];
}

const char *rule_field_name(enum rule_field f)
{
    static const char *const names[] = {"function", "file", "mapping"};
    return names[f];
}

const char *rule_how_name(enum rule_how h)
{
    static const char *const names[] = {"is", "starts", "ends", "contains", "package", "lacks", "class"};
    return names[h];
}

static bool contains(struct str s, struct str part)
{
    return part.len <= s.len && memmem(s.p, s.len, part.p, part.len) != NULL;
}

/* How a language shows: by the end of its files, by what names begin with or hold. */
enum sign_kind { SIGN_FILE_ENDS, SIGN_FILE_STARTS, SIGN_NAME_STARTS, SIGN_NAME_HOLDS };
static const struct {
    enum sign_kind kind;
    const char *text;
    enum language language;
} signs[] = {
    {SIGN_FILE_ENDS, ".go", LANG_GO},
    {SIGN_FILE_ENDS, ".py", LANG_PYTHON},
    {SIGN_FILE_STARTS, "<frozen ", LANG_PYTHON},
    {SIGN_FILE_ENDS, ".js", LANG_NODE},
    {SIGN_FILE_ENDS, ".mjs", LANG_NODE},
    {SIGN_FILE_ENDS, ".cjs", LANG_NODE},
    {SIGN_FILE_ENDS, ".ts", LANG_NODE},
    {SIGN_FILE_ENDS, ".tsx", LANG_NODE},
    {SIGN_FILE_ENDS, ".jsx", LANG_NODE},
    {SIGN_FILE_STARTS, "node:", LANG_NODE},
    {SIGN_FILE_ENDS, ".java", LANG_JAVA},
    {SIGN_FILE_ENDS, ".kt", LANG_JAVA},
    {SIGN_FILE_ENDS, ".scala", LANG_JAVA},
    {SIGN_FILE_ENDS, ".rb", LANG_RUBY},
    {SIGN_FILE_STARTS, "<internal:", LANG_RUBY},
    {SIGN_FILE_ENDS, ".cs", LANG_DOTNET},
    {SIGN_FILE_ENDS, ".dll", LANG_DOTNET},
    {SIGN_FILE_ENDS, ".rs", LANG_RUST},
    {SIGN_FILE_ENDS, ".c", LANG_NATIVE},
    {SIGN_FILE_ENDS, ".cc", LANG_NATIVE},
    {SIGN_FILE_ENDS, ".cpp", LANG_NATIVE},
    {SIGN_FILE_ENDS, ".h", LANG_NATIVE},
    {SIGN_FILE_ENDS, ".s", LANG_GO},
    {SIGN_FILE_ENDS, ".S", LANG_NATIVE},
    {SIGN_NAME_STARTS, "node:", LANG_NODE},
    {SIGN_NAME_HOLDS, "node_modules/", LANG_NODE},
    {SIGN_NAME_HOLDS, ".js:", LANG_NODE},
    {SIGN_NAME_HOLDS, ".py:", LANG_PYTHON},
    {SIGN_NAME_HOLDS, ".py)", LANG_PYTHON},
    {SIGN_NAME_HOLDS, "(<frozen ", LANG_PYTHON},
    {SIGN_NAME_HOLDS, ".rb:", LANG_RUBY},
    {SIGN_NAME_STARTS, "java/", LANG_JAVA},
    {SIGN_NAME_STARTS, "java.", LANG_JAVA},
    {SIGN_NAME_STARTS, "jdk/", LANG_JAVA},
    {SIGN_NAME_STARTS, "System.", LANG_DOTNET},
    {SIGN_NAME_STARTS, "Microsoft.", LANG_DOTNET},
    {SIGN_NAME_STARTS, "core::", LANG_RUST},
    {SIGN_NAME_STARTS, "alloc::", LANG_RUST},
    {SIGN_NAME_STARTS, "tokio::", LANG_RUST},
    {SIGN_NAME_STARTS, "std::rt::", LANG_RUST},
    {SIGN_NAME_STARTS, "<core::", LANG_RUST},
    {SIGN_NAME_STARTS, "<alloc::", LANG_RUST},
    {SIGN_NAME_STARTS, "std::", LANG_NATIVE},
    {SIGN_NAME_STARTS, "runtime.", LANG_GO},
    {SIGN_NAME_STARTS, "runtime/", LANG_GO},
    {SIGN_NAME_HOLDS, ".(*", LANG_GO},
    {SIGN_NAME_STARTS, "testing.", LANG_GO},
    {SIGN_NAME_STARTS, "net/http.", LANG_GO},
    {SIGN_NAME_STARTS, "encoding/", LANG_GO},
    {SIGN_NAME_STARTS, "(garbage collector)", LANG_NODE},
    {SIGN_NAME_STARTS, "(program)", LANG_NODE},
    {SIGN_NAME_STARTS, "(idle)", LANG_NODE},
};

static const struct {
    const char *spy;
    enum language language;
} agents[] = {
    {"gospy", LANG_GO},     {"pyspy", LANG_PYTHON},     {"pyroscope-python", LANG_PYTHON},
    {"nodespy", LANG_NODE}, {"javaspy", LANG_JAVA},     {"alloy.java", LANG_JAVA},
    {"rbspy", LANG_RUBY},   {"dotnetspy", LANG_DOTNET}, {"pyroscope-rs", LANG_RUST},
};

enum language rules_agent_language(struct str spy)
{
    for (size_t i = 0; i < COUNTOF(agents); i++)
        if (str_eq(spy, str_of(agents[i].spy)))
            return agents[i].language;
    return LANG_ANY;
}

static bool shows(enum sign_kind kind, struct str text, const struct place *p)
{
    switch (kind) {
    case SIGN_FILE_ENDS:
        return str_ends(p->file, text);
    case SIGN_FILE_STARTS:
        return str_starts(p->file, text);
    case SIGN_NAME_STARTS:
        return str_starts(p->function, text);
    case SIGN_NAME_HOLDS:
        return contains(p->function, text);
    }
    return false;
}

enum language rules_language(const struct place *p, enum language fallback)
{
    for (size_t i = 0; i < COUNTOF(signs); i++) {
        bool by_name = signs[i].kind == SIGN_NAME_STARTS || signs[i].kind == SIGN_NAME_HOLDS;
        if (by_name && fallback != LANG_ANY)
            return fallback;
        if (shows(signs[i].kind, str_of(signs[i].text), p))
            return signs[i].language;
    }
    return fallback;
}

static bool class_starts(struct str s, struct str pattern)
{
    if (s.len < pattern.len)
        return false;
    for (size_t i = 0; i < pattern.len; i++)
        if (s.p[i] != pattern.p[i] && !(pattern.p[i] == '/' && s.p[i] == '.'))
            return false;
    return true;
}

static bool fits_text(enum rule_how how, struct str s, struct str pattern)
{
    switch (how) {
    case HOW_IS:
        return str_eq(s, pattern);
    case HOW_STARTS:
        return str_starts(s, pattern);
    case HOW_ENDS:
        return str_ends(s, pattern);
    case HOW_CONTAINS:
        return contains(s, pattern);
    case HOW_LACKS:
        return !contains(s, pattern);
    case HOW_PACKAGE:
        return s.len > pattern.len && str_starts(s, pattern) && (s.p[pattern.len] == '.' || s.p[pattern.len] == '/');
    case HOW_CLASS:
        return class_starts(s, pattern);
    }
    return false;
}

static bool fits(const struct rule *r, const struct place *p)
{
    switch (r->field) {
    case FIELD_FUNCTION:
        return fits_text(r->how, p->function, r->pattern);
    case FIELD_FILE:
        return fits_text(r->how, p->file, r->pattern) ||
               (r->how == HOW_CONTAINS && fits_text(r->how, p->function, r->pattern));
    case FIELD_MAPPING:
        return fits_text(r->how, p->mapping, r->pattern);
    }
    return false;
}

enum owner rules_owner(const struct place *p, enum language language)
{
    for (size_t i = 0; i < n_rules; i++)
        if ((rules[i].language == LANG_ANY || rules[i].language == language) && fits(&rules[i], p))
            return rules[i].owner;
    return OWNER_OWN;
}
