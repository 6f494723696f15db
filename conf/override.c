/* Overrides are a flat list in the order of the file: a project, an option, a number. Those of a project stand
 * together. */
#include "conf/override.h"

#include <string.h>

/* What can differ by project: nothing that memory, or a whole process, is sized by. */
static const char *const allowed[] = {
    "limits.profiles",      "limits.samples",    "limits.strings",     "limits.depth",     "limits.labels",
    "limits.sample_labels", "limits.label_name", "limits.label_value", "limits.parts",     "limits.services",
    "limits.series",        "rates.requests",    "rates.bytes",        "rates.new_stacks", "rates.burst",
};

static const struct option *find_allowed(struct str section, struct str key)
{
    for (size_t i = 0; i < COUNTOF(allowed); i++) {
        struct str name = str_of(allowed[i]);
        if (name.len == section.len + 1 + key.len && str_starts(name, section) && name.p[section.len] == '.' &&
            str_ends(name, key))
            return option_find(name);
    }
    return NULL;
}

static size_t count_all(const struct doc_node *n)
{
    size_t all = 0;

    for (const struct doc_node *p = n->first; p; p = p->next)
        for (const struct doc_node *s = p->kind == DOC_MAP ? p->first : NULL; s; s = s->next)
            all += s->kind == DOC_MAP ? s->n : 0;
    return all;
}

/* The options of one section of one project. */
static bool take_section(const struct source *s, struct str project, const struct doc_node *section,
                         struct conf_override *all, size_t *n)
{
    bool good = true;

    if (section->kind != DOC_MAP) {
        doc_error(s, section->line, section->col, "projects: needs a map: { name: { limits: { samples: 1000 } } }");
        return false;
    }
    for (const struct doc_node *k = section->first; k; k = k->next) {
        const struct option *o = find_allowed(section->key, k->key);
        if (!o) {
            doc_error(s, k->key_line, k->key_col, "projects: %.*s.%.*s is no option that a project can have of its own",
                      STR_ARG(section->key), STR_ARG(k->key));
            good = false;
            continue;
        }
        all[*n] = (struct conf_override){.project = project.p, .option = o};
        good &= option_number(s, o, k, &all[*n].value);
        ++*n;
    }
    return good;
}

void overrides_set(const struct source *s, struct conf *c, const struct option *o, const struct doc_node *n)
{
    bool good = n->kind == DOC_MAP;
    size_t count = 0;

    (void)o;
    if (!good) {
        doc_error(s, n->line, n->col, "projects: needs a map: { name: { limits: { samples: 1000 } } }");
        return;
    }
    struct conf_override *all = NEW(s->arena, struct conf_override, count_all(n) + 1);
    if (!all) {
        doc_error(s, n->line, n->col, "projects: out of memory");
        return;
    }
    for (const struct doc_node *p = n->first; p; p = p->next) {
        if (!option_is_project(p->key) || p->kind != DOC_MAP) {
            doc_error(s, p->key_line, p->key_col, "projects: \"%.*s\" is not a project with a map of its own",
                      STR_ARG(p->key));
            good = false;
        }
        for (const struct doc_node *k = p->kind == DOC_MAP ? p->first : NULL; k; k = k->next)
            good &= take_section(s, p->key, k, all, &count);
    }
    if (good) {
        c->overrides = all;
        c->n_overrides = count;
    }
}

/* "limits" of "limits.samples". */
static struct str section_of(const struct conf_override *v)
{
    const struct option *o = v->option;

    return (struct str){o->name.p, (size_t)(strchr(o->name.p, '.') - o->name.p)};
}

void overrides_text(const struct conf *c, struct buf *out)
{
    const struct conf_override *last = NULL;

    buf_char(out, '{');
    for (size_t i = 0; i < c->n_overrides; last = &c->overrides[i++]) {
        const struct conf_override *v = &c->overrides[i];
        const struct option *o = v->option;
        struct str section = section_of(v);
        bool project = last && str_eq(str_of(last->project), str_of(v->project));
        bool same = project && str_eq(section_of(last), section);

        if (!project) {
            buf_str(out, last ? STR("}}, ") : STR(""));
            option_quoted(out, str_of(v->project));
            buf_str(out, STR(": {"));
        }
        if (!same)
            buf_printf(out, "%s%.*s: {", project ? "}, " : "", STR_ARG(section));
        buf_printf(out, "%s%s: ", same ? ", " : "", o->name.p + section.len + 1);
        option_number_text(out, o->kind, v->value);
    }
    buf_str(out, last ? STR("}}}") : STR("}"));
}

void conf_bounds(const struct conf *c, struct str project, struct conf_bounds *out)
{
    struct conf mine = *c; /* borrowed but for the numbers */

    for (size_t i = 0; i < c->n_overrides; i++)
        if (str_eq(str_of(c->overrides[i].project), project))
            option_put(&mine, c->overrides[i].option, c->overrides[i].value);
    *out = (struct conf_bounds){mine.limits, mine.rates, mine.max_services, mine.max_series};
}
