/* What must hold between options, each rule with the reason in its message, at the option that is said first. */
#include "conf/check.h"

#include <inttypes.h>

#include "conf/value.h"

struct check {
    const struct source *s;
    const struct conf *c;
    const struct doc_node *root;
};

/* At one of two options: the first that the file gives. The defaults pass every rule, so one of them is there. */
static void object(const struct check *k, struct str option, struct str other, const char *what)
{
    const struct doc_node *n = doc_find(k->root, option);

    if (!n)
        n = doc_find(k->root, other);
    doc_error(k->s, n ? n->line : 0, n ? n->col : 0, "%s", what);
}

static void sizes(const struct check *k, struct str option, uint64_t a, struct str other, uint64_t b, const char *what)
{
    struct buf text = {0};

    buf_printf(&text, "%s (", what);
    value_size_text(&text, a);
    buf_str(&text, STR(" and "));
    value_size_text(&text, b);
    buf_char(&text, ')');
    buf_char(&text, '\0');
    object(k, option, other, text.failed ? what : text.p);
    buf_free(&text);
}

static void limits(const struct check *k)
{
    const struct limits *l = &k->c->limits;

    if (l->body > l->inflated)
        sizes(k, STR("limits.body"), l->body, STR("limits.inflated"), l->inflated,
              "limits.body is over limits.inflated: a body that is not compressed must fit as well");
    if (l->field > l->inflated)
        sizes(k, STR("limits.field"), l->field, STR("limits.inflated"), l->inflated,
              "limits.field is over limits.inflated: no field could be that long");
    if (k->c->memory / 2 < l->decoded)
        sizes(k, STR("memory"), k->c->memory, STR("limits.decoded"), l->decoded,
              "memory is under twice limits.decoded: one largest request is set aside, the others need as much");
    if (l->label_name > l->field)
        object(k, STR("limits.label_name"), STR("limits.field"), "limits.label_name is over limits.field");
    if (l->label_value > l->field)
        object(k, STR("limits.label_value"), STR("limits.field"), "limits.label_value is over limits.field");
}

static bool same(const struct conf_address *a, const struct conf_address *b)
{
    return a->port && a->port == b->port && str_eq(str_of(a->host), str_of(b->host));
}

static void addresses(const struct check *k)
{
    for (size_t i = 0; i < k->c->n_listen; i++) {
        const struct conf_address *a = &k->c->listen[i];
        for (size_t j = 0; j < i; j++)
            if (same(a, &k->c->listen[j]))
                object(k, STR("listen"), STR("listen"), "listen: the same address twice");
        if (k->c->admin_on && same(a, &k->c->admin))
            object(k, STR("admin"), STR("listen"),
                   "admin: the address is also in listen; metrics have a listener of their own");
    }
}

/* Profiles that may still come must find those that they belong to. */
static void raw(const struct check *k)
{
    const struct conf *c = k->c;

    if (!c->retention_raw_days)
        return;
    if (c->window_past_ns < 0 || c->retention_raw_days * INT64_C(86400000000000) < c->window_past_ns)
        object(k, STR("retention.raw"), STR("retention"),
               "retention.raw: must not be shorter than accept_window.past: hours are final when their profiles go");
}

/* Made on the first start, each replica would have one of its own, and a new container another one than the database's.
 */
static void hash_key(const struct check *k)
{
    struct str samples = str_of(k->c->samples);

    if (doc_find(k->root, STR("hash_key_file")))
        return;
    if (str_starts(samples, STR("postgres:")) || str_starts(samples, STR("postgresql:")))
        object(
            k, STR("samples"), STR("samples_file"),
            "samples: PostgreSQL needs hash_key_file as well: one key for all replicas, kept as long as the database");
    if (str_starts(str_of(k->c->shares), STR("redis:")))
        object(k, STR("shares"), STR("shares_file"),
               "shares: Redis needs hash_key_file as well: one key for all replicas");
}

static void encrypted(const struct check *k)
{
    if (str_starts(str_of(k->c->shares), STR("rediss:")))
        object(k, STR("shares"), STR("shares_file"),
               "shares: rediss:// (TLS) is not spoken here; put a tunnel beside the gateway, or use redis://");
}

void check_all(const struct source *s, const struct conf *c, const struct doc_node *root)
{
    struct check k = {.s = s, .c = c, .root = root};

    limits(&k);
    addresses(&k);
    raw(&k);
    hash_key(&k);
    encrypted(&k);
}
