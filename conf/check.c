/* What must hold between options, each rule with the reason in its message. */
#include "conf/check.h"

#include <inttypes.h>

#include "conf/value.h"

static void sizes(const struct source *s, uint64_t a, uint64_t b, const char *fmt_what)
{
    struct buf ta = {0}, tb = {0};

    value_size_text(&ta, a);
    value_size_text(&tb, b);
    doc_error(s, 0, 0, "%s (%.*s and %.*s)", fmt_what, STR_ARG(buf_view(&ta)), STR_ARG(buf_view(&tb)));
    buf_free(&ta);
    buf_free(&tb);
}

static void limits(const struct source *s, const struct conf *c)
{
    const struct limits *l = &c->limits;

    if (l->body > l->inflated)
        sizes(s, l->body, l->inflated,
              "limits.body is over limits.inflated: a body that is not compressed must fit as well");
    if (l->field > l->inflated)
        sizes(s, l->field, l->inflated, "limits.field is over limits.inflated: no field could be that long");
    if (c->memory / 2 < l->decoded)
        sizes(s, c->memory, l->decoded,
              "memory is under twice limits.decoded: one largest request is set aside, the others need as much");
    if (l->label_name > l->field || l->label_value > l->field)
        doc_error(s, 0, 0, "limits.label_name and limits.label_value cannot be over limits.field");
}

static bool same(const struct conf_address *a, const struct conf_address *b)
{
    return a->port && a->port == b->port && str_eq(str_of(a->host), str_of(b->host));
}

static void addresses(const struct source *s, const struct conf *c)
{
    for (size_t i = 0; i < c->n_listen; i++) {
        const struct conf_address *a = &c->listen[i];
        for (size_t k = 0; k < i; k++)
            if (same(a, &c->listen[k]))
                doc_error(s, 0, 0, "listen: %s:%u is given twice", a->host, a->port);
        if (c->admin_on && same(a, &c->admin))
            doc_error(s, 0, 0, "admin: %s:%u is also in listen; metrics have a listener of their own", a->host,
                      a->port);
    }
}

void check_all(const struct source *s, const struct conf *c)
{
    limits(s, c);
    addresses(s, c);
}
