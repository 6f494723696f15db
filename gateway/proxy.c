/* The PROXY protocol: version 1, a line of text; version 2, sixteen bytes, addresses, and TLVs that are read over. */
#include "gateway/proxy.h"

enum { V1_MAX = 107, V2_FIXED = 16, V2_ADDRESSES_MAX = 36 };

static const uint8_t signature[12] = {'\r', '\n', '\r', '\n', 0, '\r', '\n', 'Q', 'U', 'I', 'T', '\n'};
static const char v1_start[6] = {'P', 'R', 'O', 'X', 'Y', ' '};

/* Cuts the part before the next space off *rest. */
static struct str word(struct str *rest)
{
    const char *space = rest->len ? memchr(rest->p, ' ', rest->len) : NULL;
    struct str s = {rest->p, space ? (size_t)(space - rest->p) : rest->len};

    rest->p += s.len + (space != NULL);
    rest->len -= s.len + (space != NULL);
    return s;
}

/* An address of the family that the line names, without port or brackets. */
static bool ip(struct str s, bool v6, struct address *out)
{
    bool colon = s.len && memchr(s.p, ':', s.len) != NULL;

    return s.len && s.p[0] != '[' && colon == v6 && address_parse(out, s) && out->port == 0;
}

/* The line without its end. */
static enum proxy_step read_v1(struct proxy *x, struct str line)
{
    struct address to;
    uint16_t from_port, to_port;

    word(&line);
    struct str family = word(&line);
    if (str_eq(family, STR("UNKNOWN")))
        return PROXY_DONE; /* what follows is to be ignored */
    bool v6 = str_eq(family, STR("TCP6"));
    if (!v6 && !str_eq(family, STR("TCP4")))
        return PROXY_BAD;
    bool good = ip(word(&line), v6, &x->source) && ip(word(&line), v6, &to) && address_port(word(&line), &from_port);
    if (!good || line.len == 0 || !address_port(line, &to_port))
        return PROXY_BAD;
    x->source.port = from_port;
    x->has_source = true;
    return PROXY_DONE;
}

static enum proxy_step feed_v1(struct proxy *x, const char *p, size_t n, size_t *used)
{
    for (; *used < n && x->n < V1_MAX; (*used)++) {
        uint8_t before = x->head[x->n - 1], c = (uint8_t)p[*used];
        x->head[x->n++] = c;
        if (c == '\n') {
            (*used)++;
            return before == '\r' ? read_v1(x, (struct str){(const char *)x->head, x->n - 2u}) : PROXY_BAD;
        }
        if (before == '\r' || (c < ' ' && c != '\r') || c > '~')
            return PROXY_BAD;
    }
    return x->n < V1_MAX ? PROXY_NEED_MORE : PROXY_BAD;
}

static uint16_t be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

/* Bytes of both addresses of a family and transport; 0: none that we use. */
static unsigned addresses_len(uint8_t family)
{
    return family == 0x11 ? 12 : family == 0x21 ? 36 : 0;
}

/* The sixteen bytes are there. Sets how many are to be kept, and how many to be read over behind them. */
static bool open_v2(const struct proxy *x, unsigned *keep, unsigned *skip)
{
    uint8_t version = x->head[12] >> 4, command = x->head[12] & 15, family = x->head[13];
    unsigned len = be16(x->head + 14), known = addresses_len(family);

    if (version != 2 || command > 1 || (family >> 4) > 3 || (family & 15) > 2 || len + V2_FIXED > PROXY_BYTES_MAX)
        return false;
    if (command == 1 && len < known)
        return false;
    /* LOCAL: addresses, if any, are to be ignored. */
    *keep = V2_FIXED + (command == 1 ? known : 0);
    *skip = len + V2_FIXED - *keep;
    return true;
}

static void read_v2(struct proxy *x)
{
    const uint8_t *a = x->head + V2_FIXED;

    if (x->n == V2_FIXED)
        return;
    x->has_source = true;
    if (x->head[13] == 0x11) {
        address_of_v4(&x->source, a, be16(a + 8));
        return;
    }
    memcpy(x->source.ip, a, sizeof x->source.ip);
    x->source.port = be16(a + 32);
}

/* Takes up to `want` bytes of head in all. false: more must come. */
static bool fill(struct proxy *x, unsigned want, const char *p, size_t n, size_t *used)
{
    size_t m = want > x->n ? want - x->n : 0;

    if (m > n - *used)
        m = n - *used;
    memcpy(x->head + x->n, p + *used, m);
    x->n = (uint16_t)(x->n + m);
    *used += m;
    return x->n >= want;
}

static enum proxy_step feed_v2(struct proxy *x, const char *p, size_t n, size_t *used)
{
    unsigned keep, skip;

    if (!fill(x, V2_FIXED, p, n, used))
        return PROXY_NEED_MORE;
    if (!open_v2(x, &keep, &skip))
        return PROXY_BAD;
    if (!fill(x, keep, p, n, used))
        return PROXY_NEED_MORE;
    size_t m = skip - x->skipped < n - *used ? skip - x->skipped : n - *used;
    x->skipped = (uint16_t)(x->skipped + m);
    *used += m;
    if (x->skipped < skip)
        return PROXY_NEED_MORE;
    read_v2(x);
    return PROXY_DONE;
}

enum proxy_step proxy_feed(struct proxy *x, const char *p, size_t n, size_t *used)
{
    *used = 0;
    /* Byte by byte up to where one of the two forms is certain. */
    while (*used < n && x->n < sizeof signature && !(x->n >= sizeof v1_start && x->head[0] == 'P')) {
        uint8_t c = (uint8_t)p[(*used)++];
        bool v1 = (x->n == 0 || x->head[0] == 'P') && c == (uint8_t)v1_start[x->n];
        bool v2 = (x->n == 0 || x->head[0] == '\r') && c == signature[x->n];
        if (!v1 && !v2)
            return PROXY_BAD;
        x->head[x->n++] = c;
    }
    if (x->head[0] == 'P' && x->n >= sizeof v1_start)
        return feed_v1(x, p, n, used);
    return x->n >= sizeof signature ? feed_v2(x, p, n, used) : PROXY_NEED_MORE;
}
