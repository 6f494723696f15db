/* Attempts of one answer, and what became of it. */
#include "gateway/ingest/told.h"

#include <stdlib.h>

#include "gateway/ingest/submit.h"

struct told *told_new(struct app *app, uint32_t cap)
{
    struct told *t = calloc(1, sizeof *t + cap * sizeof t->attempts[0]);

    if (!t)
        return NULL;
    t->app = app;
    t->cap = cap;
    return t;
}

void told_written(struct told *t, bool yes)
{
    for (uint32_t i = 0; i < t->n; i++)
        submit_told(t->app->submit, t->attempts[i], yes);
    submit_run(t->app->submit);
}

void told_untold(struct told *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        submit_untold(t->app->submit, t->attempts[i]);
    submit_run(t->app->submit);
    free(t);
}

void told_final(struct told *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->n; i++)
        submit_final(t->app->submit, t->attempts[i]);
    free(t);
}
