/* The invariants of a normalised profile, and which sample labels are links. */
#include "codecs/profile.h"

static const char *check_series(const struct series *s)
{
    bool service = false;

    for (uint32_t i = 0; i < s->n_labels; i++) {
        const struct label *l = &s->labels[i];
        if (l->name.len == 0 || l->value.len == 0)
            return "series: an empty label";
        if (i && str_cmp(s->labels[i - 1].name, l->name) >= 0)
            return "series: labels not sorted and unique";
        if (str_eq(l->name, STR("__name__")))
            return "series: __name__ among the labels";
        service |= str_eq(l->name, STR("service_name")) && str_eq(l->value, s->service);
    }
    return service && s->name.len ? NULL : "series: no name or service_name";
}

static const char *check_symbols(const struct profile *p)
{
    for (uint32_t i = 0; i < p->n_frames; i++) {
        const struct frame *f = &p->frames[i];
        if (f->function != PROFILE_NONE && (f->function >= p->n_functions || f->address != 0))
            return "frame: bad function, or an address beside one";
        if (f->mapping != PROFILE_NONE && f->mapping >= p->n_mappings)
            return "frame: bad mapping";
    }
    if (p->n_stacks && p->stack_at[0] != 0)
        return "stacks: do not begin at 0";
    for (uint32_t s = 0; s < p->n_stacks; s++) {
        if (p->stack_at[s] > p->stack_at[s + 1])
            return "stacks: not in order";
        for (uint32_t i = p->stack_at[s]; i < p->stack_at[s + 1]; i++)
            if (p->stack_frames[i] >= p->n_frames)
                return "stack: bad frame";
    }
    return NULL;
}

static const char *check_sets(const struct profile *p)
{
    if (p->n_sets == 0 || p->set_at[0] != 0 || p->set_at[1] != 0)
        return "label sets: set 0 is not the empty one";
    for (uint32_t l = 0; l < p->n_sets; l++) {
        if (p->set_at[l] > p->set_at[l + 1])
            return "label sets: not in order";
        for (uint32_t i = p->set_at[l] + 1; i < p->set_at[l + 1]; i++)
            if (str_cmp(p->labels[i - 1].key, p->labels[i].key) > 0)
                return "label set: not sorted";
    }
    return NULL;
}

static const char *check_samples(const struct profile *p)
{
    for (uint32_t i = 0; i < p->n_samples; i++) {
        bool any = false;
        if (p->sample_stack[i] >= p->n_stacks || p->sample_set[i] >= p->n_sets)
            return "sample: bad stack or label set";
        for (uint32_t t = 0; t < p->n_types; t++) {
            if (p->values[t][i] < 0)
                return "sample: a negative value";
            any |= p->values[t][i] != 0;
        }
        if (!any)
            return "sample: all values are 0";
    }
    return NULL;
}

static const char *check_types(const struct profile *p)
{
    if (p->n_types == 0 || p->primary >= p->n_types)
        return "types: none, or a bad primary";
    for (uint32_t t = 0; t < p->n_types; t++) {
        bool over = false;
        int64_t sum = 0;
        for (uint32_t i = 0; i < p->n_samples; i++)
            sum = add_sat(sum, p->values[t][i], &over);
        if (sum != p->types[t].total || (over && !p->drops.saturated))
            return "types: a total is not the sum of its values";
        if (p->types[t].id.len == 0)
            return "types: no id";
    }
    return NULL;
}

const char *profile_check(const struct profile *p)
{
    const char *wrong = check_series(&p->series);

    if (!wrong)
        wrong = check_types(p);
    if (!wrong)
        wrong = check_symbols(p);
    if (!wrong)
        wrong = check_sets(p);
    return wrong ? wrong : check_samples(p);
}

enum link label_link(struct str key)
{
    static const struct {
        struct str key;
        enum link link;
    } links[] = {
        {{"trace_id", 8}, LINK_TRACE},   {{"traceId", 7}, LINK_TRACE}, {{"trace.id", 8}, LINK_TRACE},
        {{"span_id", 7}, LINK_SPAN},     {{"spanId", 6}, LINK_SPAN},   {{"span.id", 7}, LINK_SPAN},
        {{"profile_id", 10}, LINK_SPAN},
    };

    for (size_t i = 0; i < COUNTOF(links); i++)
        if (str_eq(links[i].key, key))
            return links[i].link;
    return LINK_NONE;
}
