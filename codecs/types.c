/* Lookups in codecs/types.def. The tables are short: a linear search is a few hundred nanoseconds, once per type of a
 * profile. */
#include "codecs/types.h"

#define TYPE(name, group, aggregation)
#define PRIMARY(type, unit)
#define UNIT(sent, base, factor)
#define SUFFIX(suffix, name, type, unit, timed)

static const struct {
    const char *name, *group;
    enum aggregation aggregation;
} types[] = {
#undef TYPE
#define TYPE(name, group, aggregation) {name, group, AGG_##aggregation},
#include "codecs/types.def"
#undef TYPE
#define TYPE(name, group, aggregation)
};

static const struct {
    const char *type, *unit;
} primaries[] = {
#undef PRIMARY
#define PRIMARY(type, unit) {type, unit},
#include "codecs/types.def"
#undef PRIMARY
#define PRIMARY(type, unit)
};

static const struct {
    const char *sent;
    struct unit base;
} units[] = {
#undef UNIT
#define UNIT(sent, base, factor) {sent, {{base, sizeof(base) - 1}, INT64_C(factor)}},
#include "codecs/types.def"
#undef UNIT
#define UNIT(sent, base, factor)
};

static const struct suffix suffixes[] = {
#undef SUFFIX
#define SUFFIX(suffix, name, type, unit, timed) {suffix, name, type, unit, timed},
#include "codecs/types.def"
};

static bool same_type(const char *name, struct str s)
{
    if (strlen(name) != s.len)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (name[i] != (s.p[i] == '-' ? '_' : s.p[i]))
            return false;
    return true;
}

const char *type_group(struct str type)
{
    for (size_t i = 0; i < COUNTOF(types); i++)
        if (same_type(types[i].name, type))
            return types[i].group;
    return "Other";
}

enum aggregation type_aggregation(struct str type)
{
    for (size_t i = 0; i < COUNTOF(types); i++)
        if (same_type(types[i].name, type))
            return types[i].aggregation;
    return AGG_SUM;
}

int type_primary_rank(struct str type, struct str unit)
{
    for (size_t i = 0; i < COUNTOF(primaries); i++)
        if (same_type(primaries[i].type, type) && (!primaries[i].unit || str_eq(str_of(primaries[i].unit), unit)))
            return (int)i;
    return (int)COUNTOF(primaries);
}

struct unit unit_normal(struct str unit)
{
    for (size_t i = 0; i < COUNTOF(units); i++)
        if (str_eq_nocase(str_of(units[i].sent), unit))
            return units[i].base;
    return (struct unit){unit, 1};
}

int64_t unit_scale(int64_t value, int64_t factor, bool *saturated)
{
    int64_t r;

    if (!__builtin_mul_overflow(value, factor, &r))
        return r;
    *saturated = true;
    return (value < 0) == (factor < 0) ? INT64_MAX : INT64_MIN;
}

const struct suffix *suffix_find(struct str last_part)
{
    for (size_t i = 0; i < COUNTOF(suffixes); i++)
        if (str_eq(str_of(suffixes[i].suffix), last_part))
            return &suffixes[i];
    return NULL;
}
