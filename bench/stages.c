/*
 * Microseconds per upload and stage, medians: inflate alone, inflate and decode, finish (build and seal), build alone.
 * Usage: stages FILE.pb.gz ... ; each file as the body of an /ingest pprof.
 */
#include "codecs/layer.h"
#include "codecs/upload_parts.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 15 };

static const struct limits limits = {
    .body = 64 << 20,
    .inflated = 256 << 20,
    .decoded = 256 << 20,
    .field = 4 << 20,
    .profiles = 1000,
    .samples = 2000000,
    .depth = 1024,
    .labels = 64,
    .sample_labels = 100,
    .label_name = 1024,
    .label_value = 2048,
    .parts = 1000,
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;
    return (a > b) - (a < b);
}

static double median(double *v)
{
    qsort(v, ROUNDS, sizeof *v, by_size);
    return v[ROUNDS / 2];
}

static enum step discard(void *ctx, struct str *in, uint32_t *budget)
{
    *(uint64_t *)ctx += in->len;
    budget_take(budget, in->len);
    in->p += in->len;
    in->len = 0;
    return STEP_MORE;
}

static double inflate_us(const struct upload_spec *spec, struct str body, uint64_t *raw)
{
    struct intake in = {.spec = spec, .limits = spec->limits};
    double t = now_us();
    struct layer *l = layer_new(&in, CODING_GZIP, "bench");
    enum step s = STEP_AGAIN;

    *raw = 0;
    while (l && s == STEP_AGAIN) {
        uint32_t budget = 1 << 20;
        s = layer_feed(l, &body, &budget, discard, raw, &in.fault);
    }
    layer_free(l, &in);
    layer_drop_spare(&in);
    return now_us() - t;
}

struct times {
    double inflate[ROUNDS], decode[ROUNDS], finish[ROUNDS];
    uint64_t raw, guess_ns;
    size_t decoded, finish_memory, record, body;
};

static void once(const struct upload_spec *spec, struct str body, struct times *t, int round)
{
    struct fault f = {0};
    struct str in = body;
    enum step s = STEP_AGAIN;

    t->inflate[round] = inflate_us(spec, body, &t->raw);
    double begin = now_us();
    struct upload *u = upload_new(spec, &f);
    while (u && s == STEP_AGAIN) {
        uint32_t budget = 1 << 20;
        s = upload_feed(u, &in, &budget);
    }
    for (s = s == STEP_MORE ? STEP_AGAIN : s; s == STEP_AGAIN;) {
        uint32_t budget = 1 << 20;
        s = upload_end(u, &budget);
    }
    double middle = now_us();
    if (!u || s != STEP_MORE || upload_finish(u) != E_OK || !upload_outcome(u, 0)->record) {
        fprintf(stderr, "refused: %s\n", u ? upload_fault(u)->text : f.text);
        exit(1);
    }
    t->decode[round] = middle - begin;
    t->finish[round] = now_us() - middle;
    t->decoded = upload_memory(u);
    t->guess_ns = upload_finish_ns(u);
    t->finish_memory = upload_finish_memory(u);
    t->record = upload_outcome(u, 0)->record->bytes;
    t->body = upload_outcome(u, 0)->record->body.len;
    upload_free(u);
}

static struct str slurp(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *p = malloc(64 << 20);
    size_t n = f && p ? fread(p, 1, 64 << 20, f) : 0;

    if (f)
        fclose(f);
    return (struct str){p, n};
}

int main(int argc, char **argv)
{
    static struct times t;
    struct hash_key key;
    struct upload_spec spec = {.kind = UPLOAD_PPROF,
                               .params = {.name = STR("bench")},
                               .project = STR("bench"),
                               .window_past_ns = -1,
                               .window_future_ns = -1,
                               .limits = &limits,
                               .key = &key};

    /* As the gateway does: memory that was touched once stays. */
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    hash_key_derive(&key, STR("bench"));
    printf("%-28s %9s %9s %9s %9s %9s | %8s %8s %8s %8s %8s %8s\n", "body", "inflate", "+decode", "finish", "sum",
           "guess", "gz KB", "raw KB", "memory", "+finish", "record", "body");
    for (int i = 1; i < argc; i++) {
        struct str body = slurp(argv[i]);
        for (int r = 0; r < ROUNDS; r++)
            once(&spec, body, &t, r);
        double a = median(t.inflate), b = median(t.decode), c = median(t.finish);
        const char *slash = strrchr(argv[i], '/');
        printf("%-28s %9.0f %9.0f %9.0f %9.0f %9.0f | %8zu %8zu %8zu %8zu %8zu %8zu\n", slash ? slash + 1 : argv[i], a,
               b, c, b + c, (double)t.guess_ns / 1e3, body.len >> 10, (size_t)t.raw >> 10, t.decoded >> 10,
               t.finish_memory >> 10, t.record >> 10, t.body >> 10);
        fflush(stdout);
    }
    return 0;
}
