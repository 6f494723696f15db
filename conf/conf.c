/* A configuration from its file: the defaults, then what the file says, then what must hold between options. */
#include "conf/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/check.h"
#include "conf/option.h"

enum { ARENA_BYTES = 16 * 1024 * 1024, SECRET_FILE_MAX = 4096 };

/* What conf_parse returns the first member of; the arena holds everything that it points to. */
struct loaded {
    struct conf conf;
    struct arena *arena;
};

/* All of a regular file, at most `max` bytes. false: `why` says what is wrong. */
static bool read_file(const char *path, size_t max, struct buf *out, const char **why)
{
    char piece[8192];
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        *why = strerror(errno);
        return false;
    }
    while ((n = read(fd, piece, sizeof piece)) > 0 && out->len <= max)
        buf_add(out, piece, (size_t)n);
    *why = n < 0 ? strerror(errno) : out->failed ? "out of memory" : out->len > max ? "too large" : NULL;
    close(fd);
    return *why == NULL;
}

/* NAME_file: the value is in a file; line ends behind it do not count. */
static void set_from_file(const struct source *s, struct conf *c, const struct option *o, const struct doc_node *n)
{
    struct doc_node value = *n;
    struct buf b = {0};
    const char *why = NULL;

    if (n->kind != DOC_TEXT || n->text.len == 0) {
        doc_error(s, n->line, n->col, "%s_file: needs the path of a file", o->name.p);
        return;
    }
    if (!read_file(n->text.p, SECRET_FILE_MAX, &b, &why)) {
        doc_error(s, n->line, n->col, "%s_file: %s: %s", o->name.p, n->text.p, why);
        buf_free(&b);
        return;
    }
    struct str text = buf_view(&b);
    while (text.len && (text.p[text.len - 1] == '\n' || text.p[text.len - 1] == '\r'))
        text.len--;
    value.quoted = true;
    if (c->n_secret_files < CONF_SECRET_FILES)
        c->secret_files[c->n_secret_files++] = n->text.p;
    if (text.len && (memchr(text.p, '\0', text.len) || memchr(text.p, '\n', text.len)))
        doc_error(s, n->line, n->col, "%s_file: %s is not one line of text", o->name.p, n->text.p);
    else if (!arena_str(s->arena, text, &value.text))
        doc_error(s, n->line, n->col, "out of memory");
    else
        option_set(s, c, o, &value);
    buf_free(&b);
}

/* `off` for a section whose parts can all be switched off. */
static bool section_off(struct conf *c, struct str name, const struct doc_node *n)
{
    if (n->kind != DOC_TEXT || !str_eq(n->text, STR("off")) ||
        !(str_eq(name, STR("accept_window")) || str_eq(name, STR("anonymous"))))
        return false;
    for (size_t i = 0; i < option_count(); i++)
        if (str_starts(option_at(i)->name, name))
            option_set_off(c, option_at(i));
    return true;
}

static void walk(const struct source *s, struct conf *c, struct str section, const struct doc_node *map);

static void set_one(const struct source *s, struct conf *c, struct str section, const struct doc_node *n)
{
    char name[128];
    int len = snprintf(name, sizeof name, "%.*s%s%.*s", STR_ARG(section), section.len ? "." : "", STR_ARG(n->key));
    struct str path = {name, len < 0 ? 0 : (size_t)len};
    const struct option *o = NULL;

    if (path.len >= sizeof name || n->key.len == 0) {
        doc_error(s, n->key_line, n->key_col, "unknown option");
    } else if ((o = option_find(path))) {
        option_set(s, c, o, n);
    } else if ((o = option_of_file(path))) {
        set_from_file(s, c, o, n);
    } else if (!option_is_section(path)) {
        doc_error(s, n->key_line, n->key_col, "unknown option \"%s\"", name);
    } else if (n->kind == DOC_MAP) {
        walk(s, c, path, n);
    } else if (!section_off(c, path, n)) {
        doc_error(s, n->line, n->col, "%s: needs its options below it", name);
    }
}

/* An option and its twin in one map. */
static void refuse_twins(const struct source *s, const struct doc_node *map)
{
    for (const struct doc_node *a = map->first; a; a = a->next) {
        const struct option *o = option_of_file(a->key);
        for (const struct doc_node *b = map->first; o && b; b = b->next)
            if (str_eq(b->key, o->name))
                doc_error(s, a->key_line, a->key_col, "%s_file and %s are both given", o->name.p, o->name.p);
    }
}

/* The two call each other once per section: options are at most one section deep. */
static void walk(const struct source *s, struct conf *c, struct str section, const struct doc_node *map)
{
    for (const struct doc_node *n = map->first; n; n = n->next)
        set_one(s, c, section, n);
    if (section.len == 0)
        refuse_twins(s, map);
}

/* The defaults are read like any file, so they can be nothing that a file could not say. */
static void set_defaults(const struct source *s, struct conf *c)
{
    for (size_t i = 0; i < option_count(); i++) {
        const struct option *o = option_at(i);
        struct doc_node *n = doc_parse(s, str_of(o->text));
        if (n)
            option_set(s, c, o, n);
    }
}

static void cap_decoded(struct conf *c)
{
    if (c->limits.decoded > c->memory / 2)
        c->limits.decoded = c->memory / 2;
}

static void apply(const struct source *s, struct conf *c, const struct doc_node *root)
{
    if (root->kind != DOC_MAP) {
        doc_error(s, root->line, root->col, "needs options: \"name: value\"");
        return;
    }
    walk(s, c, STR(""), root);
    /* Less memory alone means smaller requests; only who asks for both is told that they do not fit together. */
    if (!doc_find(root, STR("limits.decoded")))
        cap_decoded(c);
}

struct conf *conf_parse(struct str yaml, const char *file_name, struct conf_errors *errors)
{
    unsigned before = errors->count;
    struct loaded *l = calloc(1, sizeof *l);
    struct source s = {.file = file_name, .errors = errors};

    if (l)
        s.arena = l->arena = arena_new(ARENA_BYTES);
    if (!s.arena) {
        doc_error(&s, 0, 0, "out of memory");
        free(l);
        return NULL;
    }
    set_defaults(&s, &l->conf);
    struct doc_node *root = errors->count == before ? doc_parse(&s, yaml) : NULL;
    if (root)
        apply(&s, &l->conf, root);
    if (errors->count == before)
        check_all(&s, &l->conf, root);
    if (errors->count != before) {
        conf_free(&l->conf);
        return NULL;
    }
    return &l->conf;
}

struct conf *conf_load(const char *path, struct conf_errors *errors)
{
    struct source s = {.file = path, .errors = errors};
    struct buf b = {0};
    struct conf *c = NULL;
    const char *why = NULL;

    if (!path)
        path = getenv("FLAMEGATE_CONFIG");
    if (!path || !*path)
        return conf_parse(STR(""), "defaults", errors);
    s.file = path;
    if (read_file(path, DOC_BYTES_MAX, &b, &why))
        c = conf_parse(buf_view(&b), path, errors);
    else
        doc_error(&s, 0, 0, "%s", why);
    buf_free(&b);
    return c;
}

void conf_free(struct conf *c)
{
    if (!c)
        return;
    struct loaded *l = (struct loaded *)(void *)c; /* its first member */
    arena_free(l->arena);
    free(l);
}

void conf_restart_only(const struct conf *now, const struct conf *next, struct buf *names)
{
    for (size_t i = 0; i < option_count(); i++) {
        const struct option *o = option_at(i);
        struct buf a = {0}, b = {0};
        if (o->restart) {
            option_text(now, o, &a);
            option_text(next, o, &b);
            if (!str_eq(buf_view(&a), buf_view(&b)))
                buf_printf(names, "%s%s", names->len ? ", " : "", o->name.p);
        }
        names->failed |= a.failed || b.failed;
        buf_free(&a);
        buf_free(&b);
    }
}

void conf_text(const struct conf *c, struct buf *out)
{
    for (size_t i = 0; i < option_count(); i++) {
        buf_printf(out, "%s: ", option_at(i)->name.p);
        option_text(c, option_at(i), out);
        buf_char(out, '\n');
    }
}

/* By way of its text: whatever an option holds is written and read as the same (test/fuzz/fuzz_conf.c). */
static void copy_option(const struct source *s, struct conf *to, const struct conf *from, const struct option *o)
{
    struct buf text = {0};

    option_text(from, o, &text);
    struct doc_node *n = text.failed ? NULL : doc_parse(s, buf_view(&text));
    if (n)
        option_set(s, to, o, n);
    s->errors->text.failed |= n == NULL;
    buf_free(&text);
}

bool conf_keep_restart(struct conf *next, const struct conf *now)
{
    struct conf_errors errors = {0};
    struct loaded *l = (struct loaded *)(void *)next; /* its first member */
    struct source s = {.file = "now", .arena = l->arena, .errors = &errors};

    for (size_t i = 0; i < option_count(); i++)
        if (option_at(i)->restart)
            copy_option(&s, next, now, option_at(i));
    cap_decoded(next);
    bool good = errors.count == 0 && !errors.text.failed;
    buf_free(&errors.text);
    return good;
}

/* How closely a rule of retention.services fits: "project/service" over "service"; 0: not at all. */
static unsigned fit(struct str key, struct str project, struct str service)
{
    if (key.len == project.len + 1 + service.len && str_starts(key, project) && key.p[project.len] == '/' &&
        str_ends(key, service))
        return 2;
    return str_eq(key, service) ? 1 : 0;
}

uint32_t conf_retention_days(const struct conf *c, struct str project, struct str service)
{
    uint32_t days = c->retention_days;
    unsigned best = 0;

    for (size_t i = 0; i < c->n_retention_projects; i++)
        if (str_eq(str_of(c->retention_projects[i].key), project))
            days = c->retention_projects[i].days;
    for (size_t i = 0; i < c->n_retention_services; i++) {
        unsigned f = fit(str_of(c->retention_services[i].key), project, service);
        if (f > best) {
            best = f;
            days = c->retention_services[i].days;
        }
    }
    return days;
}
