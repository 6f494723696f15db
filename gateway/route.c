/* Routes: the table, with and without each prefix of the configuration. */
#include "gateway/route.h"

const char *const route_names[ROUTES] = {
#define X(id, name, method, path, who, where) name,
    ROUTE_MAP(X)
#undef X
};

static const struct {
    const char *method, *path;
    enum route_who who;
    enum route_where where;
} table[ROUTES] = {
#define X(id, name, method, path, who, where) {method, path, ROUTE_##who, ROUTE_##where},
    ROUTE_MAP(X)
#undef X
};

static bool matches(const char *pattern, struct str path, struct str *rest)
{
    struct str p = str_of(pattern);

    *rest = (struct str){NULL, 0};
    if (p.len == 0 || p.p[p.len - 1] != '*')
        return p.len && str_eq(p, path);
    p.len--;
    if (!str_starts(path, p))
        return false;
    *rest = (struct str){path.p + p.len, path.len - p.len};
    return true;
}

static bool find(enum route_where listener, struct str path, struct routed *out)
{
    for (int r = 0; r < ROUTE_NONE; r++) {
        if (!(table[r].where & listener) || !matches(table[r].path, path, &out->rest))
            continue;
        out->route = (enum route)r;
        out->who = table[r].who;
        return true;
    }
    return false;
}

/* The path without a prefix that ends where a segment does. "/p" alone is "/". */
static bool strip(const char *prefix, struct str *path)
{
    struct str p = str_of(prefix);

    if (p.len == 0 || !str_starts(*path, p))
        return false;
    struct str rest = {path->p + p.len, path->len - p.len};
    if (rest.len && rest.p[0] != '/')
        return false;
    *path = rest.len ? rest : STR("/");
    return true;
}

enum err route_find(const struct conf *c, enum route_where listener, struct str method, struct str path,
                    struct routed *out, struct fault *f)
{
    *out = (struct routed){.route = ROUTE_NONE, .who = ROUTE_OPEN};
    bool found = find(listener, path, out);
    for (size_t i = 0; !found && i < c->n_prefixes; i++) {
        struct str rest = path;
        found = strip(c->prefixes[i], &rest) && find(listener, rest, out);
    }
    if (!found)
        return fault_set(f, E_NO_ROUTE, "no such path; profiles go to POST /ingest or /push.v1.PusherService/Push");
    const char *want = table[out->route].method;
    bool get = str_eq(str_of(want), STR("GET"));
    if (str_eq(method, str_of(want)) || (get && str_eq(method, STR("HEAD"))))
        return E_OK;
    out->allow = get ? "GET, HEAD" : want;
    return fault_set(f, E_BAD_METHOD, "this path takes %s only", out->allow);
}
