/*
 * The store alone: sealed records into SQLite at the store's interface, a group at a time, each answered after its
 * commit. Prints profiles per second for groups of 1 and of 64 (warm, and while every stack is new), and what a sample
 * takes on the disk. Profiles are of the shape of a 39 KB upload: about 500 samples out of 20,000 stacks per service,
 * 10 to 60 frames deep. Arguments: a store's address (sqlite: in build/bench/store-data), and a number, another one for
 * each writer that does this at the same time.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "backends/backend.h"

enum {
    SERVICES = 10,
    STACKS = 20000,
    FUNCTIONS = 3000,
    SAMPLES = 500,
    DEPTH_MAX = 60,
    ORIGINAL = 39000,
    RUN = 1280,
    WRITER = 10000000
};
static const int64_t NOON = INT64_C(1796040000) * 1000000000;
static char folder[] = "build/bench/store-data";

/* A fixed generator, so that runs are alike. */
static uint64_t seed;
static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void fill_stack(uint32_t service, uint32_t stack, uint32_t *frames, uint32_t *n)
{
    seed = (uint64_t)(service + 1) * 1000003 + (uint64_t)stack * 7919 + 1;
    for (int i = 0; i < 4; i++)
        next_random();
    *n = 10 + (uint32_t)(next_random() % (DEPTH_MAX - 10));
    for (uint32_t i = 0; i < *n; i++)
        frames[i] = i < *n / 2 ? (i * 31 + stack / 512) % FUNCTIONS : (uint32_t)(next_random() % FUNCTIONS);
}

static struct record *make_record(const struct hash_key *key, uint32_t number, bool cold)
{
    static char names[FUNCTIONS][64];
    static struct function functions[FUNCTIONS];
    static struct frame frames[FUNCTIONS];
    static uint32_t stack_at[SAMPLES + 1], stack_frames[SAMPLES * DEPTH_MAX], sample_stack[SAMPLES],
        sample_set[SAMPLES];
    static int64_t values[SAMPLES];
    static char original[ORIGINAL], pod[16];
    int64_t *columns[] = {values};
    uint32_t set_at[] = {0, 0}, service = number % SERVICES;
    char name[16];

    snprintf(name, sizeof name, "service-%u", service);
    snprintf(pod, sizeof pod, "pod-%u", number % 40);
    for (uint32_t i = 0; !functions[i].name.len && i < FUNCTIONS; i++) {
        snprintf(names[i], sizeof names[i], "example.com/shop/package_%u.function_%u", i / 20, i);
        functions[i] = (struct function){.name = str_of(names[i]), .file = STR("/src/shop/file.go")};
        frames[i] = (struct frame){.function = i, .mapping = PROFILE_NONE, .line = i % 400};
    }
    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint32_t n, stack = cold ? number / SERVICES * SAMPLES + i : (number * 7919 + i * 37) % STACKS;

        fill_stack(service, stack, stack_frames + stack_at[i], &n);
        stack_at[i + 1] = stack_at[i] + n;
        sample_stack[i] = i;
        values[i] = (int64_t)(1 + next_random() % 300) * 10000000;
    }
    for (size_t i = 0; i < ORIGINAL; i++)
        original[i] = (char)next_random();

    struct label labels[] = {{STR("pod"), str_of(pod)}, {STR("service_name"), str_of(name)}};
    struct sample_type type = {
        .type = STR("cpu"), .unit = STR("nanoseconds"), .id = STR("process_cpu:cpu:nanoseconds")};
    struct profile p = {
        .series = {STR("bench"), labels[1].value, STR("process_cpu"), STR("gospy"), labels, 2},
        .time_ns = NOON + (int64_t)number * 100000000,
        .duration_ns = 10000000000,
        .types = &type,
        .n_types = 1,
        .functions = functions,
        .frames = frames,
        .n_functions = FUNCTIONS,
        .n_frames = FUNCTIONS,
        .stack_at = stack_at,
        .stack_frames = stack_frames,
        .n_stacks = SAMPLES,
        .set_at = set_at,
        .n_sets = 1,
        .sample_stack = sample_stack,
        .sample_set = sample_set,
        .values = columns,
        .n_samples = SAMPLES,
    };
    struct record_origin origin = {.format = STR("pprof"),
                                   .content_id = {.hi = number, .lo = number},
                                   .original = {original, ORIGINAL},
                                   .original_bytes = ORIGINAL,
                                   .keep_original = true};
    return record_seal(&p, &origin, key);
}

static int64_t monotonic_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool done;
static void on_done(struct group *g)
{
    (void)g;
    done = true;
}

static void on_closed(void *ctx)
{
    (void)ctx;
    done = true;
}

static void on_log(void *ctx, int level, const char *text)
{
    (void)ctx;
    fprintf(stderr, "level=%d %s\n", level, text);
}

static void on_account(void *ctx, const char *account, int64_t delta)
{
    (void)ctx;
    (void)account;
    (void)delta;
}

static int order(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

struct bench {
    uv_loop_t loop;
    struct store_host host;
    const struct backend *backend;
    struct sample_store *store;
    struct hash_key key;
    const char *address;
    uint64_t boot, groups;
    uint32_t profiles;
};

static void wait_done(struct bench *b)
{
    while (!done)
        uv_run(&b->loop, UV_RUN_ONCE);
}

static bool put(struct bench *b, uint16_t n, bool cold, int64_t *took_ns)
{
    struct group g = {
        .n = n, .class_days = 15, .day = (int32_t)(NOON / 86400000000000), .id = ++b->groups, .boot = b->boot};
    bool ok = true;

    g.done = on_done;
    for (uint16_t i = 0; i < n; i++)
        if (!(g.records[i] = make_record(&b->key, b->profiles++, cold)))
            return false;
    done = false;
    *took_ns = monotonic_ns();
    b->backend->write->put(b->store, &g);
    wait_done(b);
    *took_ns = monotonic_ns() - *took_ns;
    b->backend->write->mark(b->store, &g, n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1);
    for (uint16_t i = 0; i < n; i++) {
        ok &= g.results[i] == PUT_STORED;
        record_free(g.records[i]);
    }
    return ok;
}

static bool run(struct bench *b, const char *what, uint16_t n, bool cold)
{
    static int64_t took[RUN];
    int64_t sum = 0;
    int puts = RUN / n;

    for (int i = 0; i < puts; i++) {
        if (!put(b, n, cold, &took[i]))
            return false;
        sum += took[i];
    }
    qsort(took, (size_t)puts, sizeof *took, order);
    printf("store    %-34s %8.0f profiles/s   put p50 %7.2f ms   p99 %7.2f ms\n", what, puts * n / (sum / 1e9),
           took[puts / 2] / 1e6, took[puts - 1 - puts / 100] / 1e6);
    return true;
}

static int64_t bytes;
static int count_bytes(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)at;
    if (type == FTW_F && !strstr(path, "originals"))
        bytes += st->st_size;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static bool open_store(struct bench *b, const char *address)
{
    struct fault f = {0};
    struct str rest;

    b->backend = backend_find(str_of(address), &rest);
    b->store = b->backend ? b->backend->write->open(&b->host, rest, &f) : NULL;
    if (!b->store)
        fprintf(stderr, "%s: %s\n", address, f.text);
    return b->store != NULL;
}

static void close_store(struct bench *b)
{
    done = false;
    b->backend->write->close(b->store, on_closed, b);
    wait_done(b);
}

static bool run_all(struct bench *b)
{
    uint32_t before;

    if (!run(b, "groups of 64, every stack new", 64, true) || !run(b, "groups of 64, first pass", 64, false))
        return false;
    close_store(b);
    nftw(folder, count_bytes, 8, FTW_PHYS);
    if (!open_store(b, b->address))
        return false;
    before = b->profiles;
    if (!run(b, "groups of 64, warm (after restart)", 64, false) || !run(b, "groups of 64, warm", 64, false) ||
        !run(b, "groups of 1", 1, false))
        return false;
    close_store(b);
    bytes = -bytes;
    nftw(folder, count_bytes, 8, FTW_PHYS);
    if (bytes == 0)
        return true;
    printf("store    %-34s %8.1f bytes of SQLite per sample (stacks written once more after a restart; %d samples a "
           "profile)\n",
           "on the disk", (double)bytes / ((double)(b->profiles - before) * SAMPLES), SAMPLES);
    return true;
}

int main(int argc, char **argv)
{
    static struct bench b;
    bool ok;

    uv_loop_init(&b.loop);
    hash_key_derive(&b.key, STR("bench"));
    b.host = (struct store_host){.loop = &b.loop,
                                 .data_dir = folder,
                                 .key = &b.key,
                                 .originals_max_bytes = UINT64_C(1) << 31,
                                 .symbols_memory = 32 << 20,
                                 .log = on_log,
                                 .account = on_account};
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    b.address = argc > 1 ? argv[1] : "sqlite:";
    b.boot = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    b.profiles = (uint32_t)(b.boot - 1) * WRITER;
    ok = open_store(&b, b.address) && run_all(&b);
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return ok ? 0 : 1;
}
