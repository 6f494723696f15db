/* The table of options for people: --help, and the sample configuration with every default. */
#include <stdio.h>

#include "conf/option.h"

enum { NAME_WIDTH = 24, VALUE_WIDTH = 18, COMMENT_AT = 44 };

void conf_help(struct buf *out)
{
    buf_str(out, STR("Options of the configuration file, with their defaults (* a change needs a restart):\n"));
    for (size_t i = 0; i < option_count(); i++) {
        const struct option *o = option_at(i);
        int wide = (int)strlen(o->text) > VALUE_WIDTH;
        buf_printf(out, "  %-*s%s %-*s", NAME_WIDTH, o->name.p, o->restart ? "*" : " ", VALUE_WIDTH, o->text);
        if (wide)
            buf_printf(out, "\n  %*s", NAME_WIDTH + VALUE_WIDTH + 2, "");
        buf_printf(out, "  %s\n", o->help);
    }
}

static struct str section_of(const struct option *o)
{
    const char *dot = memchr(o->name.p, '.', o->name.len);
    return (struct str){o->name.p, dot ? (size_t)(dot - o->name.p) : 0};
}

static void sample_line(struct buf *out, const struct option *o, struct str section)
{
    const char *leaf = o->name.p + (section.len ? section.len + 1 : 0);
    char line[256];
    int n = snprintf(line, sizeof line, "%s%s: %s", section.len ? "  " : "", leaf, o->text);

    if (n > COMMENT_AT - 2) /* the comment goes above what is too long to have it beside */
        buf_printf(out, "%s# %s\n%s\n", section.len ? "  " : "", o->help, line);
    else
        buf_printf(out, "%-*s# %s\n", COMMENT_AT, line, o->help);
}

void conf_sample(struct buf *out)
{
    struct str section = STR("");

    buf_str(
        out,
        STR("# Every option of Flamegate with its default; a file needs only what differs.\n"
            "# Sizes are in B, KiB, MiB, GiB, TiB, durations in ms, s, m, h, d. ${VAR} and ${VAR:-default} in a value\n"
            "# stand for an environment variable, $$ for a dollar sign. `flamegate check-config` says what is "
            "wrong.\n"));
    for (size_t i = 0; i < option_count(); i++) {
        const struct option *o = option_at(i);
        struct str now = section_of(o);
        if (!str_eq(now, section) && now.len)
            buf_printf(out, "%.*s:\n", STR_ARG(now));
        section = now;
        sample_line(out, o, section);
    }
}
