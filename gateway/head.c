/* Looking things up in the head of a request. */
#include "gateway/head.h"

#include <stdlib.h>

const struct header *head_next(const struct head *h, struct str name, uint32_t *from)
{
    while (*from < h->n_headers) {
        const struct header *x = &h->headers[(*from)++];
        if (str_eq_nocase(x->name, name))
            return x;
    }
    return NULL;
}

struct str head_get(const struct head *h, struct str name)
{
    uint32_t from = 0;
    const struct header *x = head_next(h, name, &from);

    return x ? x->value : (struct str){NULL, 0};
}

/* Cuts the part before `sep` off the front of *rest. */
static struct str cut(struct str *rest, char sep)
{
    const char *at = rest->len ? memchr(rest->p, sep, rest->len) : NULL;
    struct str s = {rest->p, at ? (size_t)(at - rest->p) : rest->len};

    rest->p += s.len + (at != NULL);
    rest->len -= s.len + (at != NULL);
    return str_trim(s);
}

/* ";q=0", ";q=0.00": said to be unwanted. */
static bool refused(struct str parameters)
{
    while (parameters.len) {
        struct str p = cut(&parameters, ';');
        if (p.len < 3 || (p.p[0] != 'q' && p.p[0] != 'Q') || p.p[1] != '=')
            continue;
        for (size_t i = 2; i < p.len; i++)
            if (p.p[i] != '0' && p.p[i] != '.')
                return false;
        return true;
    }
    return false;
}

bool head_lists(const struct head *h, struct str name, struct str token)
{
    uint32_t from = 0;
    const struct header *x;

    while ((x = head_next(h, name, &from))) {
        struct str rest = x->value;
        while (rest.len) {
            struct str item = cut(&rest, ',');
            if (str_eq_nocase(cut(&item, ';'), token))
                return !refused(item);
        }
    }
    return false;
}

static bool has_upper(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] >= 'A' && s.p[i] <= 'Z')
            return true;
    return false;
}

bool head_relayed(const struct head *h)
{
    static const char *const of_proxies[] = {"x-forwarded-for", "forwarded", "via", "x-real-ip"};
    bool upper = false;

    for (size_t i = 0; i < sizeof of_proxies / sizeof *of_proxies; i++) {
        uint32_t from = 0;
        if (head_next(h, str_of(of_proxies[i]), &from))
            return true;
    }
    for (uint32_t i = 0; i < h->n_headers; i++)
        upper |= has_upper(h->headers[i].name);
    return !upper && h->n_headers > 0;
}

void head_free(struct head *h)
{
    free(h);
}
