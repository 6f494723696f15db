/* What a router does with a captured head: path, query and content type to an upload_spec. */
#include "test/oracle/capture.h"

#include "test/oracle/feed.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

struct str capture_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    ASSERT(f);
    ASSERT(fseek(f, 0, SEEK_END) == 0);
    long n = ftell(f);
    rewind(f);
    char *p = malloc((size_t)n + 1);
    ASSERT(p && fread(p, 1, (size_t)n, f) == (size_t)n);
    p[n] = 0;
    fclose(f);
    return (struct str){p, (size_t)n};
}

static const char *header(const struct capture *c, const char *name)
{
    json_t *list = json_object_get(c->wire, "headers");

    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *pair = json_array_get(list, i);
        if (strcasecmp(json_string_value(json_array_get(pair, 0)), name) == 0)
            return json_string_value(json_array_get(pair, 1));
    }
    return "";
}

static char *url_decoded(const char *p, size_t n)
{
    char *out = calloc(1, n + 1), *o = out;

    ASSERT(out);
    for (size_t i = 0; i < n; i++) {
        char hex[3] = {0};
        if (p[i] == '%' && i + 2 < n) {
            hex[0] = p[i + 1];
            hex[1] = p[i + 2];
            *o++ = (char)strtol(hex, NULL, 16);
            i += 2;
        } else {
            *o++ = p[i] == '+' ? ' ' : p[i];
        }
    }
    return out;
}

static struct str param(struct capture *c, size_t slot, const char *name)
{
    const char *p = strchr(json_string_value(json_object_get(c->wire, "target")), '?');
    size_t n = strlen(name);

    for (; p; p = strchr(p, '&')) {
        p++;
        if (strncmp(p, name, n) == 0 && p[n] == '=') {
            c->memory[slot] = url_decoded(p + n + 1, strcspn(p + n + 1, "&"));
            return str_of(c->memory[slot]);
        }
    }
    return (struct str){"", 0};
}

static enum upload_kind kind_of(const struct capture *c)
{
    const char *payload = json_string_value(json_object_get(c->expect, "payload"));
    static const char *const names[] = {"pprof", "multipart pprof", "folded", "push proto", "push json"};

    for (size_t i = 0; i < COUNTOF(names); i++)
        if (strcmp(payload, names[i]) == 0)
            return (enum upload_kind)i;
    return UPLOAD_KINDS;
}

static void fill(struct capture *c, const struct hash_key *key)
{
    const char *coding = header(c, "content-encoding"), *boundary = strstr(header(c, "content-type"), "boundary=");

    c->spec = (struct upload_spec){.kind = kind_of(c),
                                   .coding = strcmp(coding, "gzip") == 0   ? CODING_GZIP
                                             : strcmp(coding, "zstd") == 0 ? CODING_ZSTD
                                                                           : CODING_IDENTITY,
                                   .boundary = str_of(boundary ? boundary + 9 : ""),
                                   .project = STR("team-a"),
                                   .now_ns = INT64_C(1796080000000000000),
                                   .window_past_ns = -1,
                                   .window_future_ns = -1,
                                   .keep_originals = true,
                                   .limits = &feed_limits,
                                   .key = key};
    c->spec.params = (struct ingest_params){param(c, 0, "name"), param(c, 1, "from"), param(c, 2, "until"),
                                            param(c, 3, "sampleRate"), param(c, 4, "spyName")};
    c->taken = c->spec.kind != UPLOAD_KINDS;
}

static void one(const char *path, const struct hash_key *key, void (*each)(struct capture *c, void *ctx), void *ctx)
{
    struct capture c = {0};
    char other[512];
    int stem = (int)strlen(path) - 5; /* without .body */

    snprintf(c.name, sizeof c.name, "%.*s", stem - (int)strlen("test/corpus/"), path + strlen("test/corpus/"));
    snprintf(other, sizeof other, "%.*s.json", stem, path);
    c.wire = json_load_file(other, 0, NULL);
    snprintf(other, sizeof other, "%.*s.expect.json", stem, path);
    c.expect = json_load_file(other, 0, NULL);
    ASSERT(c.wire && c.expect);
    c.body = capture_file(path);
    fill(&c, key);
    each(&c, ctx);
    for (size_t i = 0; i < COUNTOF(c.memory); i++)
        free(c.memory[i]);
    memcpy(&c.memory[0], &c.body.p, sizeof c.body.p);
    free(c.memory[0]);
    json_decref(c.wire);
    json_decref(c.expect);
}

size_t capture_each(const struct hash_key *key, void (*each)(struct capture *c, void *ctx), void *ctx)
{
    glob_t g;

    ASSERT(glob("test/corpus/*/*.body", 0, NULL, &g) == 0);
    size_t n = g.gl_pathc;
    for (size_t i = 0; i < n; i++)
        one(g.gl_pathv[i], key, each, ctx);
    globfree(&g);
    return n;
}
