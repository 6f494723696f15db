/* The identity of functions, as a value that can be hashed and compared. */
#include "codecs/identity.h"

#include <stdio.h>

/* Names that many functions share, so that only the line tells them apart. */
static bool is_anonymous(struct str name)
{
    static const char *const parts[] = {"<lambda>", "(anonymous", "<anonymous"};

    for (size_t i = 0; i < COUNTOF(parts); i++)
        if (name.len && memmem(name.p, name.len, parts[i], strlen(parts[i])))
            return true;
    return name.len == 0 || str_eq(name, STR("lambda")) || str_eq(name, STR("anonymous"));
}

struct identity identity_of(const struct function *function, const struct mapping *mapping, uint64_t address,
                            char text[IDENTITY_TEXT])
{
    if (function)
        return (struct identity){
            .name = function->name,
            .file = function->file,
            .start_line = is_anonymous(function->name) ? function->start_line : -1,
        };
    int n = snprintf(text, IDENTITY_TEXT, "0x%llx", (unsigned long long)address);
    struct identity bare = {.name = {text, (size_t)n}, .address = address, .start_line = -1};
    if (mapping) {
        bare.file = mapping->file;
        bare.build_id = mapping->build_id;
    }
    return bare;
}

struct identity identity_lone(const char *name)
{
    return (struct identity){.name = str_of(name), .start_line = -1};
}

/* Of bare addresses a build id says more than a path. */
static struct str file_key(const struct identity *i)
{
    return i->build_id.len ? (struct str){NULL, 0} : i->file;
}

uint64_t identity_hash(const struct identity *i, const struct hash_key *k)
{
    struct str file = file_key(i);
    uint64_t parts[] = {
        hash64(k, i->name.p, i->name.len),
        hash64(k, file.p, file.len),
        hash64(k, i->build_id.p, i->build_id.len),
        i->address,
        (uint64_t)i->start_line,
    };
    return hash64(k, parts, sizeof parts);
}

bool identity_eq(const struct identity *a, const struct identity *b)
{
    return a->address == b->address && a->start_line == b->start_line && str_eq(a->name, b->name) &&
           str_eq(file_key(a), file_key(b)) && str_eq(a->build_id, b->build_id);
}
