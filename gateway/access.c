/* Who sends a request, and whether it may. */
#include "gateway/access.h"

#include <stdlib.h>

static const unsigned may[KEY_TYPES] = {
    [KEY_SERVER] = 1u << ROUTE_SEND | 1u << ROUTE_KEY | 1u << ROUTE_LEDGER,
    [KEY_BROWSER] = 1u << ROUTE_KEY,
    [KEY_READER] = 1u << ROUTE_READ | 1u << ROUTE_KEY | 1u << ROUTE_LEDGER,
    [KEY_ADMIN] = 1u << ROUTE_READ | 1u << ROUTE_KEY | 1u << ROUTE_LEDGER,
};

/* In the order in which they count: token headers, bearers, basic. */
static void collect(struct credentials *out, const struct conf *c, const struct head *h)
{
    const struct header *x;

    for (size_t i = 0; i < c->n_token_headers; i++)
        for (uint32_t from = 0; (x = head_next(h, str_of(c->token_headers[i]), &from));)
            credentials_token(out, x->value);
    for (int basic = 0; basic < 2; basic++) {
        for (uint32_t from = 0; (x = head_next(h, STR("authorization"), &from));) {
            struct str scheme = {x->value.p, x->value.len < 6 ? x->value.len : 6};
            if (str_eq_nocase(scheme, STR("bearer")) == (basic == 0))
                credentials_authorization(out, x->value);
        }
    }
}

static enum err copy(struct access *a, const char *project, const char *name, struct fault *f)
{
    a->project = strdup(project);
    a->name = strdup(name);
    if (a->project && a->name)
        return E_OK;
    access_free(a);
    return fault_set(f, E_NO_MEMORY, NULL);
}

static enum err anonymous(struct access *a, const struct conf *c, enum route_who who, struct fault *f)
{
    unsigned need = who == ROUTE_SEND ? MAY_SEND : who == ROUTE_READ || who == ROUTE_LEDGER ? MAY_READ : 0;

    if (!c->anonymous_project || !*c->anonymous_project || need == 0)
        return fault_set(f, E_UNAUTHENTICATED, "token is missing");
    if (!(c->anonymous_may & need))
        return fault_set(f, E_UNAUTHENTICATED, "token is missing: without one nobody may %s here",
                         who == ROUTE_SEND ? "send" : "read");
    a->anonymous = true;
    return copy(a, c->anonymous_project, "anonymous", f);
}

enum err access_check(struct access *a, const struct conf *c, const struct keyring *keys, const struct head *h,
                      enum route_who who, int64_t now_s, struct fault *f)
{
    struct credentials cr = {.n = 0};

    *a = (struct access){0};
    if (who == ROUTE_OPEN)
        return E_OK;
    collect(&cr, c, h);
    if (cr.n == 0)
        return anonymous(a, c, who, f);
    const struct key *key = NULL;
    for (size_t i = 0; !key && keys && i < cr.n; i++)
        key = keyring_find(keys, cr.secret[i], now_s);
    if (!key)
        return fault_set(f, E_UNAUTHENTICATED, "token is unknown, revoked or expired");
    a->type = key->type;
    a->expires_s = key->expires_s;
    enum err e = copy(a, key->project, key->name, f);
    if (e == E_OK && !(may[key->type] & 1u << who))
        e = fault_set(f, E_FORBIDDEN, "a key of type %s may not %s", key_type_names[key->type],
                      who == ROUTE_SEND ? "send profiles" : "read");
    return e;
}

void access_free(struct access *a)
{
    free(a->project);
    free(a->name);
    a->project = a->name = NULL;
}
