/* libyaml's events to a tree. The only file of conf/ that knows libyaml. */
#include "conf/doc.h"

#include <stdarg.h>
#include <stdio.h>
#include <yaml.h>

#include "conf/expand.h"

/* A document being read: the open nodes, and the key that waits for its value. */
struct builder {
    const struct source *s;
    struct doc_node *open[DOC_DEPTH_MAX];
    unsigned depth;
    struct doc_node *root;
    struct str key;
    unsigned key_line, key_col;
    bool have_key;
    unsigned skip; /* open collections below something that was refused */
    unsigned documents;
    bool stop;
};

void doc_error(const struct source *s, unsigned line, unsigned col, const char *fmt, ...)
{
    char what[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    for (char *p = what; *p; p++) /* the file's own bytes must not talk to a terminal */
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    if (line)
        buf_printf(&s->errors->text, "%s:%u:%u: %s\n", s->file, line, col, what);
    else
        buf_printf(&s->errors->text, "%s: %s\n", s->file, what);
    s->errors->count++;
}

bool doc_is_null(const struct doc_node *n)
{
    return n->kind == DOC_TEXT && !n->quoted &&
           (n->text.len == 0 || str_eq(n->text, STR("~")) || str_eq_nocase(n->text, STR("null")));
}

const struct doc_node *doc_find(const struct doc_node *root, struct str name)
{
    const char *dot = memchr(name.p, '.', name.len);
    struct str key = {name.p, dot ? (size_t)(dot - name.p) : name.len};

    for (const struct doc_node *n = root->first; n; n = n->next)
        if (str_eq(n->key, key))
            return dot ? doc_find(n, (struct str){dot + 1, name.len - key.len - 1}) : n;
    return NULL;
}

static unsigned line_of(const yaml_event_t *e)
{
    return (unsigned)e->start_mark.line + 1;
}

static unsigned col_of(const yaml_event_t *e)
{
    return (unsigned)e->start_mark.column + 1;
}

static void refuse(struct builder *b, const yaml_event_t *e, const char *what)
{
    doc_error(b->s, line_of(e), col_of(e), "%s", what);
}

static struct doc_node *parent_of(const struct builder *b)
{
    return b->depth ? b->open[b->depth - 1] : NULL;
}

/* Whether the next scalar or collection stands where a key belongs. */
static bool wants_key(const struct builder *b)
{
    return b->depth && parent_of(b)->kind == DOC_MAP && !b->have_key;
}

static bool has_key(const struct doc_node *map, struct str key)
{
    for (const struct doc_node *n = map->first; n; n = n->next)
        if (str_eq(n->key, key))
            return true;
    return false;
}

/* The new node, linked into its parent; NULL: out of memory, or a second value of its key (refused before). */
static struct doc_node *add_node(struct builder *b, const yaml_event_t *e, enum doc_kind kind)
{
    struct doc_node *parent = parent_of(b);
    struct doc_node *n = NEW(b->s->arena, struct doc_node, 1);

    if (!n) {
        refuse(b, e, "out of memory");
        b->stop = true;
        return NULL;
    }
    n->kind = kind;
    n->line = line_of(e);
    n->col = col_of(e);
    if (!parent) {
        b->root = n;
        return n;
    }
    if (parent->kind == DOC_MAP) {
        n->key = b->key;
        n->key_line = b->key_line;
        n->key_col = b->key_col;
        b->have_key = false;
        if (has_key(parent, n->key)) {
            doc_error(b->s, n->key_line, n->key_col, "\"%.*s\" is given twice", STR_ARG(n->key));
            return n; /* not linked: the first one counts */
        }
    }
    *(parent->last ? &parent->last->next : &parent->first) = n;
    parent->last = n;
    if (++parent->n > DOC_KEYS_MAX) {
        refuse(b, e, "too many entries");
        b->stop = true;
    }
    return n;
}

static void set_key(struct builder *b, const yaml_event_t *e, struct str text)
{
    b->key_line = line_of(e);
    b->key_col = col_of(e);
    b->have_key = true;
    if (!arena_str(b->s->arena, text, &b->key)) {
        refuse(b, e, "out of memory");
        b->stop = true;
    }
}

static void set_text(struct builder *b, const yaml_event_t *e, struct doc_node *n, struct str raw)
{
    struct fault f = {0};
    struct str copy;

    if (!arena_str(b->s->arena, raw, &copy) || expand(b->s->arena, copy, &n->text, &f) == E_NO_MEMORY) {
        refuse(b, e, "out of memory");
        b->stop = true;
    } else if (f.err != E_OK) {
        n->text = copy;
        refuse(b, e, f.text);
    }
}

static void on_scalar(struct builder *b, const yaml_event_t *e)
{
    struct str text = {(const char *)e->data.scalar.value, e->data.scalar.length};

    if (e->data.scalar.anchor)
        refuse(b, e, "anchors are not allowed");
    if (e->data.scalar.tag || (e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !e->data.scalar.plain_implicit))
        refuse(b, e, "tags are not allowed");
    if (text.len && memchr(text.p, '\0', text.len)) {
        refuse(b, e, "a NUL character is not allowed");
        text.len = strlen(text.p);
    }
    if (b->skip)
        return;
    if (wants_key(b)) {
        set_key(b, e, text);
        return;
    }
    struct doc_node *n = add_node(b, e, DOC_TEXT);
    if (!n)
        return;
    n->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    set_text(b, e, n, text);
}

static void on_open(struct builder *b, const yaml_event_t *e, enum doc_kind kind)
{
    bool list = kind == DOC_LIST;

    if (list ? e->data.sequence_start.anchor != NULL : e->data.mapping_start.anchor != NULL)
        refuse(b, e, "anchors are not allowed");
    if (list ? e->data.sequence_start.tag != NULL : e->data.mapping_start.tag != NULL)
        refuse(b, e, "tags are not allowed");
    if (b->skip || wants_key(b)) {
        if (b->skip++ == 0)
            refuse(b, e, "a key must be plain text");
        return;
    }
    if (b->depth == DOC_DEPTH_MAX) {
        refuse(b, e, "nested too deeply");
        b->stop = true;
        return;
    }
    struct doc_node *n = add_node(b, e, kind);
    if (n)
        b->open[b->depth++] = n;
}

static void on_close(struct builder *b)
{
    if (b->skip == 0) {
        b->depth--;
    } else if (--b->skip == 0) {
        b->key = STR("?"); /* stands for the key that was refused, and takes its value */
        b->have_key = true;
    }
}

static void on_alias(struct builder *b, const yaml_event_t *e)
{
    refuse(b, e, "aliases are not allowed");
    if (b->skip)
        return;
    if (wants_key(b))
        set_key(b, e, STR("*"));
    else
        add_node(b, e, DOC_TEXT);
}

static void on_document(struct builder *b, const yaml_event_t *e)
{
    const yaml_tag_directive_t *tags = e->data.document_start.tag_directives.start;

    if (e->data.document_start.version_directive || tags != e->data.document_start.tag_directives.end)
        refuse(b, e, "directives are not allowed");
    if (++b->documents > 1) {
        refuse(b, e, "only one document is allowed");
        b->stop = true;
    }
}

static void on_event(struct builder *b, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        on_document(b, e);
        break;
    case YAML_SCALAR_EVENT:
        on_scalar(b, e);
        break;
    case YAML_ALIAS_EVENT:
        on_alias(b, e);
        break;
    case YAML_SEQUENCE_START_EVENT:
        on_open(b, e, DOC_LIST);
        break;
    case YAML_MAPPING_START_EVENT:
        on_open(b, e, DOC_MAP);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        on_close(b);
        break;
    case YAML_STREAM_END_EVENT:
        b->stop = true;
        break;
    default:
        break;
    }
}

static void syntax_error(const struct source *s, const yaml_parser_t *p)
{
    const char *what = p->problem ? p->problem : p->error == YAML_MEMORY_ERROR ? "out of memory" : "not YAML";

    if (p->error == YAML_READER_ERROR)
        doc_error(s, 0, 0, "%s, at byte %zu", what, p->problem_offset);
    else
        doc_error(s, (unsigned)p->problem_mark.line + 1, (unsigned)p->problem_mark.column + 1, "%s%s%s", what,
                  p->context ? ", " : "", p->context ? p->context : "");
}

/* false: a syntax error, listed. */
static bool read_events(struct builder *b, yaml_parser_t *p)
{
    while (!b->stop) {
        yaml_event_t e;
        if (!yaml_parser_parse(p, &e)) {
            syntax_error(b->s, p);
            return false;
        }
        on_event(b, &e);
        yaml_event_delete(&e);
    }
    return true;
}

struct doc_node *doc_parse(const struct source *s, struct str yaml)
{
    struct builder b = {.s = s};
    yaml_parser_t p;

    if (yaml.len > DOC_BYTES_MAX) {
        doc_error(s, 0, 0, "larger than %d bytes", DOC_BYTES_MAX);
        return NULL;
    }
    if (!yaml_parser_initialize(&p)) {
        doc_error(s, 0, 0, "out of memory");
        return NULL;
    }
    yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&p, (const unsigned char *)(yaml.len ? yaml.p : ""), yaml.len);
    bool good = read_events(&b, &p);
    yaml_parser_delete(&p);
    if (!good)
        return NULL;
    if (!b.root || doc_is_null(b.root)) {
        b.root = NEW(s->arena, struct doc_node, 1);
        if (!b.root)
            doc_error(s, 0, 0, "out of memory");
        else
            b.root->kind = DOC_MAP;
    }
    return b.root;
}
