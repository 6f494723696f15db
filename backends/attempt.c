/* The text of an attempt: boot, group and place in hexadecimal. */
#include "backends/attempt.h"

#include <stdio.h>

void attempt_format(struct attempt a, char out[ATTEMPT_TEXT])
{
    snprintf(out, ATTEMPT_TEXT, "%016llx%012llx%04x", (unsigned long long)a.boot,
             (unsigned long long)(a.group & 0xffffffffffff), (unsigned)a.place);
}

static bool hex_value(const char *p, size_t n, uint64_t *out)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++) {
        char c = p[i];
        unsigned digit;

        if (c >= '0' && c <= '9')
            digit = (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (unsigned)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            digit = (unsigned)(c - 'A' + 10);
        else
            return false;
        v = v << 4 | digit;
    }
    *out = v;
    return true;
}

bool attempt_parse(struct str text, struct attempt *out)
{
    uint64_t place;

    if (text.len != ATTEMPT_TEXT - 1 || !hex_value(text.p, 16, &out->boot) ||
        !hex_value(text.p + 16, 12, &out->group) || !hex_value(text.p + 28, 4, &place))
        return false;
    out->place = (uint16_t)place;
    return true;
}
