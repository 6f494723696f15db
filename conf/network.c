/* Networks: text to prefix and back, and whether an address lies in one. IPv4 is ::ffff:a.b.c.d, 96 bits further on. */
#include "conf/network.h"

#include <arpa/inet.h>

#include "conf/value.h"

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static bool parse_ip(struct str s, uint8_t ip[16], bool *v4)
{
    char text[INET6_ADDRSTRLEN];

    if (s.len == 0 || s.len >= sizeof text || memchr(s.p, '\0', s.len))
        return false;
    memcpy(text, s.p, s.len);
    text[s.len] = '\0';
    *v4 = memchr(s.p, ':', s.len) == NULL;
    if (!*v4)
        return inet_pton(AF_INET6, text, ip) == 1;
    memcpy(ip, mapped, sizeof mapped);
    return inet_pton(AF_INET, text, ip + 12) == 1;
}

/* The first `bits` of the address alone. */
static void cut(uint8_t ip[16], unsigned bits)
{
    for (unsigned i = 0; i < 16; i++) {
        unsigned keep = bits > 8 * i ? bits - 8 * i : 0;
        if (keep < 8)
            ip[i] &= (uint8_t)(0xff00u >> keep);
    }
}

bool network_parse(struct str s, struct conf_network *out)
{
    const char *slash = s.len ? memchr(s.p, '/', s.len) : NULL;
    struct str ip = {s.p, slash ? (size_t)(slash - s.p) : s.len};
    uint8_t kept[16];
    uint64_t bits;
    bool v4;

    if (!parse_ip(ip, out->base, &v4))
        return false;
    unsigned most = v4 ? 32 : 128;
    bits = most;
    if (slash && (value_count((struct str){slash + 1, s.len - ip.len - 1}, &bits) != VALUE_OK || bits > most))
        return false;
    out->bits = (uint8_t)(bits + 128 - most);
    memcpy(kept, out->base, sizeof kept);
    cut(kept, out->bits);
    return memcmp(kept, out->base, sizeof kept) == 0;
}

static bool network_has(const struct conf_network *n, const uint8_t ip[16])
{
    uint8_t kept[16];

    memcpy(kept, ip, sizeof kept);
    cut(kept, n->bits);
    return memcmp(kept, n->base, sizeof kept) == 0;
}

void network_text(struct buf *b, const struct conf_network *n)
{
    char text[INET6_ADDRSTRLEN] = "";
    bool v4 = n->bits >= 96 && memcmp(n->base, mapped, sizeof mapped) == 0;

    inet_ntop(v4 ? AF_INET : AF_INET6, n->base + (v4 ? 12 : 0), text, sizeof text);
    buf_printf(b, "%s/%u", text, v4 ? n->bits - 96u : n->bits);
}

bool conf_trusts(const struct conf *c, const uint8_t ip[16])
{
    for (size_t i = 0; i < c->n_trusted_proxies; i++)
        if (network_has(&c->trusted_proxies[i], ip))
            return true;
    return false;
}
