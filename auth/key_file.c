/*
 * The keys file: a YAML list with one map a key, as key_line writes it. Read strictly, and as a whole: one bad key
 * spoils the file, so that a half-edited one never takes effect.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include <yaml.h>

#include "auth/keyring.h"
#include "auth/secret.h"

#define HASH_PREFIX "blake2b-256:"

enum field { FIELD_NAME, FIELD_PROJECT, FIELD_TYPE, FIELD_ENABLED, FIELD_EXPIRES, FIELD_HASH, FIELDS };
static const char *const fields[FIELDS] = {"name", "project", "type", "enabled", "expires", "hash"};

enum place { IN_NOTHING, IN_LIST, IN_KEY, IN_VALUE, AT_END };

struct reader {
    const char *file;
    struct fault *f;
    struct keyring *ring;
    enum place place;
    unsigned documents;
    unsigned line, col; /* of the event */
    unsigned key_line;  /* of the key being read */
    enum field field;
    bool have[FIELDS];
    struct key key;
};

static enum err bad(struct reader *r, const char *what)
{
    return fault_set(r->f, E_BAD_INPUT, "%s:%u:%u: %s", r->file, r->line, r->col, what);
}

static void clear_key(struct reader *r)
{
    free(r->key.name);
    free(r->key.project);
    r->key = (struct key){.enabled = true};
    memset(r->have, 0, sizeof r->have);
}

static enum err set_copy(struct reader *r, char **to, struct str v)
{
    *to = strndup(v.p, v.len);
    return *to ? E_OK : fault_set(r->f, E_NO_MEMORY, NULL);
}

static enum err set_field(struct reader *r, struct str v)
{
    struct key *k = &r->key;

    switch (r->field) {
    case FIELD_NAME:
        return key_name_valid(v) ? set_copy(r, &k->name, v) : bad(r, "name: 1 to 100 printable characters");
    case FIELD_PROJECT:
        return key_project_valid(v) ? set_copy(r, &k->project, v)
                                    : bad(r, "project: 1 to 100 printable characters, no '/'");
    case FIELD_TYPE:
        return key_type_parse(v, &k->type) ? E_OK : bad(r, "type: server, browser, reader or admin");
    case FIELD_ENABLED:
        k->enabled = str_eq(v, STR("true"));
        return k->enabled || str_eq(v, STR("false")) ? E_OK : bad(r, "enabled: true or false");
    case FIELD_EXPIRES:
        if (str_eq(v, STR("never")))
            return E_OK;
        return key_time_parse(v, &k->expires_s) && k->expires_s > 0
                   ? E_OK
                   : bad(r, "expires: never, or a time such as 2027-01-31T00:00:00Z");
    default:
        if (!str_starts(v, STR(HASH_PREFIX)) ||
            !secret_unhex((struct str){v.p + sizeof HASH_PREFIX - 1, v.len - sizeof HASH_PREFIX + 1}, k->hash,
                          SECRET_HASH))
            return bad(r, "hash: " HASH_PREFIX " and 64 hexadecimal digits, as `flamegate key hash` prints it");
        return E_OK;
    }
}

static enum err choose_field(struct reader *r, struct str name)
{
    for (int i = 0; i < FIELDS; i++)
        if (str_eq(name, str_of(fields[i]))) {
            if (r->have[i])
                return bad(r, "given twice in one key");
            r->have[i] = true;
            r->field = (enum field)i;
            r->place = IN_VALUE;
            return E_OK;
        }
    return bad(r, "unknown; a key has name, project, type, enabled, expires, hash");
}

static enum err end_key(struct reader *r)
{
    struct fault inner = {0};

    r->place = IN_LIST;
    r->line = r->key_line;
    r->col = 1;
    if (!r->have[FIELD_NAME] || !r->have[FIELD_PROJECT] || !r->have[FIELD_TYPE] || !r->have[FIELD_HASH])
        return bad(r, "a key needs name, project, type and hash");
    enum err e = keyring_add(r->ring, &r->key, &inner);
    clear_key(r);
    return e == E_OK || e == E_NO_MEMORY ? (e ? fault_set(r->f, e, NULL) : E_OK) : bad(r, inner.text);
}

static enum err on_scalar(struct reader *r, const yaml_event_t *e)
{
    struct str v = {(const char *)e->data.scalar.value, e->data.scalar.length};

    if (e->data.scalar.anchor || e->data.scalar.tag)
        return bad(r, "anchors and tags are not allowed");
    if (v.len && memchr(v.p, '\0', v.len))
        return bad(r, "a NUL character is not allowed");
    if (r->place == IN_KEY)
        return choose_field(r, v);
    if (r->place != IN_VALUE)
        return bad(r, "needs a list of keys: - { name: …, project: …, type: …, hash: … }");
    r->place = IN_KEY;
    return set_field(r, v);
}

static enum err on_event(struct reader *r, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        return ++r->documents == 1 ? E_OK : bad(r, "only one document is allowed");
    case YAML_SEQUENCE_START_EVENT:
        if (r->place != IN_NOTHING || e->data.sequence_start.anchor || e->data.sequence_start.tag)
            return bad(r, "a list has no place here");
        r->place = IN_LIST;
        return E_OK;
    case YAML_MAPPING_START_EVENT:
        if (r->place != IN_LIST || e->data.mapping_start.anchor || e->data.mapping_start.tag)
            return bad(r, "a map has no place here: the file is a list of keys");
        r->place = IN_KEY;
        r->key_line = r->line;
        return E_OK;
    case YAML_SCALAR_EVENT:
        return on_scalar(r, e);
    case YAML_MAPPING_END_EVENT:
        return end_key(r);
    case YAML_SEQUENCE_END_EVENT:
        r->place = AT_END;
        return E_OK;
    case YAML_ALIAS_EVENT:
        return bad(r, "aliases are not allowed");
    default:
        return E_OK;
    }
}

static enum err read_events(struct reader *r, yaml_parser_t *p)
{
    for (bool end = false; !end;) {
        yaml_event_t e;
        if (!yaml_parser_parse(p, &e)) {
            r->line = (unsigned)p->problem_mark.line + 1;
            r->col = (unsigned)p->problem_mark.column + 1;
            return p->error == YAML_MEMORY_ERROR ? fault_set(r->f, E_NO_MEMORY, NULL)
                                                 : bad(r, p->problem ? p->problem : "not YAML");
        }
        r->line = (unsigned)e.start_mark.line + 1;
        r->col = (unsigned)e.start_mark.column + 1;
        enum err err = on_event(r, &e);
        end = e.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&e);
        if (err != E_OK)
            return err;
    }
    return r->ring->n ? E_OK : fault_set(r->f, E_BAD_INPUT, "%s: holds no keys", r->file);
}

struct keyring *keyring_parse(struct str yaml, const char *file_name, struct fault *f)
{
    struct reader r = {.file = file_name, .f = f, .ring = keyring_new(), .key = {.enabled = true}};
    yaml_parser_t p;

    if (!r.ring || !yaml_parser_initialize(&p)) {
        fault_set(f, E_NO_MEMORY, NULL);
        keyring_free(r.ring);
        return NULL;
    }
    yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&p, (const unsigned char *)(yaml.len ? yaml.p : ""), yaml.len);
    enum err e = read_events(&r, &p);
    yaml_parser_delete(&p);
    clear_key(&r);
    if (e == E_OK)
        return r.ring;
    keyring_free(r.ring);
    return NULL;
}

struct keyring *keyring_load(const char *path, struct fault *f)
{
    char piece[8192];
    ssize_t n;
    struct buf b = {0};
    struct keyring *ring = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        fault_set(f, errno == ENOENT ? E_NOT_FOUND : E_BAD_INPUT, "%s: %s", path, strerror(errno));
        return NULL;
    }
    while ((n = read(fd, piece, sizeof piece)) > 0 && b.len <= KEY_FILE_MAX)
        buf_add(&b, piece, (size_t)n);
    if (n < 0)
        fault_set(f, E_BAD_INPUT, "%s: %s", path, strerror(errno));
    else if (b.failed)
        fault_set(f, E_NO_MEMORY, NULL);
    else if (b.len > KEY_FILE_MAX)
        fault_set(f, E_BAD_INPUT, "%s: larger than %d bytes", path, KEY_FILE_MAX);
    else
        ring = keyring_parse(buf_view(&b), path, f);
    close(fd);
    buf_free(&b);
    return ring;
}

/* Double quotes, everything but visible ASCII escaped: a name cannot become structure. */
static void quoted(struct buf *out, const char *s)
{
    buf_char(out, '"');
    for (const uint8_t *p = (const uint8_t *)s; *p;) {
        size_t n = *p < 0x80 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
        uint32_t cp = n == 1 ? *p : *p & (0xffu >> (n + 1));
        for (size_t i = 1; i < n && p[i]; i++)
            cp = cp << 6 | (p[i] & 0x3f);
        if (n > 1 || cp == '"' || cp == '\\')
            buf_printf(out, "\\U%08" PRIX32, cp);
        else
            buf_char(out, (char)cp);
        p += n;
    }
    buf_char(out, '"');
}

void key_line(const struct key *k, struct buf *out)
{
    char hash[2 * SECRET_HASH + 1], expires[TIME_TEXT] = "never";

    secret_hex(k->hash, SECRET_HASH, hash);
    if (k->expires_s)
        key_time_format(k->expires_s, expires);
    buf_str(out, STR("- { name: "));
    quoted(out, k->name);
    buf_str(out, STR(", project: "));
    quoted(out, k->project);
    buf_printf(out, ", type: %s, enabled: %s, expires: \"%s\", hash: \"" HASH_PREFIX "%s\" }\n",
               key_type_names[k->type], k->enabled ? "true" : "false", expires, hash);
}
