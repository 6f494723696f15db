/* Addresses of peers: one form for both families, so that the same client is the same through either. */
#include "gateway/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

void address_of_v4(struct address *a, const uint8_t ip[4], uint16_t port)
{
    memcpy(a->ip, mapped, sizeof mapped);
    memcpy(a->ip + 12, ip, 4);
    a->port = port;
}

void address_of_socket(struct address *a, const struct sockaddr *s)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    *a = (struct address){0};
    if (s->sa_family == AF_INET) {
        memcpy(&v4, s, sizeof v4);
        address_of_v4(a, (const uint8_t *)&v4.sin_addr, ntohs(v4.sin_port));
    } else if (s->sa_family == AF_INET6) {
        memcpy(&v6, s, sizeof v6);
        memcpy(a->ip, &v6.sin6_addr, sizeof a->ip);
        a->port = ntohs(v6.sin6_port);
    }
}

bool address_port(struct str s, uint16_t *port)
{
    uint32_t n = 0;

    if (s.len == 0 || s.len > 5 || (s.len > 1 && s.p[0] == '0'))
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        n = n * 10 + (uint32_t)(s.p[i] - '0');
    }
    *port = (uint16_t)n;
    return n <= 65535;
}

static bool parse_ip(struct str s, struct address *a)
{
    char text[INET6_ADDRSTRLEN];
    uint8_t v4[4];

    if (s.len == 0 || s.len >= sizeof text || memchr(s.p, '\0', s.len))
        return false;
    memcpy(text, s.p, s.len);
    text[s.len] = '\0';
    if (memchr(s.p, ':', s.len))
        return inet_pton(AF_INET6, text, a->ip) == 1;
    if (inet_pton(AF_INET, text, v4) != 1)
        return false;
    address_of_v4(a, v4, a->port);
    return true;
}

/* "[v6]", "[v6]:port" */
static bool parse_brackets(struct address *a, struct str s)
{
    const char *close = memchr(s.p, ']', s.len);
    size_t n = close ? (size_t)(close - s.p) : 0;

    if (!close || !memchr(s.p, ':', n))
        return false;
    struct str rest = {close + 1, s.len - n - 1};
    if (rest.len && (rest.p[0] != ':' || !address_port((struct str){rest.p + 1, rest.len - 1}, &a->port)))
        return false;
    return parse_ip((struct str){s.p + 1, n - 1}, a);
}

bool address_parse(struct address *a, struct str s)
{
    *a = (struct address){0};
    if (s.len == 0)
        return false;
    if (s.p[0] == '[')
        return parse_brackets(a, s);
    const char *colon = memchr(s.p, ':', s.len);
    if (colon && !memchr(colon + 1, ':', (size_t)(s.p + s.len - colon - 1))) {
        size_t n = (size_t)(colon - s.p);
        return address_port((struct str){colon + 1, s.len - n - 1}, &a->port) && parse_ip((struct str){s.p, n}, a);
    }
    return parse_ip(s, a);
}

const char *address_text(const struct address *a, char out[ADDRESS_TEXT])
{
    bool v4 = memcmp(a->ip, mapped, sizeof mapped) == 0;

    if (!inet_ntop(v4 ? AF_INET : AF_INET6, a->ip + (v4 ? 12 : 0), out, ADDRESS_TEXT))
        out[0] = '\0';
    return out;
}
