/* Opening a read: parameters, window, selector, memory; and the one place that looks at its cancel flag and deadline.
 */
#include "gateway/query/ask.h"

#include <time.h>

enum { LOOK_EACH = 1024, LIMIT_MAX = 1000000 };

static int64_t monotonic_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

enum err ask_look(struct ask *a)
{
    bool late = a->q->deadline_ns > 0 && monotonic_ns() >= a->q->deadline_ns;
    if (late)
        return fault_set(&a->fault, E_DEADLINE, NULL);
    if (a->q->cancel && atomic_load_explicit(a->q->cancel, memory_order_relaxed))
        return fault_set(&a->fault, E_CANCELLED, NULL);
    return E_OK;
}

enum err ask_alive(struct ask *a)
{
    return ++a->ticks % LOOK_EACH ? E_OK : ask_look(a);
}

enum err ask_too_large(struct ask *a)
{
    return fault_set(&a->fault, E_PROFILE_TOO_LARGE,
                     "this answer needs more memory than one query may take now (%zu MiB): narrow the window, name a "
                     "service or a label with match, or give the gateway more with memory",
                     a->q->memory_limit >> 20);
}

enum err ask_no_memory(struct ask *a)
{
    return arena_over_limit(a->arena) ? ask_too_large(a) : fault_set(&a->fault, E_NO_MEMORY, NULL);
}

enum err ask_spend(struct ask *a, size_t used)
{
    ASSERT(a->arena == a->first);
    used += arena_used(a->first);
    if (used >= a->q->memory_limit)
        return ask_too_large(a);
    struct arena *rest = arena_new(a->q->memory_limit - used);
    if (!rest)
        return fault_set(&a->fault, E_NO_MEMORY, NULL);
    a->arena = rest;
    return E_OK;
}

enum err ask_format(struct ask *a, const char *const *names, size_t n, size_t *which)
{
    struct str wanted = a->params.value[PARAM_FORMAT];
    if (!a->params.given[PARAM_FORMAT])
        wanted = str_of(params_wants_text(a->q->accept) ? "text" : names[0]);
    for (*which = 0; *which < n; ++*which)
        if (str_eq(wanted, str_of(names[*which]))) {
            a->text = str_eq(wanted, STR("text"));
            return E_OK;
        }
    *which = 0;
    if (!a->params.given[PARAM_FORMAT])
        return E_OK;
    struct buf list = {0};
    for (size_t i = 0; i < n; i++)
        buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
    enum err e =
        fault_set(&a->fault, E_BAD_REQUEST, "parameter \"format\": one of %.*s is wanted", STR_ARG(buf_view(&list)));
    buf_free(&list);
    return e;
}

static enum err read_profile(struct ask *a)
{
    if (!a->params.given[PARAM_PROFILE])
        return E_OK;
    if (a->params.given[PARAM_FROM] || a->params.given[PARAM_UNTIL])
        return fault_set(&a->fault, E_BAD_REQUEST, "parameter \"profile\" stands instead of \"from\" and \"until\"");
    a->one_profile = true;
    if (attempt_parse(a->params.value[PARAM_PROFILE], &a->attempt))
        return E_OK;
    return fault_set(&a->fault, E_BAD_REQUEST, "parameter \"profile\": 32 hexadecimal digits are wanted");
}

/* name:type:unit:period type:period unit, perhaps with a sixth part of old that means nothing here; or a name without
 * colons. */
static enum err read_type(struct ask *a)
{
    struct str *t = &a->params.value[PARAM_TYPE];
    uint32_t colons = 0;
    for (size_t i = 0; i < t->len; i++)
        colons += t->p[i] == ':';
    if (colons == 5 && str_ends(*t, STR(":delta")))
        t->len -= 6;
    if (colons == 0 || colons >= 4)
        return E_OK;
    return fault_set(&a->fault, E_BAD_REQUEST,
                     "parameter \"type\": a sample type's name, or name:type:unit:period type:period unit, is wanted");
}

static enum err read_params(struct ask *a, uint32_t allowed)
{
    const struct params *p = &a->params;
    enum err e = params_parse(&a->params, a->q->params, allowed, a->arena, &a->fault);
    if (e == E_OK)
        e = read_profile(a);
    if (e == E_OK)
        e = read_type(a);
    if (e == E_OK)
        e = window_parse(&a->window, p->value[PARAM_FROM], p->value[PARAM_UNTIL], a->q->now_ns, &a->fault);
    if (e == E_OK)
        e = params_number(p, PARAM_LIMIT, 1, LIMIT_MAX, &a->limit, &a->fault);
    if (e == E_OK && p->given[PARAM_MATCH]) {
        a->selector = selector_parse(p->value[PARAM_MATCH], &a->fault);
        e = a->fault.err;
    }
    return e;
}

enum err ask_open(struct ask *a, const struct query *q, uint32_t allowed, struct answer *answer)
{
    a->q = q;
    a->answer = answer;
    a->arena = a->first = arena_new(q->memory_limit / 4);
    if (!a->arena)
        return fault_set(&a->fault, E_NO_MEMORY, NULL);
    hash_key_random(&a->key);
    enum err e = ask_look(a);
    return e ? e : read_params(a, allowed);
}

void ask_close(struct ask *a)
{
    selector_free(a->selector);
    a->selector = NULL;
    if (a->first != a->arena)
        arena_free(a->first);
    arena_free(a->arena);
    a->arena = a->first = NULL;
}
