/* GET rules: the own-code rules in force, in the order in which they are tried. */
#include "gateway/query/endpoints.h"
#include "gateway/query/rules.h"
#include "gateway/query/text.h"

static void put(struct json *j, const char *key, const char *value)
{
    json_key(j, key);
    json_str(j, str_of(value));
}

static void write_json(const struct ask *a)
{
    struct json j = {.out = &a->answer->body};
    json_open(&j, '{');
    json_key(&j, "rules");
    json_open(&j, '[');
    for (size_t i = 0; i < n_rules; i++) {
        json_open(&j, '{');
        put(&j, "language", language_name(rules[i].language));
        put(&j, "field", rule_field_name(rules[i].field));
        put(&j, "how", rule_how_name(rules[i].how));
        put(&j, "pattern", rules[i].pattern.p);
        put(&j, "owner", owner_name(rules[i].owner));
        json_close(&j, '}');
    }
    json_close(&j, ']');
    put(&j, "otherwise", owner_name(OWNER_OWN));
    json_close(&j, '}');
}

static void write_text(const struct ask *a)
{
    struct buf *out = &a->answer->body;
    for (size_t i = 0; i < n_rules; i++)
        buf_printf(out, "%-8s %-8s %-8s %-40s %s\n", language_name(rules[i].language), rule_field_name(rules[i].field),
                   rule_how_name(rules[i].how), rules[i].pattern.p, owner_name(rules[i].owner));
    buf_str(out, STR("everything else is own code\n"));
}

enum err rulelist_run(struct ask *a)
{
    static const char *const formats[] = {"json", "text"};
    size_t format;
    enum err e = ask_format(a, formats, COUNTOF(formats), &format);
    if (e == E_OK && format == 1)
        write_text(a);
    else if (e == E_OK)
        write_json(a);
    return e;
}
