/* The table of options, and a value as text. */
#include "conf/option.h"

#include <inttypes.h>

#include "conf/network.h"
#include "conf/override.h"
#include "conf/value.h"

enum { LIVE, RESTART };

static const struct option options[] = {
#define OPT(kind_, name_, field_, count_, text_, least_, most_, reload_, help_)                                        \
    {.name = {name_, sizeof name_ - 1},                                                                                \
     .kind = OPTION_##kind_,                                                                                           \
     .field = offsetof(struct conf, field_),                                                                           \
     .width = sizeof((struct conf *)0)->field_,                                                                        \
     .count = offsetof(struct conf, count_),                                                                           \
     .text = text_,                                                                                                    \
     .least = least_,                                                                                                  \
     .most = most_,                                                                                                    \
     .restart = reload_ == RESTART,                                                                                    \
     .help = help_},
#include "conf/options.def"
#undef OPT
};

static const struct option_word roles[] = {{"ingest", ROLE_INGEST}, {"query", ROLE_QUERY}, {NULL, 0}};
static const struct option_word may[] = {{"send", MAY_SEND}, {"read", MAY_READ}, {NULL, 0}};
static const struct option_word migrate[] = {{"auto", 1}, {"manual", 0}, {NULL, 0}};
static const struct option_word formats[] = {{"logfmt", LOG_LOGFMT}, {"json", LOG_JSON}, {NULL, 0}};
static const struct option_word levels[] = {{"error", 0}, {"warn", 1}, {"info", 2}, {"debug", 3}, {NULL, 0}};

size_t option_count(void)
{
    return COUNTOF(options);
}

const struct option *option_at(size_t i)
{
    ASSERT(i < COUNTOF(options));
    return &options[i];
}

const struct option *option_find(struct str name)
{
    for (size_t i = 0; i < COUNTOF(options); i++)
        if (str_eq(options[i].name, name))
            return &options[i];
    return NULL;
}

bool option_is_section(struct str name)
{
    for (size_t i = 0; i < COUNTOF(options); i++)
        if (str_starts(options[i].name, name) && options[i].name.p[name.len] == '.')
            return true;
    return false;
}

const struct option *option_of_file(struct str name)
{
    if (!str_ends(name, STR("_file")))
        return NULL;
    const struct option *o = option_find((struct str){name.p, name.len - 5});
    return o && o->kind == OPTION_STORE ? o : NULL;
}

bool option_is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}

bool option_is_project(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool c1 = c == 0xc2 && i + 1 < s.len && (unsigned char)s.p[i + 1] < 0xa0;
        if (c < ' ' || c == 0x7f || c == '/' || c1)
            return false;
    }
    return s.len >= 1 && s.len <= 100 && utf8_valid(s) && str_eq(str_trim(s), s);
}

const struct option_word *option_words(enum option_kind kind)
{
    switch (kind) {
    case OPTION_ROLES:
        return roles;
    case OPTION_MAY:
        return may;
    case OPTION_MIGRATE:
        return migrate;
    case OPTION_FORMAT:
        return formats;
    default:
        return levels;
    }
}

void option_number_text(struct buf *b, enum option_kind kind, uint64_t v)
{
    if (kind == OPTION_SIZE)
        value_size_text(b, v);
    else if (kind == OPTION_COUNT)
        buf_printf(b, "%" PRIu64, v);
    else
        value_time_text(b, v);
}

static uint64_t get_number(const struct conf *c, const struct option *o)
{
    const char *at = (const char *)c + o->field;
    uint64_t v = 0;
    uint32_t v32;
    bool v1;

    if (o->width == sizeof v) {
        memcpy(&v, at, sizeof v);
    } else if (o->width == sizeof v32) {
        memcpy(&v32, at, sizeof v32);
        v = v32;
    } else {
        memcpy(&v1, at, sizeof v1);
        v = v1;
    }
    return v;
}

static const void *get_pointer(const struct conf *c, size_t offset)
{
    const void *p;
    memcpy(&p, (const char *)c + offset, sizeof p);
    return p;
}

static size_t get_count(const struct conf *c, const struct option *o)
{
    size_t n;
    memcpy(&n, (const char *)c + o->count, sizeof n);
    return n;
}

/* Double quotes, everything but visible ASCII escaped: no byte of a value can be structure. */
static void quoted(struct buf *b, struct str s, bool value)
{
    buf_char(b, '"');
    for (size_t i = 0; i < s.len;) {
        const uint8_t *p = (const uint8_t *)s.p + i;
        size_t n = *p < 0x80 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
        uint32_t cp = n == 1 ? *p : *p & (0xffu >> (n + 1));
        for (size_t k = 1; k < n && i + k < s.len; k++)
            cp = cp << 6 | (p[k] & 0x3f);
        if (cp < 0x20 || cp > 0x7e || cp == '"' || cp == '\\')
            buf_printf(b, "\\U%08" PRIX32, cp);
        else
            buf_printf(b, "%s%c", value && cp == '$' ? "$" : "", (char)cp);
        i += n;
    }
    buf_char(b, '"');
}

static void address_text(struct buf *b, const struct conf_address *a)
{
    buf_printf(b, strchr(a->host, ':') ? "\"[%s]:%u\"" : "\"%s:%u\"", a->host, a->port);
}

static void tls_text(struct buf *b, const struct conf_address *a)
{
    buf_str(b, STR(", tls: {cert_file: "));
    quoted(b, str_of(a->cert_file), true);
    buf_str(b, STR(", key_file: "));
    quoted(b, str_of(a->key_file), true);
    if (a->client_ca_file) {
        buf_str(b, STR(", client_ca_file: "));
        quoted(b, str_of(a->client_ca_file), true);
        buf_str(b, a->client_optional ? STR(", client_certificate: optional") : STR(""));
    }
    buf_char(b, '}');
}

static void listener_text(struct buf *b, const struct conf_address *a)
{
    bool map = a->proxy_protocol || a->cert_file;

    buf_str(b, map ? STR("{address: ") : STR(""));
    address_text(b, a);
    if (a->cert_file)
        tls_text(b, a);
    buf_str(b, a->proxy_protocol ? STR(", proxy_protocol: true") : STR(""));
    buf_str(b, map ? STR("}") : STR(""));
}

void option_quoted(struct buf *b, struct str s)
{
    quoted(b, s, false);
}

static void list_text(const struct conf *c, const struct option *o, struct buf *b)
{
    const void *list = get_pointer(c, o->field);
    size_t n = get_count(c, o);

    buf_char(b, o->kind == OPTION_DAY_MAP ? '{' : '[');
    for (size_t i = 0; i < n; i++) {
        buf_str(b, i ? STR(", ") : STR(""));
        if (o->kind == OPTION_LISTEN) {
            listener_text(b, (const struct conf_address *)list + i);
        } else if (o->kind == OPTION_NETWORKS) {
            buf_char(b, '"');
            network_text(b, (const struct conf_network *)list + i);
            buf_char(b, '"');
        } else if (o->kind == OPTION_DAY_MAP) {
            const struct conf_retention *r = (const struct conf_retention *)list + i;
            quoted(b, str_of(r->key), false);
            buf_printf(b, ": %" PRIu32 "d", r->days);
        } else {
            quoted(b, str_of(((const char *const *)list)[i]), true);
        }
    }
    buf_char(b, o->kind == OPTION_DAY_MAP ? '}' : ']');
}

static void words_text(const struct option *o, uint64_t v, struct buf *b)
{
    bool set = o->kind == OPTION_ROLES || o->kind == OPTION_MAY, first = true;

    buf_str(b, set ? STR("[") : STR(""));
    for (const struct option_word *w = option_words(o->kind); w->text; w++)
        if (set ? (v & w->value) != 0 : v == w->value) {
            buf_printf(b, "%s%s", first ? "" : ", ", w->text);
            first = false;
        }
    buf_str(b, set ? STR("]") : STR(""));
}

void option_text(const struct conf *c, const struct option *o, struct buf *out)
{
    uint64_t v = o->width <= sizeof v && o->kind != OPTION_ADMIN ? get_number(c, o) : 0;

    switch (o->kind) {
    case OPTION_LISTEN:
    case OPTION_PREFIXES:
    case OPTION_HEADERS:
    case OPTION_NETWORKS:
    case OPTION_DAY_MAP:
        list_text(c, o, out);
        break;
    case OPTION_ADMIN:
        c->admin_on ? address_text(out, &c->admin) : buf_str(out, STR("off"));
        break;
    case OPTION_TEXT:
    case OPTION_STORE:
    case OPTION_PROJECT:
        quoted(out, str_of(get_pointer(c, o->field)), true);
        break;
    case OPTION_WINDOW:
        v == (uint64_t)-1 ? buf_str(out, STR("off")) : value_time_text(out, v / 1000000);
        break;
    case OPTION_DAYS:
    case OPTION_DAYS_OFF:
        v == 0 ? buf_str(out, STR("off")) : buf_printf(out, "%" PRIu64 "d", v);
        break;
    case OPTION_OVERRIDES:
        overrides_text(c, out);
        break;
    case OPTION_SIZE:
    case OPTION_COUNT:
    case OPTION_TIME:
        option_number_text(out, o->kind, v);
        break;
    default:
        words_text(o, v, out);
        break;
    }
}
