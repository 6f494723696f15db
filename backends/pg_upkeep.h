/*
 * What takes locks of tables, asked for on the loop and done on the upkeep thread; of each kind one at a time. How it
 * ended is heard by pg_pump.
 */
#ifndef BACKENDS_PG_UPKEEP_H
#define BACKENDS_PG_UPKEEP_H

#include "backends/backend.h"
#include "backends/pg_schema.h"
#include "backends/pg_worker.h"

enum { PG_CLASSES_MAX = 8, PG_AHEAD_DAYS = 3 };

struct pg_prepare_job {
    struct pg_job job; /* first */
    struct sample_store *store;
    bool running;
    enum err err;
    struct fault fault;
};

struct pg_day_job {
    struct pg_job job; /* first */
    struct sample_store *store;
    struct pg_day day;
    bool running, for_put, ok;
};

struct pg_expire_job {
    struct pg_job job; /* first */
    struct sample_store *store;
    bool running, wanted;
    int64_t now_ns; /* wanted for */
    int32_t today;  /* of the one running */
    uint16_t classes[PG_CLASSES_MAX];
    int n_classes;
    struct pg_day *dropped;
    size_t n_dropped;
    bool ahead; /* days are made for all classes */
};

enum err pg_upkeep_prepare_now(struct sample_store *s, struct fault *f); /* blocks */
void pg_upkeep_prepare(struct sample_store *s);
/* for_put: it waits in PG_PUT_MAKING_DAY. One at a time: look at `running` first. */
void pg_upkeep_make_day(struct sample_store *s, uint16_t class_days, int32_t day, bool for_put);
void pg_upkeep_expire(struct sample_store *s);
bool pg_upkeep_has_day(const struct sample_store *s, uint16_t class_days, int32_t day);
void pg_upkeep_forget_day(struct sample_store *s, uint16_t class_days, int32_t day);

#endif
