/* GET services: who sends, busiest first; kernel threads that eBPF has sampled only when asked for (F18). */
#include <stdlib.h>

#include "gateway/query/endpoints.h"
#include "gateway/query/text.h"
#include "gateway/query/typesel.h"

enum kind { KIND_APPLICATION, KIND_SYSTEM, KIND_KERNEL };

/* Services of a machine itself, as agents that look at whole hosts name them. */
static const struct {
    const char *name;
    bool starts; /* else it is the whole name */
    enum kind kind;
} kinds[] = {
    {"[", true, KIND_KERNEL},           {"kernel", false, KIND_KERNEL},      {"kthreadd", false, KIND_KERNEL},
    {"kworker/", true, KIND_KERNEL},    {"ksoftirqd/", true, KIND_KERNEL},   {"kswapd", true, KIND_KERNEL},
    {"migration/", true, KIND_KERNEL},  {"rcu_", true, KIND_KERNEL},         {"swapper", true, KIND_KERNEL},
    {"systemd", true, KIND_SYSTEM},     {"dbus-", true, KIND_SYSTEM},        {"sshd", false, KIND_SYSTEM},
    {"cron", false, KIND_SYSTEM},       {"crond", false, KIND_SYSTEM},       {"rsyslogd", false, KIND_SYSTEM},
    {"containerd", true, KIND_SYSTEM},  {"dockerd", false, KIND_SYSTEM},     {"kubelet", false, KIND_SYSTEM},
    {"kube-proxy", false, KIND_SYSTEM}, {"kube-system/", true, KIND_SYSTEM}, {"init", false, KIND_SYSTEM},
    {"runc", false, KIND_SYSTEM},       {"chronyd", false, KIND_SYSTEM},     {"udevd", false, KIND_SYSTEM},
};

struct service_row {
    struct str name;
    uint64_t profiles, samples;
    int64_t first_ns, last_ns;
    struct str *types;
    uint32_t n_types, cap_types;
    enum kind kind;
};
struct services {
    struct ask *ask;
    struct tally tally;
    struct service_row *rows;
    uint32_t n, cap;
    bool kernel;
};

static enum kind kind_of(struct str name)
{
    for (size_t i = 0; i < COUNTOF(kinds); i++) {
        struct str k = str_of(kinds[i].name);
        if (kinds[i].starts ? str_starts(name, k) : str_eq(name, k))
            return kinds[i].kind;
    }
    return KIND_APPLICATION;
}

static struct service_row *find_row(struct services *s, struct str name)
{
    for (uint32_t i = s->n; i-- > 0;)
        if (str_eq(s->rows[i].name, name))
            return &s->rows[i];
    if (s->n == s->cap) {
        uint32_t cap = s->cap ? s->cap * 2 : 32;
        struct service_row *rows = GROW(s->ask->arena, s->rows, struct service_row, s->cap, cap);
        if (!rows)
            return NULL;
        s->rows = rows;
        s->cap = cap;
    }
    struct service_row *r = &s->rows[s->n];
    *r = (struct service_row){.first_ns = INT64_MAX, .last_ns = INT64_MIN, .kind = kind_of(name)};
    if (!arena_str(s->ask->arena, name, &r->name))
        return NULL;
    s->n++;
    return r;
}

static bool note_type(struct ask *a, struct service_row *r, struct str id)
{
    for (uint32_t i = 0; i < r->n_types; i++)
        if (str_eq(r->types[i], id))
            return true;
    if (r->n_types == r->cap_types) {
        uint32_t cap = r->cap_types ? r->cap_types * 2 : 4;
        struct str *types = GROW(a->arena, r->types, struct str, r->cap_types, cap);
        if (!types)
            return false;
        r->types = types;
        r->cap_types = cap;
    }
    return arena_str(a->arena, id, &r->types[r->n_types++]);
}

static enum err on_profile(void *ctx, const struct seen_profile *p)
{
    struct services *s = ctx;
    const struct stored *st = p->stored;
    struct service_row *r = find_row(s, st->series->service);
    if (!r)
        return ask_no_memory(s->ask);
    r->profiles += st->n_profiles;
    r->samples += scan_samples(p);
    r->first_ns = st->time_ns < r->first_ns ? st->time_ns : r->first_ns;
    int64_t last = st->hour ? st->hour->last_ns : st->time_ns;
    r->last_ns = last > r->last_ns ? last : r->last_ns;
    for (uint32_t i = 0; i < st->n_types; i++)
        if (!note_type(s->ask, r, st->types[i].id))
            return ask_no_memory(s->ask);
    return tally_add(&s->tally, s->ask, p);
}

static int compare_rows(const void *a, const void *b)
{
    const struct service_row *x = a, *y = b;
    if (x->samples != y->samples)
        return x->samples > y->samples ? -1 : 1;
    return str_cmp(x->name, y->name);
}

static int compare_strs(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void put_time(struct json *j, const char *key, int64_t ns)
{
    char text[WINDOW_TEXT];
    window_format(ns, text);
    json_key(j, key);
    json_str(j, str_of(text));
}

static const char *kind_name(enum kind k)
{
    static const char *const names[] = {"application", "system", "kernel"};
    return names[k];
}

static void put_row(struct json *j, struct service_row *r)
{
    json_open(j, '{');
    json_key(j, "service");
    json_str(j, r->name);
    json_key(j, "profiles");
    json_uint(j, r->profiles);
    json_key(j, "samples");
    json_uint(j, r->samples);
    put_time(j, "first", r->first_ns);
    put_time(j, "last", r->last_ns);
    json_key(j, "types");
    json_open(j, '[');
    if (r->n_types > 1)
        qsort(r->types, r->n_types, sizeof(*r->types), compare_strs);
    for (uint32_t i = 0; i < r->n_types; i++)
        json_str(j, r->types[i]);
    json_close(j, ']');
    json_key(j, "kind");
    json_str(j, str_of(kind_name(r->kind)));
    json_close(j, '}');
}

/* Rows up to `limit` that are shown at all; *rest counts the others that would be. */
static uint32_t choose(struct services *s, uint32_t *rest)
{
    uint32_t n = 0, limit = s->ask->limit ? s->ask->limit : UINT32_MAX;
    *rest = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->rows[i].kind == KIND_KERNEL && !s->kernel)
            continue;
        if (n < limit)
            s->rows[n++] = s->rows[i];
        else
            ++*rest;
    }
    return n;
}

static void write_json(struct services *s, uint32_t n, uint32_t rest)
{
    struct json j = {.out = &s->ask->answer->body};
    json_open(&j, '{');
    gather_list_head(&j, s->ask, &s->tally, "profiles");
    json_key(&j, "services");
    json_open(&j, '[');
    for (uint32_t i = 0; i < n; i++)
        put_row(&j, &s->rows[i]);
    json_close(&j, ']');
    json_key(&j, "other");
    json_open(&j, '{');
    json_key(&j, "services");
    json_uint(&j, rest);
    json_close(&j, '}');
    json_close(&j, '}');
}

static void write_text(struct services *s, uint32_t n, uint32_t rest)
{
    struct buf *out = &s->ask->answer->body;
    buf_printf(out, "%u service%s · ", n + rest, n + rest == 1 ? "" : "s");
    text_window(out, s->ask);
    buf_str(out, STR("\n  profiles     samples  kind         service\n"));
    for (uint32_t i = 0; i < n; i++) {
        buf_printf(out, "%10llu  %10llu  %-11s  ", (unsigned long long)s->rows[i].profiles,
                   (unsigned long long)s->rows[i].samples, kind_name(s->rows[i].kind));
        text_put(out, s->rows[i].name, TEXT_COLUMNS - 37);
        buf_char(out, '\n');
    }
    if (rest)
        buf_printf(out, "%37s(%u more)\n", "", rest);
}

enum err services_run(struct ask *a)
{
    static const char *const formats[] = {"json", "text"};
    struct services s = {.ask = a};
    size_t format;
    uint32_t rest;
    enum err e = ask_format(a, formats, COUNTOF(formats), &format);
    if (e == E_OK)
        e = params_flag(&a->params, PARAM_KERNEL, &s.kernel, &a->fault);
    if (e == E_OK)
        e = tally_open(&s.tally, a);
    if (e == E_OK)
        e = scan_profiles(
            a, &(struct scan_spec){.hours = true, .type = a->params.value[PARAM_TYPE], .visit = on_profile, .ctx = &s});
    tally_close(&s.tally, a);
    if (e)
        return e;
    if (s.n > 1)
        qsort(s.rows, s.n, sizeof(*s.rows), compare_rows);
    uint32_t n = choose(&s, &rest);
    if (format == 1)
        write_text(&s, n, rest);
    else
        write_json(&s, n, rest);
    return E_OK;
}
