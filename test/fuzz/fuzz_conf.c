/*
 * The configuration loader on any text. It gives a configuration or errors, never both or neither; what it accepts is
 * inside of every bound, and written out option by option it is read again as the same configuration.
 */
#include <stdlib.h>

#include "conf/option.h"

static void check(bool good)
{
    if (!good)
        abort();
}

static struct conf *parse(struct str yaml, struct buf *errors)
{
    struct conf_errors e = {0};
    struct conf *c = conf_parse(yaml, "fuzz", &e);

    check((c == NULL) == (e.count > 0));
    check((e.count > 0) == (e.text.len > 0));
    unsigned lines = 0;
    for (size_t i = 0; i < e.text.len; i++) {
        check(e.text.p[i] == '\n' || (unsigned char)e.text.p[i] >= ' ');
        lines += e.text.p[i] == '\n';
    }
    check(lines == e.count);
    *errors = e.text;
    return c;
}

static void bounds(const struct conf *c)
{
    check(c->n_listen >= 1 && c->n_listen <= 64);
    check(c->limits.body <= c->limits.inflated && c->memory / 2 >= c->limits.decoded);
    check(c->retention_days >= 1 && c->retention_days <= 90 && c->retention_raw_days <= 90);
    check(c->window_past_ns >= -1 && c->window_future_ns >= -1);
    check(c->roles != 0 && c->anonymous_may != 0);
    check(c->data_dir[0] && c->keys_file[0] && c->samples[0] && c->shares[0]);
    for (size_t i = 0; i < c->n_prefixes; i++)
        check(c->prefixes[i][0] == '/');
}

/* All options in their canonical text, nested as a file has them. */
static void write_out(const struct conf *c, struct buf *out)
{
    size_t section_len = 0;

    for (size_t i = 0; i < option_count(); i++) {
        const struct option *o = option_at(i);
        const char *dot = strchr(o->name.p, '.');
        size_t len = dot ? (size_t)(dot - o->name.p) : 0;
        const char *before = i ? option_at(i - 1)->name.p : "";
        if (len && (len != section_len || strncmp(before, o->name.p, len + 1) != 0))
            buf_printf(out, "%.*s:\n", (int)len, o->name.p);
        section_len = len;
        buf_printf(out, "%s%s: ", dot ? "  " : "", dot ? dot + 1 : o->name.p);
        option_text(c, o, out);
        buf_char(out, '\n');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct buf errors, first = {0}, second = {0};
    char *copy = malloc(n ? n : 1); /* of the exact size, so that reading past it is seen */

    if (!copy)
        return 0;
    if (n)
        memcpy(copy, data, n);
    setenv("FLAMEGATE_FUZZ", "text: [", 1);
    struct conf *c = parse((struct str){copy, n}, &errors);
    free(copy);
    buf_free(&errors);
    if (!c)
        return 0;
    bounds(c);
    write_out(c, &first);
    struct conf *again = parse(buf_view(&first), &errors);
    check(again != NULL);
    write_out(again, &second);
    check(str_eq(buf_view(&first), buf_view(&second)));
    conf_restart_only(c, again, &errors);
    check(errors.len == 0);
    conf_free(c);
    conf_free(again);
    buf_free(&first);
    buf_free(&second);
    buf_free(&errors);
    return 0;
}
