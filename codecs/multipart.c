/* A machine over delimiters, part headers and bodies. A delimiter's CR is found with memchr, the rest compared byte by
 * byte. */
#include "codecs/multipart.h"

enum { BOUNDARY_MAX = 200, HEADERS_MAX = 8192, CONFIG_MAX = 64 * 1024 };

enum part { PART_PROFILE, PART_CONFIG, PART_PREVIOUS, PART_JFR, PART_OTHER };

struct multipart {
    struct intake *in;
    char delimiter[BOUNDARY_MAX + 4]; /* CR LF - - boundary */
    size_t n_delimiter;
    size_t matched;  /* bytes of the delimiter seen */
    struct str give; /* bytes that looked like a delimiter and were content */
    enum { M_PREAMBLE, M_TAIL, M_HEADERS, M_BODY, M_PART_END, M_EPILOGUE } state;
    char tail[2]; /* behind a delimiter */
    size_t n_tail;
    char *headers; /* HEADERS_MAX */
    size_t n_headers;
    enum part part;
    uint32_t n_parts;
    struct payload *profile;
    char *config;
    size_t n_config, config_cap;
    bool had_config;
};

static enum step bad(struct multipart *m, const char *what)
{
    (void)fault_set(&m->in->fault, E_BAD_INPUT, "malformed multipart body: %s", what);
    return STEP_FAIL;
}

struct multipart *multipart_new(struct intake *in, struct str boundary)
{
    struct multipart *m = NEW(in->arena, struct multipart, 1);
    char *headers = NEW(in->arena, char, HEADERS_MAX);

    if (!m || !headers) {
        (void)intake_no_room(in);
        return NULL;
    }
    if (boundary.len == 0 || boundary.len > BOUNDARY_MAX || memchr(boundary.p, '\r', boundary.len) ||
        memchr(boundary.p, '\n', boundary.len)) {
        (void)fault_set(&in->fault, E_BAD_INPUT, "multipart: the boundary must have 1 to %d bytes", BOUNDARY_MAX);
        return NULL;
    }
    m->in = in;
    m->headers = headers;
    memcpy(m->delimiter, "\r\n--", 4);
    memcpy(m->delimiter + 4, boundary.p, boundary.len);
    m->n_delimiter = boundary.len + 4;
    m->matched = 2; /* the first delimiter needs no line end before it */
    return m;
}

static enum step take_config(struct multipart *m, struct str piece)
{
    if (m->n_config + piece.len > CONFIG_MAX)
        return bad(m, "sample_type_config is longer than 65536 bytes");
    if (m->n_config + piece.len > m->config_cap) {
        size_t cap = (m->n_config + piece.len) * 2;
        char *p = GROW(m->in->arena, m->config, char, m->config_cap, cap);
        if (!p)
            return intake_no_room(m->in);
        m->config = p;
        m->config_cap = cap;
    }
    memcpy(m->config + m->n_config, piece.p, piece.len);
    m->n_config += piece.len;
    return STEP_MORE;
}

/* Content of the part at hand. */
static enum step content(struct multipart *m, struct str *piece, uint32_t *budget)
{
    enum step s = STEP_MORE;

    if (m->state == M_BODY && m->part == PART_PROFILE)
        return piece->len ? payload_feed(m->profile, piece, budget) : STEP_MORE;
    if (m->state == M_BODY && piece->len && m->part == PART_PREVIOUS) {
        (void)fault_set(&m->in->fault, E_CUMULATIVE,
                        "prev_profile: profiles that need the one before them are not taken; update pyroscope-go");
        return STEP_FAIL;
    }
    if (m->state == M_BODY && piece->len && m->part == PART_CONFIG)
        s = take_config(m, *piece);
    budget_take(budget, piece->len);
    piece->p += piece->len;
    piece->len = 0;
    return s;
}

/* The value of parameter `key` in a header's value; quoted or not. */
static bool parameter(struct str v, struct str key, struct str *out)
{
    while (v.len) {
        const char *semi = memchr(v.p, ';', v.len);
        struct str item = {v.p, semi ? (size_t)(semi - v.p) : v.len};
        v.p += item.len + (semi != NULL);
        v.len -= item.len + (semi != NULL);
        const char *eq = memchr(item.p, '=', item.len);
        if (!eq || !str_eq_nocase(str_trim((struct str){item.p, (size_t)(eq - item.p)}), key))
            continue;
        *out = str_trim((struct str){eq + 1, item.len - (size_t)(eq + 1 - item.p)});
        if (out->len >= 2 && out->p[0] == '"' && out->p[out->len - 1] == '"')
            *out = (struct str){out->p + 1, out->len - 2};
        return true;
    }
    return false;
}

static struct str part_name(struct str headers)
{
    struct str name = {"", 0};

    while (headers.len) {
        const char *end = memchr(headers.p, '\n', headers.len);
        struct str line = {headers.p, end ? (size_t)(end - headers.p) : headers.len};
        headers.p += line.len + (end != NULL);
        headers.len -= line.len + (end != NULL);
        const char *colon = memchr(line.p, ':', line.len);
        if (!colon ||
            !str_eq_nocase(str_trim((struct str){line.p, (size_t)(colon - line.p)}), STR("content-disposition")))
            continue;
        struct str value = str_trim((struct str){colon + 1, line.len - (size_t)(colon + 1 - line.p)});
        if (parameter(value, STR("name"), &name))
            return name;
    }
    return name;
}

static enum step begin_part(struct multipart *m)
{
    struct str name = part_name((struct str){m->headers, m->n_headers});

    m->state = M_BODY;
    m->matched = 0;
    m->part = PART_OTHER;
    if (++m->n_parts > m->in->limits->parts) {
        (void)fault_set(&m->in->fault, E_TOO_MANY_PARTS,
                        "multipart body has more parts than limits.parts (%u): %u seen", m->in->limits->parts,
                        m->n_parts);
        return STEP_FAIL;
    }
    if (str_eq(name, STR("jfr"))) {
        (void)fault_set(&m->in->fault, E_UNSUPPORTED_TYPE, "JFR (Java Flight Recorder) is not taken here; send pprof");
        return STEP_FAIL;
    }
    if (str_eq(name, STR("prev_profile")))
        m->part = PART_PREVIOUS;
    if (str_eq(name, STR("sample_type_config"))) {
        if (m->had_config)
            return bad(m, "two parts sample_type_config");
        m->had_config = true;
        m->part = PART_CONFIG;
    }
    if (str_eq(name, STR("profile"))) {
        if (m->profile)
            return bad(m, "two parts profile");
        m->part = PART_PROFILE;
        m->profile = payload_new(m->in, PAYLOAD_PPROF, true);
        return m->profile ? STEP_MORE : STEP_FAIL;
    }
    return STEP_MORE;
}

/* Preamble or content, up to a delimiter. */
static enum step scan(struct multipart *m, struct str *in, uint32_t *budget)
{
    if (m->give.len) {
        enum step s = content(m, &m->give, budget);
        if (s != STEP_MORE)
            return s;
    }
    if (m->matched == 0) {
        const char *cr = memchr(in->p, '\r', in->len);
        struct str piece = {in->p, cr ? (size_t)(cr - in->p) : in->len}, rest = piece;
        enum step s = content(m, &rest, budget);
        in->p += piece.len - rest.len;
        in->len -= piece.len - rest.len;
        if (s != STEP_MORE || !cr)
            return s;
    }
    while (in->len && m->matched < m->n_delimiter && *in->p == m->delimiter[m->matched]) {
        m->matched++;
        in->p++;
        in->len--;
    }
    if (m->matched == m->n_delimiter) {
        m->state = m->state == M_BODY ? M_PART_END : M_TAIL;
        m->n_tail = 0;
        m->n_headers = 0;
    } else if (in->len) {
        m->give = (struct str){m->delimiter, m->matched};
        m->matched = 0;
    }
    return STEP_MORE;
}

static enum step end_part(struct multipart *m, uint32_t *budget)
{
    if (m->part == PART_PROFILE) {
        enum step s = payload_end(m->profile, budget);
        if (s != STEP_MORE)
            return s;
    }
    m->state = M_TAIL;
    return STEP_MORE;
}

/* Behind a delimiter: "--" ends it all, else white space and a line end begin a part. */
static enum step tail(struct multipart *m, struct str *in)
{
    char c = *in->p++;

    in->len--;
    if (m->n_tail == 0 && (c == ' ' || c == '\t'))
        return STEP_MORE;
    m->tail[m->n_tail++] = c;
    if (m->n_tail < 2)
        return c == '-' || c == '\r' ? STEP_MORE : bad(m, "something behind a boundary");
    if (m->tail[0] == '-' && c == '-')
        m->state = M_EPILOGUE;
    else if (m->tail[0] == '\r' && c == '\n')
        m->state = M_HEADERS;
    else
        return bad(m, "something behind a boundary");
    return STEP_MORE;
}

static enum step headers(struct multipart *m, struct str *in)
{
    while (in->len) {
        if (m->n_headers == HEADERS_MAX)
            return bad(m, "part headers longer than 8192 bytes");
        m->headers[m->n_headers++] = *in->p++;
        in->len--;
        struct str h = {m->headers, m->n_headers};
        if (str_eq(h, STR("\r\n")) || str_ends(h, STR("\r\n\r\n")))
            return begin_part(m);
    }
    return STEP_MORE;
}

static enum step step_once(struct multipart *m, struct str *in, uint32_t *budget)
{
    size_t before = in->len;
    enum step s;

    if (m->state == M_PREAMBLE || m->state == M_BODY)
        return scan(m, in, budget);
    if (m->state == M_PART_END)
        return end_part(m, budget);
    if (m->state == M_TAIL)
        s = tail(m, in);
    else if (m->state == M_HEADERS)
        s = headers(m, in);
    else
        s = content(m, in, budget);
    budget_take(budget, before - in->len);
    return s;
}

enum step multipart_feed(struct multipart *m, struct str *in, uint32_t *budget)
{
    while (in->len || m->state == M_PART_END || m->give.len) {
        if (*budget == 0)
            return STEP_AGAIN;
        struct str slice = budget_slice(*in, *budget);
        size_t given = slice.len;
        enum step s = step_once(m, &slice, budget);
        in->p += given - slice.len;
        in->len -= given - slice.len;
        if (s != STEP_MORE)
            return s;
    }
    return STEP_MORE;
}

enum step multipart_end(struct multipart *m, uint32_t *budget)
{
    struct str nothing = {"", 0};
    enum step s = multipart_feed(m, &nothing, budget);

    if (s == STEP_MORE && m->state == M_BODY && m->part == PART_PROFILE)
        s = payload_feed(m->profile, &nothing, budget); /* its own fault, if there is one, comes first */
    if (s != STEP_MORE)
        return s;
    if (m->state == M_PREAMBLE)
        return bad(m, "no boundary in it");
    return m->state == M_EPILOGUE ? STEP_MORE : bad(m, "it ends without the last boundary");
}

struct payload *multipart_profile(const struct multipart *m)
{
    return m->profile;
}

struct str multipart_config(const struct multipart *m)
{
    return (struct str){m->config ? m->config : "", m->n_config};
}

void multipart_drop(struct multipart *m)
{
    if (m)
        payload_drop(m->profile);
}
