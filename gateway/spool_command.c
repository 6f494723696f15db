/* What waits in a spool, for people. */
#include "gateway/spool_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backends/spool_walk.h"

enum { EXIT_GOOD = 0, EXIT_DAMAGED = 1, EXIT_USAGE = 2 };

struct sums {
    bool verify;
    int64_t now_ns;
    uint64_t segments, bytes, groups, profiles, marks, damaged;
};

static void add(struct sums *t, const struct spool_segment *s)
{
    t->segments++;
    t->bytes += s->bytes;
    t->groups += s->groups;
    t->profiles += s->profiles;
    t->marks += s->marks;
    t->damaged += s->damage[0] != '\0';
}

static void age_text(int64_t ns, char *out, size_t size)
{
    int64_t s = ns / 1000000000;

    if (s < 60)
        snprintf(out, size, "%" PRId64 "s", s > 0 ? s : 0);
    else if (s < 3600)
        snprintf(out, size, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
    else
        snprintf(out, size, "%" PRId64 "h%02" PRId64 "m", s / 3600, s / 60 % 60);
}

static void on_segment(void *ctx, const struct spool_segment *s)
{
    struct sums *t = ctx;
    char age[32] = "-";

    add(t, s);
    if (s->first_ns)
        age_text(t->now_ns - s->first_ns, age, sizeof age);
    if (!t->verify)
        printf("%-24s %10s %12" PRIu64 " %8" PRIu64 " %9" PRIu64 " %8" PRIu64 "%s\n", s->name, age, s->bytes, s->groups,
               s->profiles, s->marks, s->damage[0] ? "  damaged" : "");
    if (t->verify && s->damage[0])
        printf("%s: %s\n", s->name, s->damage);
}

static int finish(const struct sums *t, const char *dir)
{
    const char *in_use = spool_walk_in_use(dir) ? " (in use: what is written now may look cut short)" : "";

    if (t->verify && !t->damaged)
        printf("%" PRIu64 " segments, %" PRIu64 " groups, %" PRIu64 " profiles, %" PRIu64 " marks: whole\n",
               t->segments, t->groups, t->profiles, t->marks);
    else if (t->verify)
        printf("%" PRIu64 " of %" PRIu64 " segments are damaged%s\n", t->damaged, t->segments, in_use);
    else
        printf("%-24s %10s %12" PRIu64 " %8" PRIu64 " %9" PRIu64 " %8" PRIu64 "\n", "all", "", t->bytes, t->groups,
               t->profiles, t->marks);
    return t->verify && t->damaged ? EXIT_DAMAGED : EXIT_GOOD;
}

static int walk(const char *dir, bool verify)
{
    struct timespec now;
    struct fault f = {.err = E_OK};

    clock_gettime(CLOCK_REALTIME, &now);
    struct sums t = {.verify = verify, .now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec};
    if (!verify)
        printf("%-24s %10s %12s %8s %9s %8s\n", "segment", "age", "bytes", "groups", "profiles", "marks");
    enum err e = spool_walk(dir, verify, on_segment, &t, &f);
    if (e == E_OK || e == E_NOT_FOUND) /* never used: nothing waits */
        return finish(&t, dir);
    fprintf(stderr, "%s\n", f.text);
    return EXIT_DAMAGED;
}

int spool_command(int argc, char **argv, const char *data_dir)
{
    bool verify = argc > 0 && strcmp(argv[0], "verify") == 0;
    bool known = verify || (argc > 0 && strcmp(argv[0], "ls") == 0);
    char dir[4096];
    int n;

    if (known && argc == 3 && strcmp(argv[1], "--dir") == 0)
        return walk(argv[2], verify);
    if (!known || argc != 1) {
        fputs("usage: flamegate spool ls|verify [--dir DIR]\n", stderr);
        return EXIT_USAGE;
    }
    n = snprintf(dir, sizeof dir, "%s/spool", data_dir);
    return n > 0 && (size_t)n < sizeof dir ? walk(dir, verify) : EXIT_DAMAGED;
}
