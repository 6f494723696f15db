/* The suite of conformance.h, and the world that its cases live in. Included by each store's test. */
#include "test/unit/backends/conformance.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void on_log(void *ctx, int level, const char *text)
{
    struct world *w = ctx;

    if (level == 0)
        atomic_fetch_add(&w->errors, 1);
    if (getenv("SHOW_LOG"))
        fprintf(stderr, "log %d %s\n", level, text);
}

static void on_account(void *ctx, const char *account, int64_t delta)
{
    struct world *w = ctx;

    assert_non_null(account);
    atomic_fetch_add(&w->account, delta);
}

void world_open(struct world *w)
{
    struct fault f = {0};
    struct str rest;

    w->backend = backend_find(str_of(conformance_address), &rest);
    assert_non_null(w->backend);
    w->store = w->backend->write->open(&w->host, rest, &f);
    if (!w->store)
        fail_msg("open: %s", f.text);
}

static void on_closed(void *ctx)
{
    struct world *w = ctx;

    assert_false(w->closed);
    w->closed = true;
    w->store = NULL;
}

void world_close(struct world *w)
{
    w->closed = false;
    w->backend->write->close(w->store, on_closed, w);
    assert_false(w->closed);
    while (!w->closed)
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_int_equal(atomic_load(&w->account), 0);
}

void world_reopen(struct world *w)
{
    world_close(w);
    world_open(w);
}

int world_setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    assert_int_equal(uv_loop_init(&w->loop), 0);
    snprintf(w->dir, sizeof w->dir, "/tmp/flamegate-store-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    hash_key_derive(&w->key, STR("conformance"));
    w->host = (struct store_host){
        .loop = &w->loop,
        .data_dir = w->dir,
        .key = &w->key,
        .originals_max_bytes = 1 << 20,
        .symbols_memory = 1 << 20,
        .log = on_log,
        .account = on_account,
        .ctx = w,
    };
    w->next_group = 1;
    world_open(w);
    *state = w;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

int world_teardown(void **state)
{
    struct world *w = *state;

    if (w->store)
        world_close(w);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    assert_int_equal(nftw(w->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    free(w);
    return 0;
}

enum { STACKS_MAX = 4096 };

/* A profile with one type (cpu nanoseconds) and `stacks` stacks of two frames, of which the leaf differs. */
static struct record *seal(struct world *w, const struct wish *wish, const struct record_origin *origin)
{
    static char names[STACKS_MAX + 1][24];
    static struct function functions[STACKS_MAX + 1];
    static struct frame frames[STACKS_MAX + 1];
    static uint32_t stack_at[STACKS_MAX + 1], stack_frames[2 * STACKS_MAX], sample_stack[STACKS_MAX],
        sample_set[STACKS_MAX];
    static int64_t values[STACKS_MAX];
    int64_t *columns[] = {values};
    uint32_t n = wish->stacks ? wish->stacks : 3, set_at[] = {0, 0};
    struct label labels[] = {{STR("pod"), str_of(wish->pod ? wish->pod : "a")},
                             {STR("service_name"), str_of(wish->service ? wish->service : "svc")}};
    struct sample_type type = {
        .type = STR("cpu"), .unit = STR("nanoseconds"), .id = STR("process_cpu:cpu:nanoseconds")};
    struct profile p = {
        .series = {.project = str_of(wish->project ? wish->project : "p"),
                   .service = labels[1].value,
                   .name = STR("process_cpu"),
                   .spy = STR("gospy"),
                   .labels = labels,
                   .n_labels = 2},
        .time_ns = wish->time_ns,
        .duration_ns = 10 * SECOND,
        .types = &type,
        .n_types = 1,
        .functions = functions,
        .frames = frames,
        .n_functions = n + 1,
        .n_frames = n + 1,
        .stack_at = stack_at,
        .stack_frames = stack_frames,
        .n_stacks = n,
        .set_at = set_at,
        .n_sets = 1,
        .sample_stack = sample_stack,
        .sample_set = sample_set,
        .values = columns,
        .n_samples = n,
    };

    assert_true(n <= STACKS_MAX);
    for (uint32_t i = 0; i <= n; i++) {
        snprintf(names[i], sizeof names[i], "function_%u", i == n ? 0 : 1 + wish->first_stack + i);
        functions[i] = (struct function){.name = str_of(names[i]), .file = STR("main.c")};
        frames[i] = (struct frame){.function = i, .mapping = PROFILE_NONE, .line = 10};
    }
    for (uint32_t i = 0; i < n; i++) {
        stack_at[i + 1] = 2 * (i + 1);
        stack_frames[2 * i] = n;
        stack_frames[2 * i + 1] = i;
        sample_stack[i] = i;
        values[i] = wish->value ? wish->value : 7;
        type.total += values[i];
    }
    return record_seal(&p, origin, &w->key);
}

struct record *make_record(struct world *w, struct wish wish)
{
    static uint64_t unique = 1000000;
    struct record_origin origin = {
        .format = STR("pprof"),
        .content_id = {.hi = 1, .lo = wish.content ? wish.content : unique++},
        .identity = wish.identity,
        .original = str_of(wish.original),
        .original_bytes = wish.original ? strlen(wish.original) : 99,
        .keep_original = wish.original != NULL,
    };
    struct record *r = seal(w, &wish, &origin);

    assert_non_null(r);
    return r;
}

static void on_done(struct group *g)
{
    struct world *w = g->owner;

    assert_false(w->inside_put);
    w->dones++;
}

static void start_put(struct world *w, struct group *g)
{
    g->done = on_done;
    g->owner = w;
    w->inside_put = true;
    w->backend->write->put(w->store, g);
    w->inside_put = false;
}

void put_group(struct world *w, struct group *g)
{
    int before = w->dones;

    for (uint16_t i = 0; i < g->n; i++)
        g->results[i] = PUT_AGAIN;
    start_put(w, g);
    while (w->dones == before)
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_int_equal(w->dones, before + 1);
}

static void make_group(struct world *w, struct group *g, uint16_t class_days, const struct wish *wishes, uint16_t n)
{
    *g = (struct group){.n = n, .class_days = class_days, .id = w->next_group++, .boot = 77};
    for (uint16_t i = 0; i < n; i++)
        g->records[i] = make_record(w, wishes[i]);
    g->day = (int32_t)(wishes[0].time_ns / DAY);
}

void free_group(struct group *g)
{
    for (uint16_t i = 0; i < g->n; i++) {
        record_free(g->records[i]);
        g->records[i] = NULL;
    }
}

void put_wishes(struct world *w, struct group *g, uint16_t class_days, const struct wish *wishes, uint16_t n)
{
    make_group(w, g, class_days, wishes, n);
    put_group(w, g);
    for (uint16_t i = 0; i < n; i++)
        assert_int_equal(g->results[i], PUT_STORED);
    free_group(g);
}

void put_one(struct world *w, struct group *g, uint16_t class_days, struct wish wish)
{
    put_wishes(w, g, class_days, &wish, 1);
}

static enum err on_row(void *ctx, const struct stored *s)
{
    struct seeing *to = ctx;
    struct seen *r = &to->rows[to->n++];

    assert_true(to->n < (int)COUNTOF(to->rows));
    *r = (struct seen){.attempt = s->attempt, .time_ns = s->time_ns, .total = s->types[0].total, .body = s->body.len};
    snprintf(r->service, sizeof r->service, "%.*s", STR_ARG(s->series->service));
    snprintf(r->pod, sizeof r->pod, "%.*s", STR_ARG(s->series->labels[0].value));
    return to->stop;
}

enum err see(struct world *w, struct seeing *s, const char *service, int64_t from, int64_t until, enum scan_what what)
{
    struct selection sel = {.project = STR("p"), .service = str_of(service), .from_ns = from, .until_ns = until};

    s->n = 0;
    s->fault = (struct fault){0};
    return w->backend->read->scan(w->store, &sel, what, on_row, s, &s->fault);
}

int count(struct world *w, int64_t from, int64_t until)
{
    static struct seeing s;

    assert_int_equal(see(w, &s, "", from, until, SCAN_META), E_OK);
    return s.n;
}

static void each_put_is_done_once_and_later(void **state)
{
    struct world *w = *state;
    struct group g;

    for (int i = 0; i < 20; i++)
        put_one(w, &g, 15, (struct wish){.time_ns = NOON + i});
    for (int i = 0; i < 5; i++)
        uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_int_equal(w->dones, 20);
    assert_true(w->backend->write->healthy(w->store));
    assert_int_equal(count(w, NOON, NOON + 20), 20);
}

static void a_full_group_is_stored_whole(void **state)
{
    struct world *w = *state;
    struct wish wishes[GROUP_MAX];
    struct group g;

    for (int i = 0; i < GROUP_MAX; i++)
        wishes[i] = (struct wish){.time_ns = NOON + i, .service = i % 3 ? "one" : "two", .value = i + 1};
    put_wishes(w, &g, 15, wishes, GROUP_MAX);
    assert_int_equal(count(w, NOON, NOON + GROUP_MAX), GROUP_MAX);
}

static void what_was_put_comes_back(void **state)
{
    struct world *w = *state;
    struct wish wish = {.time_ns = NOON + 5, .pod = "pod-1", .value = 11, .original = "ORIGINAL"};
    struct record *r = make_record(w, wish);
    static struct seeing s;
    struct group g = {.records = {r}, .n = 1, .class_days = 15, .day = TODAY, .id = 3, .boot = 9};

    put_group(w, &g);
    assert_int_equal(see(w, &s, "svc", NOON, NOON + 6, SCAN_BODY), E_OK);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.rows[0].attempt.boot, 9);
    assert_int_equal(s.rows[0].attempt.group, 3);
    assert_int_equal(s.rows[0].attempt.place, 0);
    assert_int_equal(s.rows[0].time_ns, NOON + 5);
    assert_int_equal(s.rows[0].total, 33);
    assert_string_equal(s.rows[0].pod, "pod-1");
    assert_int_equal(s.rows[0].body, r->body.len);
    assert_int_equal(see(w, &s, "svc", NOON, NOON + 6, SCAN_META), E_OK);
    assert_int_equal(s.rows[0].body, 0);
    free_group(&g);
}

struct deep {
    const struct record *want;
    int n;
};

static enum err compare_row(void *ctx, const struct stored *s)
{
    struct deep *d = ctx;
    const struct record *r = d->want;

    d->n++;
    assert_int_equal(s->series_id, r->series_id);
    assert_int_equal(s->duration_ns, r->duration_ns);
    assert_true(s->stored_ns > 0);
    assert_int_equal(s->n_samples, r->n_samples);
    assert_int_equal(s->primary, r->primary);
    assert_int_equal(s->n_types, r->n_types);
    assert_true(str_eq(s->format, r->format));
    assert_true(str_eq(s->trace_id, r->trace_id));
    assert_int_equal(s->original_bytes, r->original_bytes);
    assert_true(str_eq(s->body, r->body));
    assert_true(str_eq(s->series->name, r->series.name) && str_eq(s->series->spy, r->series.spy) &&
                str_eq(s->series->service, r->series.service) && str_eq(s->series->project, r->series.project));
    assert_int_equal(s->series->n_labels, r->series.n_labels);
    for (uint32_t i = 0; i < r->series.n_labels; i++)
        assert_true(str_eq(s->series->labels[i].name, r->series.labels[i].name) &&
                    str_eq(s->series->labels[i].value, r->series.labels[i].value));
    for (uint32_t i = 0; i < r->n_types; i++) {
        assert_true(str_eq(s->types[i].type, r->types[i].type) && str_eq(s->types[i].unit, r->types[i].unit) &&
                    str_eq(s->types[i].id, r->types[i].id));
        assert_int_equal(s->types[i].aggregation, r->types[i].aggregation);
        assert_int_equal(s->types[i].total, r->types[i].total);
    }
    return E_OK;
}

static void every_field_comes_back(void **state)
{
    struct world *w = *state;
    struct record *r = make_record(w, (struct wish){.time_ns = NOON, .original = "x"});
    struct selection sel = {.project = STR("p"), .from_ns = NOON, .until_ns = NOON + 1};
    struct group g = {.records = {r}, .n = 1, .class_days = 7, .day = TODAY, .id = 1, .boot = UINT64_MAX};
    struct deep d = {.want = r};
    struct fault f = {0};

    put_group(w, &g);
    assert_int_equal(w->backend->read->scan(w->store, &sel, SCAN_BODY, compare_row, &d, &f), E_OK);
    assert_int_equal(d.n, 1);
    free_group(&g);
}

static void putting_again_stores_nothing_twice(void **state)
{
    struct world *w = *state;
    struct wish wishes[] = {{.time_ns = NOON}, {.time_ns = NOON + 1}, {.time_ns = NOON + 2}};
    struct group g;

    make_group(w, &g, 15, wishes, 3);
    for (int i = 0; i < 3; i++) {
        put_group(w, &g);
        for (int j = 0; j < 3; j++)
            assert_int_equal(g.results[j], PUT_STORED);
    }
    assert_int_equal(count(w, NOON, NOON + 3), 3);
    world_reopen(w);
    put_group(w, &g);
    assert_int_equal(count(w, NOON, NOON + 3), 3);
    free_group(&g);
}

static void windows_are_half_open(void **state)
{
    static const int64_t times[] = {TODAY * DAY - 1, TODAY * DAY, NOON, TODAY * DAY + DAY - 1, TODAY * DAY + DAY};
    struct world *w = *state;
    struct group g;

    for (size_t i = 0; i < COUNTOF(times); i++)
        put_one(w, &g, i % 2 ? 15 : 90, (struct wish){.time_ns = times[i]});
    for (size_t i = 0; i < COUNTOF(times); i++)
        for (size_t j = 0; j < COUNTOF(times); j++) {
            int between = (int)j - (int)i;

            assert_int_equal(count(w, times[i], times[j]), between > 0 ? between : 0);
            assert_int_equal(count(w, times[i], times[j] + 1), between >= 0 ? between + 1 : 0);
        }
    assert_int_equal(count(w, INT64_MIN, INT64_MAX), 5);
}

static void rows_come_in_order_of_time(void **state)
{
    struct world *w = *state;
    static struct seeing s;
    struct group g;

    for (int i = 0; i < 40; i++)
        put_one(w, &g, i % 3 ? 15 : 1,
                (struct wish){.time_ns = NOON + (i * 37 % 40) * DAY / 10, .service = i % 2 ? "a" : "b"});
    assert_int_equal(see(w, &s, "", 0, INT64_MAX, SCAN_META), E_OK);
    assert_int_equal(s.n, 40);
    for (int i = 1; i < s.n; i++)
        assert_true(s.rows[i - 1].time_ns < s.rows[i].time_ns);
    assert_int_equal(see(w, &s, "", 0, INT64_MAX, SCAN_NEWEST_FIRST), E_OK);
    assert_int_equal(s.n, 40);
    for (int i = 1; i < s.n; i++)
        assert_true(s.rows[i - 1].time_ns > s.rows[i].time_ns);
    assert_int_equal(see(w, &s, "a", 0, INT64_MAX, SCAN_META), E_OK);
    assert_int_equal(s.n, 20);
}

static void the_visitor_may_end_a_scan(void **state)
{
    struct world *w = *state;
    static struct seeing s;
    struct group g;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    put_one(w, &g, 15, (struct wish){.time_ns = NOON + 1});
    s.stop = E_TOO_MANY_SAMPLES;
    assert_int_equal(see(w, &s, "", NOON, NOON + 2, SCAN_META), E_TOO_MANY_SAMPLES);
    assert_int_equal(s.n, 1);
    s.stop = E_OK;
}

static void projects_do_not_see_each_other(void **state)
{
    struct world *w = *state;
    static struct seeing s;
    struct group g;
    struct fault f = {0};
    struct attempt a;
    enum original_state kept;
    struct buf out = {0};

    put_one(w, &g, 15, (struct wish){.time_ns = NOON, .project = "other", .original = "secret"});
    a = (struct attempt){.boot = g.boot, .group = g.id};
    put_one(w, &g, 15, (struct wish){.time_ns = NOON});
    assert_int_equal(see(w, &s, "", NOON, NOON + 1, SCAN_META), E_OK);
    assert_int_equal(s.n, 1);
    struct selection sel = {.project = STR("p"), .profile = &a};
    assert_int_equal(w->backend->read->scan(w->store, &sel, SCAN_META, on_row, &s, &f), E_NOT_FOUND);
    f = (struct fault){0};
    assert_int_equal(w->backend->read->original(w->store, STR("p"), a, &kept, &out, &f), E_NOT_FOUND);
    f = (struct fault){0};
    assert_int_equal(w->backend->read->original(w->store, STR("other"), a, &kept, &out, &f), E_OK);
    assert_int_equal(kept, ORIGINAL_KEPT);
    assert_true(str_eq(buf_view(&out), STR("secret")));
    buf_free(&out);
}

static void one_profile_by_its_name(void **state)
{
    struct world *w = *state;
    struct wish wishes[] = {{.time_ns = NOON, .content = 5}, {.time_ns = NOON, .content = 5, .pod = "b"}};
    static struct seeing s;
    struct fault f = {0};
    struct group g;

    put_wishes(w, &g, 15, wishes, 2);
    struct attempt a = {.boot = g.boot, .group = g.id, .place = 1};
    struct selection sel = {.project = STR("p"), .profile = &a};
    s.n = 0;
    assert_int_equal(w->backend->read->scan(w->store, &sel, SCAN_BODY, on_row, &s, &f), E_OK);
    assert_int_equal(s.n, 1);
    assert_string_equal(s.rows[0].pod, "b");
    assert_true(s.rows[0].body > 0);
    a.place = 2;
    assert_int_equal(w->backend->read->scan(w->store, &sel, SCAN_BODY, on_row, &s, &f), E_NOT_FOUND);
}

static bool only_pod_b(void *ctx, const struct series *s)
{
    ++*(int *)ctx;
    return str_eq(s->labels[0].value, STR("b"));
}

static void series_are_asked_for_once(void **state)
{
    struct world *w = *state;
    int asked = 0;
    struct fault f = {0};
    static struct seeing s;
    struct group g;

    for (int i = 0; i < 12; i++)
        put_one(w, &g, i % 2 ? 1 : 3, (struct wish){.time_ns = NOON + i, .pod = i % 3 ? "b" : "a"});
    struct selection sel = {
        .project = STR("p"), .from_ns = NOON, .until_ns = NOON + 12, .series_match = only_pod_b, .ctx = &asked};
    s.n = 0;
    assert_int_equal(w->backend->read->scan(w->store, &sel, SCAN_META, on_row, &s, &f), E_OK);
    assert_int_equal(s.n, 8);
    assert_int_equal(asked, 2);
}

/* Rows of one content: how many count for every pattern of who was told. */
static void of_equal_content_those_told_count(void **state)
{
    struct world *w = *state;
    struct group groups[16];

    for (uint64_t told = 0; told < 8; told++)
        for (int identity = 0; identity < 2; identity++) {
            struct wish wish = {.time_ns = NOON + (int64_t)told * 2 * SECOND + identity * SECOND,
                                .content = 100 + told * 2 + (uint64_t)identity,
                                .identity = identity};
            struct wish wishes[] = {wish, wish, wish};
            struct group *g = &groups[told * 2 + (uint64_t)identity];

            put_wishes(w, g, 15, wishes, 3);
            w->backend->write->mark(w->store, g, told);
        }
    world_reopen(w);
    for (uint64_t told = 0; told < 8; told++) {
        int64_t at = NOON + (int64_t)told * 2 * SECOND;
        int bits = __builtin_popcountll(told);

        assert_int_equal(count(w, at, at + SECOND), bits ? bits : 1);
        assert_int_equal(count(w, at + SECOND, at + 2 * SECOND), 1);
    }
}

static void later_marks_only_clear(void **state)
{
    struct world *w = *state;
    struct wish wish = {.time_ns = NOON, .content = 1}, wishes[] = {wish, wish, wish};
    struct group g;

    put_wishes(w, &g, 15, wishes, 3);
    w->backend->write->mark(w->store, &g, 7);
    world_reopen(w);
    assert_int_equal(count(w, NOON, NOON + 1), 3);
    w->backend->write->mark(w->store, &g, 5);
    world_reopen(w);
    assert_int_equal(count(w, NOON, NOON + 1), 2);
    w->backend->write->mark(w->store, &g, 7);
    w->backend->write->mark(w->store, &g, 0);
    w->backend->write->mark(w->store, &g, 7);
    world_reopen(w);
    assert_int_equal(count(w, NOON, NOON + 1), 1);
}

/* A retry may come a day, or a class, later; both files are looked at. */
static void retries_meet_across_files(void **state)
{
    struct world *w = *state;
    int64_t midnight = (TODAY + 1) * DAY;
    struct group g;

    put_one(w, &g, 15, (struct wish){.time_ns = midnight - SECOND, .content = 1});
    put_one(w, &g, 15, (struct wish){.time_ns = midnight + SECOND, .content = 1});
    put_one(w, &g, 7, (struct wish){.time_ns = midnight + SECOND, .content = 1});
    assert_int_equal(count(w, midnight - DAY, midnight + DAY), 1);
    assert_int_equal(count(w, midnight - DAY, midnight) + count(w, midnight, midnight + DAY), 1);
}

static enum err add_block(void *ctx, struct str block)
{
    struct fault f = {0};

    return symtab_add(ctx, block, &f);
}

static enum err count_block(void *ctx, struct str block)
{
    assert_true(block.len > 0);
    ++*(int *)ctx;
    return E_OK;
}

static int blocks(struct world *w, const char *service)
{
    struct fault f = {0};
    int n = 0;

    assert_int_equal(w->backend->read->symbols(w->store, STR("p"), str_of(service), TODAY, TODAY, count_block, &n, &f),
                     E_OK);
    return n;
}

static void symbols_are_there_and_once(void **state)
{
    struct world *w = *state;
    struct symtab *t = symtab_new();
    struct record *all = make_record(w, (struct wish){.stacks = 30});
    const struct symframe *frames[4];
    struct fault f = {0};
    struct group g;

    put_one(w, &g, 15, (struct wish){.time_ns = NOON, .stacks = 20});
    assert_int_equal(blocks(w, "svc"), 1);
    put_one(w, &g, 15, (struct wish){.time_ns = NOON, .stacks = 20});
    assert_int_equal(blocks(w, "svc"), 1);
    put_one(w, &g, 15, (struct wish){.time_ns = NOON, .stacks = 20, .first_stack = 10});
    assert_int_equal(blocks(w, "svc"), 2);
    put_one(w, &g, 15, (struct wish){.time_ns = NOON, .stacks = 20, .service = "else"});
    assert_int_equal(blocks(w, "svc"), 2);
    assert_int_equal(blocks(w, "else"), 1);
    assert_int_equal(blocks(w, "nobody"), 0);
    world_reopen(w);
    assert_int_equal(w->backend->read->symbols(w->store, STR("p"), STR("svc"), TODAY, TODAY, add_block, t, &f), E_OK);
    for (uint32_t i = 0; i < 30; i++) {
        char name[32];

        snprintf(name, sizeof name, "function_%u", i + 1);
        assert_int_equal(symtab_stack(t, all->symbols->stack_ids[i], frames, 4), 2);
        assert_true(str_eq(frames[0]->function->name, STR("function_0")));
        assert_true(str_eq(frames[1]->function->name, str_of(name)));
    }
    symtab_free(t);
    record_free(all);
}

/* The set of stored ids is bounded; forgetting costs a repeated block and loses nothing. */
static void forgotten_symbols_are_written_again(void **state)
{
    struct world *w = *state;
    struct group g;

    world_close(w);
    w->host.symbols_memory = 4096;
    world_open(w);
    put_one(w, &g, 15, (struct wish){.time_ns = NOON, .stacks = 1000});
    put_one(w, &g, 15, (struct wish){.time_ns = NOON, .stacks = 1000});
    assert_int_equal(blocks(w, "svc"), 2);
    assert_true(atomic_load(&w->account) <= 4096);
}

static enum original_state original(struct world *w, const struct group *g, struct buf *out)
{
    struct attempt a = {.boot = g->boot, .group = g->id};
    struct fault f = {0};
    enum original_state state;

    assert_int_equal(w->backend->read->original(w->store, STR("p"), a, &state, out, &f), E_OK);
    return state;
}

static void originals_are_kept_to_the_byte(void **state)
{
    struct world *w = *state;
    struct buf out = {0};
    struct group kept, off;
    struct fault f = {0};
    enum original_state st;

    put_one(w, &kept, 15, (struct wish){.time_ns = NOON, .original = "the bytes as sent"});
    put_one(w, &off, 15, (struct wish){.time_ns = NOON});
    for (int i = 0; i < 2; i++) {
        out.len = 0;
        assert_int_equal(original(w, &kept, &out), ORIGINAL_KEPT);
        assert_true(str_eq(buf_view(&out), STR("the bytes as sent")));
        assert_int_equal(original(w, &off, &out), ORIGINAL_OFF);
        world_reopen(w);
    }
    assert_int_equal(w->backend->read->original(w->store, STR("p"), (struct attempt){.boot = 1}, &st, &out, &f),
                     E_NOT_FOUND);
    buf_free(&out);
}

static void originals_keep_to_their_budget(void **state)
{
    struct world *w = *state;
    static char big[100 * 1024 + 1];
    static struct group groups[30];
    struct buf out = {0};
    int kept = 0;

    memset(big, 'x', sizeof big - 1);
    for (int i = 0; i < 30; i++)
        put_one(w, &groups[i], 15, (struct wish){.time_ns = NOON + i, .original = big});
    for (int i = 0; i < 30; i++) {
        bool is = original(w, &groups[i], &out) == ORIGINAL_KEPT;

        assert_true(is || !kept); /* the oldest go first */
        kept += is;
    }
    assert_in_range(kept, 7, 10); /* of 1 MiB */
    assert_int_equal(count(w, NOON, NOON + 30), 30);
    buf_free(&out);
}

static void classes_expire_by_the_day(void **state)
{
    static const uint16_t classes[] = {1, 3, 15};
    struct world *w = *state;
    struct buf out = {0};
    struct group g;

    for (int i = 0; i < 3; i++)
        put_one(w, &g, classes[i], (struct wish){.time_ns = NOON + i, .original = "o"});
    for (int day = 0; day < 18; day++) {
        w->backend->write->expire(w->store, (TODAY + day) * DAY);
        world_reopen(w);
        assert_int_equal(count(w, NOON, NOON + 3), (day <= 1) + (day <= 3) + (day <= 15));
        assert_int_equal(blocks(w, "svc"), (day <= 1) + (day <= 3) + (day <= 15));
    }
    put_one(w, &g, 1, (struct wish){.time_ns = NOON});
    assert_int_equal(count(w, NOON, NOON + 3), 1);
    assert_int_equal(blocks(w, "svc"), 1);
    buf_free(&out);
}

struct cancelling {
    atomic_bool cancel;
    int rows;
};

static enum err cancel_at_ten(void *ctx, const struct stored *s)
{
    struct cancelling *c = ctx;

    (void)s;
    if (++c->rows == 10)
        atomic_store(&c->cancel, true);
    return E_OK;
}

static void a_scan_can_be_cancelled(void **state)
{
    struct world *w = *state;
    struct cancelling c = {0};
    struct fault f = {0};
    struct group g;

    for (int i = 0; i < 30; i++)
        put_one(w, &g, 15, (struct wish){.time_ns = NOON + i});
    struct selection sel = {.project = STR("p"), .from_ns = NOON, .until_ns = NOON + 30, .cancel = &c.cancel};
    assert_int_equal(w->backend->read->scan(w->store, &sel, SCAN_META, cancel_at_ten, &c, &f), E_CANCELLED);
    assert_int_equal(c.rows, 10);
    f = (struct fault){0};
    assert_int_equal(w->backend->read->scan(w->store, &sel, SCAN_META, cancel_at_ten, &c, &f), E_CANCELLED);
    assert_int_equal(c.rows, 10);
}

static void closing_waits_for_what_is_under_way(void **state)
{
    struct world *w = *state;
    struct wish wish = {.time_ns = NOON, .content = 4}, wishes[] = {wish, wish};
    struct group told, late;

    put_wishes(w, &told, 15, wishes, 2);
    make_group(w, &late, 15, &(struct wish){.time_ns = NOON + 1}, 1);
    start_put(w, &late);
    w->backend->write->mark(w->store, &told, 3);
    world_close(w);
    assert_int_equal(w->dones, 2);
    assert_int_equal(late.results[0], PUT_STORED);
    free_group(&late);
    world_open(w);
    assert_int_equal(count(w, NOON, NOON + 2), 3);
}

struct reading {
    struct world *w;
    atomic_bool stop;
    atomic_int scans;
};

static void read_on(void *arg)
{
    struct reading *r = arg;
    struct seeing *s = calloc(1, sizeof *s);
    int last = 0;

    while (s && !atomic_load(&r->stop)) {
        assert_int_equal(see(r->w, s, "", NOON, NOON + 1000, SCAN_BODY), E_OK);
        assert_true(s->n >= last);
        last = s->n;
        atomic_fetch_add(&r->scans, 1);
    }
    free(s);
}

static void readers_and_the_writer_do_not_mind_each_other(void **state)
{
    struct world *w = *state;
    struct reading r = {.w = w};
    uv_thread_t threads[3];
    struct group g;

    for (size_t i = 0; i < COUNTOF(threads); i++)
        assert_int_equal(uv_thread_create(&threads[i], read_on, &r), 0);
    for (int i = 0; i < 100; i++) {
        put_one(w, &g, i % 2 ? 15 : 30, (struct wish){.time_ns = NOON + i});
        put_one(w, &g, 1, (struct wish){.time_ns = NOON - 9 * DAY});
        if (i % 10 == 9)
            w->backend->write->expire(w->store, NOON);
    }
    atomic_store(&r.stop, true);
    for (size_t i = 0; i < COUNTOF(threads); i++)
        uv_thread_join(&threads[i]);
    assert_true(atomic_load(&r.scans) > 0);
    assert_int_equal(count(w, NOON, NOON + 1000), 100);
    assert_int_equal(atomic_load(&w->errors), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
const struct CMUnitTest conformance_tests[] = {
    CASE(each_put_is_done_once_and_later),
    CASE(a_full_group_is_stored_whole),
    CASE(what_was_put_comes_back),
    CASE(every_field_comes_back),
    CASE(putting_again_stores_nothing_twice),
    CASE(windows_are_half_open),
    CASE(rows_come_in_order_of_time),
    CASE(the_visitor_may_end_a_scan),
    CASE(projects_do_not_see_each_other),
    CASE(one_profile_by_its_name),
    CASE(series_are_asked_for_once),
    CASE(of_equal_content_those_told_count),
    CASE(later_marks_only_clear),
    CASE(retries_meet_across_files),
    CASE(symbols_are_there_and_once),
    CASE(forgotten_symbols_are_written_again),
    CASE(originals_are_kept_to_the_byte),
    CASE(originals_keep_to_their_budget),
    CASE(classes_expire_by_the_day),
    CASE(a_scan_can_be_cancelled),
    CASE(closing_waits_for_what_is_under_way),
    CASE(readers_and_the_writer_do_not_mind_each_other),
};
const size_t conformance_n_tests = COUNTOF(conformance_tests);
