/* Bytes out: the original of an upload, its pprof, and the merged pprof of a selection (B6). */
#include <stdio.h>

#include "gateway/query/endpoints.h"
#include "gateway/query/gather.h"

static void as_attachment(struct ask *a, const char *name)
{
    a->answer->content_type = "application/octet-stream";
    a->answer->nosniff = true;
    snprintf(a->answer->disposition, sizeof(a->answer->disposition), "attachment; filename=\"%s\"", name);
}

static enum err parse_id(struct ask *a, char id[ATTEMPT_TEXT])
{
    if (!attempt_parse(a->rest, &a->attempt))
        return fault_set(&a->fault, E_NOT_FOUND, "no such profile");
    attempt_format(a->attempt, id);
    a->one_profile = true;
    return E_OK;
}

/* The types that the selector leaves, as a view of the same columns. */
static enum err choose_types(struct ask *a, struct merged *m)
{
    uint32_t n = 0;
    struct merged_type *types = NEW(a->arena, struct merged_type, m->n_types + 1);
    int64_t **values = NEW(a->arena, int64_t *, m->n_types + 1);
    if (!types || !values)
        return ask_no_memory(a);
    for (uint32_t t = 0; t < m->n_types; t++) {
        if (a->selector && !selector_type(a->selector, m->types[t].id))
            continue;
        types[n] = m->types[t];
        values[n++] = m->values[t];
    }
    m->types = types;
    m->values = values;
    m->n_types = n;
    return E_OK;
}

enum err download_pprof(struct ask *a, bool all_types)
{
    struct gathered g;
    struct fault why = {0};
    enum err e = gather(a, all_types ? GATHER_ALL_TYPES : GATHER_ONE_TYPE, true, &g);
    if (e == E_OK) {
        struct merged m = g.merged ? *g.merged : (struct merged){0};
        struct symtab *none = g.symtab ? NULL : symtab_new();
        e = g.symtab || none ? choose_types(a, &m) : fault_set(&a->fault, E_NO_MEMORY, NULL);
        if (e == E_OK && pprof_write(&m, g.symtab ? g.symtab : none, &a->answer->body, &why) != E_OK)
            e = fault_set(&a->fault, why.err, "%s", why.text);
        symtab_free(none);
    }
    if (e == E_OK && !a->answer->disposition[0])
        as_attachment(a, "merge.pb.gz");
    gather_close(&g);
    return e;
}

enum err download_merge_run(struct ask *a)
{
    static const char *const formats[] = {"pprof"};
    size_t format;
    enum err e = ask_format(a, formats, COUNTOF(formats), &format);
    return e ? e : download_pprof(a, true);
}

enum err download_profile_run(struct ask *a)
{
    char id[ATTEMPT_TEXT], name[ATTEMPT_TEXT + 8];
    enum err e = parse_id(a, id);
    if (e)
        return e;
    snprintf(name, sizeof(name), "%s.pb.gz", id);
    as_attachment(a, name);
    return download_pprof(a, true);
}

enum err original_run(struct ask *a)
{
    const struct query *q = a->q;
    enum original_state state = ORIGINAL_OFF;
    struct fault why = {0};
    char id[ATTEMPT_TEXT], name[ATTEMPT_TEXT + 16];
    enum err e = parse_id(a, id);
    if (e)
        return e;
    e = q->backend->read->original(q->store, q->project, a->attempt, &state, &a->answer->body, &why);
    if (e == E_NOT_FOUND)
        return scan_not_found(a);
    if (e)
        return fault_set(&a->fault, e, why.text[0] ? "%s" : NULL, why.text);
    if (state == ORIGINAL_EXPIRED)
        return fault_set(&a->fault, E_NOT_FOUND,
                         "expired: the original of this profile is no longer kept; see profiles/%s/pprof", id);
    if (state == ORIGINAL_OFF)
        return fault_set(&a->fault, E_NOT_FOUND, "off: originals are not kept here; see profiles/%s/pprof", id);
    snprintf(name, sizeof(name), "%s.original", id);
    as_attachment(a, name);
    return E_OK;
}
