/* RFC 4648 sections 4 and 5 at once. */
#include "codecs/base64.h"

static int value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    return c == '/' || c == '_' ? 63 : -1;
}

bool base64_feed(struct base64 *b, struct str in, char *out, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < in.len; i++) {
        int v = value(in.p[i]);
        if (in.p[i] == '=') {
            b->padding++;
            continue;
        }
        if (v < 0 || b->padding)
            return false;
        b->bits = b->bits << 6 | (uint32_t)v;
        /* Six bits more: the second, third and fourth character complete a byte and leave 4, 2 and no bits over. */
        if (b->n++ > 0)
            out[(*n)++] = (char)(b->bits >> (8 - 2 * b->n));
        if (b->n == 4)
            b->n = 0;
    }
    return true;
}

bool base64_end(const struct base64 *b)
{
    return b->n != 1 && (b->padding == 0 || (b->n && b->n + b->padding == 4));
}
