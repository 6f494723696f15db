/* Writing for people: cutting, padding and escaping by characters, percentages, amounts with units. */
#include "gateway/query/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* One character, escaped; ncols: how many columns it takes. */
static size_t escape_char(struct str s, char out[12], size_t *ncols)
{
    size_t n = json_utf8(s);
    unsigned char c = (unsigned char)s.p[0], second = n == 2 ? (unsigned char)s.p[1] : 0xff;
    *ncols = 1;
    if (n == 0 || c < 0x20 || c == 0x7f || (c == 0xc2 && second < 0xa0)) {
        *ncols = 4;
        snprintf(out, 12, "\\x%02x", n == 2 ? second : c);
        return n ? n : 1;
    }
    memcpy(out, s.p, n);
    out[n] = 0;
    return n;
}

static size_t count_columns(struct str s, size_t stop)
{
    size_t columns = 0, n;
    char one[12];
    for (size_t i = 0; i < s.len && columns <= stop; columns += n)
        i += escape_char((struct str){s.p + i, s.len - i}, one, &n);
    return columns;
}

size_t text_put(struct buf *out, struct str s, size_t columns)
{
    size_t used = 0, n;
    char one[12];
    bool cut = count_columns(s, columns) > columns;
    for (size_t i = 0; i < s.len;) {
        i += escape_char((struct str){s.p + i, s.len - i}, one, &n);
        if (used + n + cut > columns)
            break;
        buf_str(out, str_of(one));
        used += n;
    }
    if (cut && columns) {
        buf_str(out, STR("…"));
        used++;
    }
    return used;
}

/* What begins behind the first '/' of the first half, if there is one: whole parts of a path. */
static struct str skip_torn(struct str s)
{
    const char *slash = memchr(s.p, '/', s.len / 2);
    size_t n = slash ? (size_t)(slash - s.p) + 1 : 0;
    return (struct str){s.p + n, s.len - n};
}

size_t text_end(struct buf *out, struct str s, size_t columns)
{
    size_t all = count_columns(s, SIZE_MAX - 1), n;
    char one[12];
    if (all <= columns || columns == 0)
        return text_put(out, s, columns);
    while (all > columns - 1) {
        size_t len = escape_char(s, one, &n);
        s = (struct str){s.p + len, s.len - len};
        all -= n;
    }
    buf_str(out, STR("…"));
    return 1 + text_put(out, skip_torn(s), columns - 1);
}

/* How much of "name (path:line)" and "name - path:line", as folded text has them, is the name and what parts them. */
static size_t name_before_path(struct str s)
{
    for (size_t i = 1; i + 3 < s.len; i++)
        if ((s.p[i] == ' ' && s.p[i + 1] == '(' && s.p[s.len - 1] == ')') || memcmp(s.p + i, " - ", 3) == 0)
            return i + (s.p[i + 1] == '(' ? 2 : 3);
    return 0;
}

/* Of "call::<A, B<C>>", as Rust and C++ have it, what stands before the last arguments; all of any other name. */
static struct str before_arguments(struct str s)
{
    size_t depth = 0, i = s.len;
    do {
        i--;
        bool arrow = i > 0 && s.p[i] == '>' && s.p[i - 1] == '-';
        depth += s.p[i] == '>' && !arrow;
        depth -= s.p[i] == '<' && depth;
    } while (i > 0 && depth);
    return i > 0 && i + 1 < s.len ? (struct str){s.p, i} : s;
}

size_t text_name(struct buf *out, struct str s, size_t columns)
{
    enum { PATH_MIN = 8, ARGUMENTS = 3 };
    struct str name = {s.p, name_before_path(s)};
    size_t n = count_columns(name, columns);
    if (count_columns(s, columns) <= columns || columns <= PATH_MIN)
        return text_end(out, s, columns);
    struct str bare = before_arguments(s);
    if (bare.len < s.len) {
        n = text_end(out, bare, columns - ARGUMENTS);
        buf_str(out, STR("<…>"));
        return n + ARGUMENTS;
    }
    if (name.len == 0)
        return text_end(out, s, columns);
    if (n + PATH_MIN > columns)
        return text_end(out, str_trim((struct str){name.p, name.len - 2}), columns);
    text_put(out, name, n);
    return n + text_end(out, (struct str){s.p + name.len, s.len - name.len}, columns - n);
}

void text_pad_name(struct buf *out, struct str s, size_t columns)
{
    for (size_t n = text_name(out, s, columns); n < columns; n++)
        buf_char(out, ' ');
}

static double percent(int64_t part, int64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

void text_percent(struct buf *out, int64_t part, int64_t whole)
{
    if (part == 0 || whole == 0)
        buf_str(out, STR("    0 %"));
    else
        buf_printf(out, "%5.1f %%", percent(part, whole));
}

void text_percent_words(struct buf *out, int64_t part, int64_t whole)
{
    double p = percent(part, whole);
    buf_printf(out, p >= 10 || p == 0 ? "%.0f %%" : "%.1f %%", p);
}

static void put_time(struct buf *out, double ns)
{
    if (ns < 1e3)
        buf_printf(out, "%.0f ns", ns);
    else if (ns < 1e6)
        buf_printf(out, "%.1f µs", ns / 1e3);
    else if (ns < 1e9)
        buf_printf(out, "%.1f ms", ns / 1e6);
    else if (ns < 60e9)
        buf_printf(out, "%.2f s", ns / 1e9);
    else if (ns < 3600e9)
        buf_printf(out, "%.0f m %.1f s", floor(ns / 60e9), fmod(ns, 60e9) / 1e9);
    else
        buf_printf(out, "%.0f h %.0f m", floor(ns / 3600e9), floor(fmod(ns, 3600e9) / 60e9));
}

static void put_bytes(struct buf *out, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t i = 0;
    for (; bytes >= 1024 && i + 1 < COUNTOF(units); i++)
        bytes /= 1024;
    buf_printf(out, i ? "%.1f %s" : "%.0f %s", bytes, units[i]);
}

void text_value(struct buf *out, double value, struct str unit)
{
    if (str_eq(unit, STR("nanoseconds"))) {
        put_time(out, value);
    } else if (str_eq(unit, STR("bytes"))) {
        put_bytes(out, value);
    } else {
        buf_printf(out, value == floor(value) ? "%.0f " : "%.1f ", value);
        text_put(out, unit, 20);
    }
}

void text_group(struct buf *out, struct str type)
{
    const char *group = type_group(type);
    if (strcmp(group, "Other") == 0)
        text_put(out, type, 40);
    else
        buf_str(out, str_of(group));
}

void text_window(struct buf *out, const struct ask *a)
{
    char from[WINDOW_TEXT], until[WINDOW_TEXT];
    if (a->window.by_default) {
        buf_str(out, STR("last hour"));
        return;
    }
    window_format(a->window.from_ns, from);
    window_format(a->window.until_ns, until);
    buf_printf(out, "%.16sZ to %.16sZ", from, until);
}

static double shown_total(const struct gathered *g)
{
    double total = (double)gather_total(g);
    if (g->type->aggregation == AGG_AVERAGE && g->tally.profiles)
        total = total * (double)g->tally.series / (double)g->tally.profiles;
    return total;
}

static void put_rest(struct buf *out, const struct ask *a, const struct gathered *g)
{
    buf_str(out, STR(" · "));
    if (g->type) {
        text_put(out, g->type->type, 24);
        buf_str(out, STR(" · "));
    }
    text_window(out, a);
    buf_printf(out, " · %" PRIu64 " profile%s", g->tally.profiles, g->tally.profiles == 1 ? "" : "s");
    if (g->type) {
        buf_str(out, STR(" · "));
        text_value(out, shown_total(g), g->type->unit);
    }
    buf_char(out, '\n');
}

void text_head(struct buf *out, const struct ask *a, const struct gathered *g)
{
    enum { SERVICE_MAX = 40 };
    struct buf rest = {0};
    struct str service = gather_service(a, g);
    put_rest(&rest, a, g);
    size_t used = count_columns(buf_view(&rest), TEXT_COLUMNS), room = used < TEXT_COLUMNS ? TEXT_COLUMNS - used : 1;
    text_put(out, service.len ? service : STR("all services"), room < SERVICE_MAX ? room : SERVICE_MAX);
    buf_str(out, buf_view(&rest));
    out->failed |= rest.failed;
    buf_free(&rest);
}
