/* What a project may send: the bounds for all, with those of its own in place of them (`projects`). */
#ifndef CONF_BOUNDS_H
#define CONF_BOUNDS_H

#include "codecs/base.h"
#include "codecs/limits.h"

/* rates.*: of one project, a second; 0: no limit. */
struct conf_rates {
    uint32_t requests, new_stacks;
    uint64_t bytes, burst_ms;
};

struct option;
/* An option of one project. Those of a project stand together. */
struct conf_override {
    const char *project;
    const struct option *option;
    uint64_t value;
};

/* What differs by project. */
struct conf_bounds {
    struct limits limits;
    struct conf_rates rates;
    uint32_t max_services, max_series;
};

struct conf;
void conf_bounds(const struct conf *c, struct str project, struct conf_bounds *out);

#endif
