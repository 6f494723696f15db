/* X-Forwarded-For, from its right end as far as it can be believed. */
#include "gateway/forwarded.h"

/* Cuts the part behind the last comma off *list. */
static struct str last_hop(struct str *list)
{
    const char *comma = list->len ? memrchr(list->p, ',', list->len) : NULL;
    size_t at = comma ? (size_t)(comma - list->p) + 1 : 0;
    struct str hop = {list->p + at, list->len - at};

    list->len = comma ? at - 1 : 0;
    return str_trim(hop);
}

/* Goes left in one line of the header. false: that was the last word. */
static bool walk(const struct conf *c, struct str list, struct address *client)
{
    bool more = true;

    while (more) {
        struct address hop;
        more = list.len && memchr(list.p, ',', list.len);
        if (!address_parse(&hop, last_hop(&list)))
            return false;
        *client = hop;
        if (!conf_trusts(c, hop.ip))
            return false;
    }
    return true;
}

void forwarded_client(const struct conf *c, const struct head *h, const struct address *peer, struct address *client)
{
    *client = *peer;
    if (!conf_trusts(c, peer->ip))
        return;
    for (uint32_t i = h->n_headers; i-- > 0;)
        if (str_eq_nocase(h->headers[i].name, STR("x-forwarded-for")) && !walk(c, h->headers[i].value, client))
            return;
}
