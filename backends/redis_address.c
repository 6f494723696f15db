/* Reading the address of a Redis. What is wrong is said without its password. */
#include <stdlib.h>

#include "backends/redis_link.h"

enum { DEFAULT_PORT = 6379, DB_MAX = 1000000 };

/* The part before `sep` (or the last one of them), cut off the front of *rest; *rest stays whole without one. */
static bool cut(struct str *rest, char sep, bool last, struct str *part)
{
    const char *at = rest->len ? (last ? memrchr(rest->p, sep, rest->len) : memchr(rest->p, sep, rest->len)) : NULL;

    if (!at)
        return false;
    *part = (struct str){rest->p, (size_t)(at - rest->p)};
    rest->p += part->len + 1;
    rest->len -= part->len + 1;
    return true;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* With %xx undone; false: too long, or a NUL. */
static bool unescape(struct str s, char *out, size_t cap)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        if (c == '%' && i + 2 < s.len && hex(s.p[i + 1]) >= 0 && hex(s.p[i + 2]) >= 0) {
            c = (char)(hex(s.p[i + 1]) << 4 | hex(s.p[i + 2]));
            i += 2;
        }
        if (c == '\0' || n + 1 >= cap)
            return false;
        out[n++] = c;
    }
    out[n] = '\0';
    return true;
}

static bool parse_number(struct str s, uint32_t most, uint32_t *out)
{
    uint32_t n = 0;

    for (size_t i = 0; i < s.len; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || n > most)
            return false;
        n = n * 10 + (uint32_t)(s.p[i] - '0');
    }
    *out = n;
    return s.len && n <= most;
}

static enum err wrong(struct fault *f, const char *what)
{
    return fault_set(f, E_BAD_INPUT, "redis: %s", what);
}

static bool parse_login(struct redis_address *a, struct str login)
{
    struct str user;

    if (!cut(&login, ':', false, &user)) /* a password alone, as some write it */
        return unescape(login, a->password, sizeof a->password);
    return unescape(user, a->user, sizeof a->user) && unescape(login, a->password, sizeof a->password);
}

/* host, host:port, [v6], [v6]:port */
static enum err parse_place(struct redis_address *a, struct str place, struct fault *f)
{
    struct str host = place, port = {0};
    uint32_t n = DEFAULT_PORT;

    if (place.len && place.p[0] == '[') {
        place.p++;
        place.len--;
        if (!cut(&place, ']', false, &host) || (place.len && place.p[0] != ':'))
            return wrong(f, "the host is not closed by ]");
        if (place.len)
            port = (struct str){place.p + 1, place.len - 1};
    } else if (cut(&place, ':', false, &host)) {
        port = place;
    }
    if (port.p && (!parse_number(port, UINT16_MAX, &n) || n == 0))
        return wrong(f, "the port is not a number from 1 to 65535");
    if (!host.len)
        return wrong(f, "names no host");
    a->port = (uint16_t)n;
    return unescape(host, a->host, sizeof a->host) ? E_OK : wrong(f, "the host is too long");
}

static enum err parse_db(struct redis_address *a, struct str db, struct fault *f)
{
    if (db.len && !parse_number(db, DB_MAX, &a->db))
        return wrong(f, "the database behind / is not a number");
    return E_OK;
}

enum err redis_address_parse(struct redis_address *a, struct str rest, struct fault *f)
{
    struct str login, place;

    *a = (struct redis_address){0};
    if (!str_starts(rest, STR("//")))
        return wrong(f, "the address is redis://[user:password@]host[:port][/db]");
    rest.p += 2;
    rest.len -= 2;
    if (memchr(rest.p, '?', rest.len) || memchr(rest.p, '#', rest.len))
        return wrong(f, "the address takes no parameters (a ? or # in a password is written %3F, %23)");
    if (cut(&rest, '@', true, &login) && !parse_login(a, login))
        return wrong(f, "the user or the password is too long");
    if (rest.len && rest.p[0] == '/') { /* a socket */
        a->port = DEFAULT_PORT;
        return unescape(rest, a->host, sizeof a->host) ? E_OK : wrong(f, "the path is too long");
    }
    if (!cut(&rest, '/', false, &place)) {
        place = rest;
        rest = (struct str){0};
    }
    enum err e = parse_place(a, place, f);
    return e ? e : parse_db(a, rest, f);
}
