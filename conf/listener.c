/* A listener of the configuration: an address, or a map with what goes with it. */
#include "conf/listener.h"

#include "conf/value.h"

bool listener_address(const struct source *s, const struct option *o, const struct doc_node *n, struct conf_address *a)
{
    struct str host, copy;

    if (n->kind != DOC_TEXT || doc_is_null(n)) {
        doc_error(s, n->line, n->col, "%s: needs an address such as 127.0.0.1:4040", o->name.p);
        return false;
    }
    if (!value_address(n->text, &host, &a->port)) {
        doc_error(s, n->line, n->col, "%s: \"%.*s\" is not an address such as 127.0.0.1:4040 or [::1]:4040", o->name.p,
                  (int)(n->text.len > 80 ? 80 : n->text.len), n->text.p);
        return false;
    }
    if (!arena_str(s->arena, host, &copy)) {
        doc_error(s, n->line, n->col, "%s: out of memory", o->name.p);
        return false;
    }
    a->host = (char *)(uintptr_t)copy.p;
    return true;
}

static bool yes_or_no(const struct source *s, const struct option *o, const struct doc_node *n, bool *v)
{
    *v = n->kind == DOC_TEXT && str_eq(n->text, STR("true"));
    if (*v || (n->kind == DOC_TEXT && str_eq(n->text, STR("false"))))
        return true;
    doc_error(s, n->line, n->col, "%s: %.*s needs true or false", o->name.p, STR_ARG(n->key));
    return false;
}

static bool file_name(const struct source *s, const struct option *o, const struct doc_node *n, char **path)
{
    *path = (char *)(uintptr_t)n->text.p;
    if (n->kind == DOC_TEXT && !doc_is_null(n) && n->text.len && n->text.len <= 4096)
        return true;
    doc_error(s, n->line, n->col, "%s: tls.%.*s needs the path of a file", o->name.p, STR_ARG(n->key));
    return false;
}

static bool tls_key(const struct source *s, const struct option *o, const struct doc_node *k, struct conf_address *a)
{
    if (str_eq(k->key, STR("cert_file")))
        return file_name(s, o, k, &a->cert_file);
    if (str_eq(k->key, STR("key_file")))
        return file_name(s, o, k, &a->key_file);
    if (str_eq(k->key, STR("client_ca_file")))
        return file_name(s, o, k, &a->client_ca_file);
    if (!str_eq(k->key, STR("client_certificate"))) {
        doc_error(s, k->key_line, k->key_col, "listen: unknown key \"tls.%.*s\"", STR_ARG(k->key));
        return false;
    }
    a->client_optional = k->kind == DOC_TEXT && str_eq(k->text, STR("optional"));
    if (a->client_optional || (k->kind == DOC_TEXT && str_eq(k->text, STR("required"))))
        return true;
    doc_error(s, k->line, k->col, "%s: tls.client_certificate needs required or optional", o->name.p);
    return false;
}

/* { cert_file: C, key_file: K, client_ca_file: A, client_certificate: required } */
static bool tls(const struct source *s, const struct option *o, const struct doc_node *n, struct conf_address *a)
{
    bool good = n->kind == DOC_MAP, asks = false;

    if (!good)
        doc_error(s, n->line, n->col, "%s: tls needs a map: { cert_file, key_file }", o->name.p);
    for (const struct doc_node *k = good ? n->first : NULL; k; k = k->next) {
        good &= tls_key(s, o, k, a);
        asks |= str_eq(k->key, STR("client_certificate"));
    }
    if (good && !(a->cert_file && a->key_file)) {
        doc_error(s, n->line, n->col, "%s: tls needs both cert_file and key_file", o->name.p);
        good = false;
    }
    if (good && asks && !a->client_ca_file) {
        doc_error(s, n->line, n->col, "%s: tls.client_certificate needs client_ca_file", o->name.p);
        good = false;
    }
    return good;
}

/* { address: A, tls: {...}, proxy_protocol: true } */
bool listener_set(const struct source *s, const struct option *o, const struct doc_node *n, struct conf_address *a)
{
    bool found = false, good = true;

    if (n->kind != DOC_MAP)
        return listener_address(s, o, n, a);
    for (const struct doc_node *k = n->first; k; k = k->next) {
        if (str_eq(k->key, STR("address"))) {
            found = true;
            good &= listener_address(s, o, k, a);
            continue;
        }
        if (str_eq(k->key, STR("proxy_protocol"))) {
            good &= yes_or_no(s, o, k, &a->proxy_protocol);
            continue;
        }
        if (str_eq(k->key, STR("tls"))) {
            good &= tls(s, o, k, a);
            continue;
        }
        doc_error(s, k->key_line, k->key_col, "listen: unknown key \"%.*s\"", STR_ARG(k->key));
        good = false;
    }
    if (!found)
        doc_error(s, n->line, n->col, "%s: a listener needs its address", o->name.p);
    return good && found;
}
