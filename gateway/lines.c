/*
 * Line ends, folding, and the form of the request line: METHOD SP TARGET SP HTTP/x.y CR LF with single spaces. Lines
 * end in CR LF, and none is continued on the next.
 */
#include "gateway/lines.h"

enum { BEFORE, METHOD, TARGET, PROTOCOL, FIELDS };

void lines_head(struct lines *l)
{
    *l = (struct lines){.where = BEFORE};
}

void lines_trailers(struct lines *l)
{
    *l = (struct lines){.where = FIELDS, .last = '\n'};
}

static const char *protocol_byte(struct lines *l, char c)
{
    static const char name[] = {'H', 'T', 'T', 'P', '/'};

    if (c == ' ')
        return "a space too many in the request line";
    if (l->matched < sizeof name && c != name[l->matched++])
        return "the protocol is not HTTP";
    return NULL;
}

static const char *request_line_byte(struct lines *l, char c)
{
    switch (l->where) {
    case BEFORE:
        l->where = c == '\r' || c == '\n' ? BEFORE : METHOD;
        return NULL;
    case METHOD:
        l->where = c == ' ' ? TARGET : METHOD;
        return NULL;
    case TARGET:
        if (c == ' ' && l->last == ' ')
            return "a space too many in the request line";
        l->where = c == ' ' ? PROTOCOL : c == '\n' ? FIELDS : TARGET; /* without a protocol: HTTP/0.9 */
        return NULL;
    default:
        if (c == '\n')
            l->where = FIELDS;
        return c == '\r' || c == '\n' ? NULL : protocol_byte(l, c);
    }
}

/* What a line may not begin with. */
static const char *start_wrong(char c)
{
    if (c == ' ' || c == '\t')
        return "a folded line";
    return c == ':' ? "a header without a name" : NULL;
}

static const char *ends(const struct lines *l, const char *p, size_t n)
{
    const char *wrong = n && l->where == FIELDS && l->last == '\n' ? start_wrong(p[0]) : NULL;

    if (wrong)
        return wrong;
    for (const char *lf = p, *end = p + n; lf < end && (lf = memchr(lf, '\n', (size_t)(end - lf))); lf++) {
        if ((lf > p ? lf[-1] : l->last) != '\r')
            return "a line ends in a bare LF";
        wrong = lf + 1 < end ? start_wrong(lf[1]) : NULL;
        if (wrong)
            return wrong;
    }
    return NULL;
}

const char *lines_wrong(struct lines *l, const char *p, size_t n)
{
    const char *wrong = NULL;

    for (; !wrong && n && l->where != FIELDS; p++, n--) {
        wrong = ends(l, p, 1);
        if (!wrong)
            wrong = request_line_byte(l, *p);
        l->last = *p;
    }
    if (wrong || n == 0)
        return wrong;
    wrong = ends(l, p, n);
    l->last = p[n - 1];
    return wrong;
}

bool lines_begun(const struct lines *l)
{
    return l->where != BEFORE;
}
