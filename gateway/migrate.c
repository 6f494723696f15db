#include "gateway/migrate.h"

#include <stdio.h>

#include "backends/backend.h"
#include "gateway/hashkey.h"

static int report(const char *scheme, int64_t was, int64_t is)
{
    if (was == is)
        printf("samples in %s: the schema is version %lld already, nothing to do\n", scheme, (long long)is);
    else if (!was)
        printf("samples in %s: made the schema, version %lld\n", scheme, (long long)is);
    else
        printf("samples in %s: migrated from version %lld to %lld\n", scheme, (long long)was, (long long)is);
    return 0;
}

int migrate_run(const struct conf *c)
{
    struct hash_key key;
    struct store_host host = {.data_dir = c->data_dir, .key = &key};
    struct fault f = {.err = E_OK};
    struct str rest;
    const struct backend *b = backend_find(str_of(c->samples), &rest);
    int64_t was, is;

    if (b && !b->write->migrate) {
        printf("samples in %s: nothing to do, serve changes the schema when it opens the store\n", b->write->scheme);
        return 0;
    }
    if (!b)
        fault_set(&f, E_INTERNAL, "samples: no store is called that");
    else if (!hashkey_load(c->hash_key_file, &key, &f) && !b->write->migrate(&host, rest, &was, &is, &f))
        return report(b->write->scheme, was, is);
    fprintf(stderr, "not migrated: %s\n", f.text);
    return 1;
}
