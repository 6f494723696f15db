/* Writes the row of a function: what it is, then its amounts, then its shares. */
#include "gateway/query/fnrow.h"

static void put_int(struct json *j, const char *key, int64_t v)
{
    json_key(j, key);
    json_int(j, v);
}

static void put_share(struct json *j, const char *key, int64_t part, int64_t whole)
{
    json_key(j, key);
    json_share(j, part, whole);
}

void fnrow_put(struct json *j, const struct fn *f, int64_t whole, bool own)
{
    json_open(j, '{');
    json_key(j, "function");
    json_str(j, f->id.name);
    json_key(j, "file");
    json_str(j, f->id.file);
    put_int(j, "line", f->line > 0 ? f->line : 0);
    json_key(j, "own_code");
    json_bool(j, f->own_code);
    put_int(j, "self", f->self);
    put_int(j, "total", f->total);
    if (own)
        put_int(j, "own", f->own);
    put_share(j, "self_share", f->self, whole);
    put_share(j, "total_share", f->total, whole);
    if (own)
        put_share(j, "own_share", f->own, whole);
}
