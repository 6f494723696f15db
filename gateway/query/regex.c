/* PCRE2 behind slices. Everything is anchored at both ends, and a pattern that backtracks without end is an error, not
 * a hang. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "gateway/query/regex.h"

#include <pcre2.h>
#include <stdlib.h>

enum { MATCH_LIMIT = 100000, DEPTH_LIMIT = 1000, HEAP_LIMIT_KIB = 4096, PATTERN_MAX = 4096 };

struct regex {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
};

void regex_free(struct regex *r)
{
    if (!r)
        return;
    pcre2_match_data_free(r->data);
    pcre2_match_context_free(r->context);
    pcre2_code_free(r->code);
    free(r);
}

static enum err compile(struct regex *r, struct str pattern, struct fault *f)
{
    const uint32_t options =
        PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_UTF | PCRE2_DOTALL | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY;
    int code;
    PCRE2_SIZE at;
    if (pattern.len > PATTERN_MAX)
        return fault_set(f, E_BAD_REQUEST, "a regular expression is longer than %d bytes", PATTERN_MAX);
    r->code = pcre2_compile((PCRE2_SPTR)(pattern.len ? pattern.p : ""), pattern.len, options, &code, &at, NULL);
    if (r->code)
        return E_OK;
    char text[120] = "";
    pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof(text));
    return fault_set(f, E_BAD_REQUEST, "regular expression, byte %zu: %s", (size_t)at, text);
}

struct regex *regex_new(struct str pattern, struct fault *f)
{
    struct regex *r = calloc(1, sizeof(*r));
    if (!r) {
        (void)fault_set(f, E_NO_MEMORY, NULL);
        return NULL;
    }
    if (compile(r, pattern, f) != E_OK) {
        regex_free(r);
        return NULL;
    }
    r->data = pcre2_match_data_create_from_pattern(r->code, NULL);
    r->context = pcre2_match_context_create(NULL);
    if (!r->data || !r->context) {
        (void)fault_set(f, E_NO_MEMORY, NULL);
        regex_free(r);
        return NULL;
    }
    pcre2_set_match_limit(r->context, MATCH_LIMIT);
    pcre2_set_depth_limit(r->context, DEPTH_LIMIT);
    pcre2_set_heap_limit(r->context, HEAP_LIMIT_KIB);
    return r;
}

enum err regex_match(struct regex *r, struct str text, bool *matches, struct fault *f)
{
    int n = pcre2_match(r->code, (PCRE2_SPTR)(text.len ? text.p : ""), text.len, 0, 0, r->data, r->context);
    *matches = n >= 0;
    if (n >= 0 || n == PCRE2_ERROR_NOMATCH)
        return E_OK;
    if (n == PCRE2_ERROR_NOMEMORY)
        return fault_set(f, E_NO_MEMORY, NULL);
    if (n == PCRE2_ERROR_MATCHLIMIT || n == PCRE2_ERROR_DEPTHLIMIT || n == PCRE2_ERROR_HEAPLIMIT)
        return fault_set(f, E_BAD_REQUEST, "parameter \"match\": a regular expression needs too much work");
    return E_OK; /* a value that is not UTF-8 matches nothing */
}
