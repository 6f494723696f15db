/* Selectors from anybody: parse, then apply to a series, a type and samples. What parses must agree with itself. */
#include <stdint.h>
#include <stdlib.h>

#include "gateway/query/selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct label labels[] = {
    {{"env", 3}, {"lab", 3}}, {{"host.name", 9}, {"h1", 2}}, {{"service_name", 12}, {"shop", 4}}};
static const struct series series = {
    .service = {"shop", 4}, .name = {"process_cpu", 11}, .labels = labels, .n_labels = 3};
static const struct sample_label set[] = {{.key = {"tenant", 6}, .value = {"a", 1}},
                                          {.key = {"v", 1}, .value = {"aaaaaaaaaaaaab", 14}}};

static void apply(struct selector *s)
{
    struct fault f = {0};
    enum verdict v = selector_series(s, &series);
    bool type = selector_type(s, STR("process_cpu:cpu:nanoseconds:cpu:nanoseconds"));
    bool sample = selector_sample(s, &series, set, COUNTOF(set));
    if (selector_error(s, &f))
        return;
    if (v != selector_series(s, &series) ||
        type != selector_type(s, STR("process_cpu:cpu:nanoseconds:cpu:nanoseconds")))
        abort();
    if (sample != selector_sample(s, &series, set, COUNTOF(set)))
        abort();
    if (v == VERDICT_OPEN && !selector_may_open(s))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct fault f = {0};
    char *copy = malloc(n ? n : 1); /* exactly as long, so that reading behind it shows */
    if (!copy)
        return 0;
    if (n)
        memcpy(copy, data, n);
    struct selector *s = selector_parse((struct str){copy, n}, &f);
    free(copy);
    if (!s && (f.err == E_OK || f.text[0] == 0))
        abort();
    if (s)
        apply(s);
    selector_free(s);
    return 0;
}
