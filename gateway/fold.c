/* A table of the kinds of lines that were written lately, under a lock of its own; lines are rare, so it is searched
 * through. */
#include "gateway/fold.h"

#include <pthread.h>

struct kind {
    uint64_t name; /* hash of what makes the kind */
    int64_t until; /* end of its interval; 0: free */
    uint64_t left_out;
    struct fold_line line;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kind kinds[FOLD_KINDS];
static int64_t interval_ns;

static uint64_t mix(uint64_t h, const void *p, size_t n)
{
    const unsigned char *c = p;

    for (size_t i = 0; i < n; i++)
        h = (h ^ c[i]) * UINT64_C(0x100000001b3);
    return h;
}

static uint64_t name_of(int level, const char *event, const struct log_field *fields, size_t n)
{
    uint64_t h = mix(UINT64_C(0xcbf29ce484222325), &level, sizeof level);

    h = mix(h, event, strlen(event) + 1);
    for (size_t i = 0; i < n; i++)
        if (!fields[i].is_number) {
            h = mix(h, &fields[i].text.len, sizeof fields[i].text.len);
            h = mix(h, fields[i].text.p, fields[i].text.len);
        }
    return h;
}

/* Text may be cut inside of a character, which would make all of it look broken: goes back to its start. */
static size_t cut(struct str s, size_t room)
{
    if (s.len <= room)
        return s.len;
    while (room > 0 && ((unsigned char)s.p[room] & 0xc0) == 0x80)
        room--;
    return room;
}

static void keep(struct fold_line *l, int level, const char *event, const struct log_field *fields, size_t n)
{
    size_t used = 0;

    l->level = level;
    l->event = event;
    l->n = 0;
    for (size_t i = 0; i < n && l->n < FOLD_FIELDS; i++) {
        if (fields[i].is_number)
            continue;
        size_t len = cut(fields[i].text, FOLD_TEXT - used);
        if (len)
            memcpy(l->text + used, fields[i].text.p, len);
        l->fields[l->n++] = (struct log_field)LOG_STR(fields[i].key, ((struct str){l->text + used, len}));
        used += len;
    }
}

/* Ends a kind's interval. */
static void tell(struct kind *k, fold_write *write)
{
    if (k->left_out) {
        k->line.fields[k->line.n++] = (struct log_field)LOG_NUM("suppressed", k->left_out);
        write(&k->line);
    }
    k->left_out = 0;
    k->until = 0;
}

static struct kind *find(uint64_t name, int64_t now_ns, fold_write *write)
{
    for (size_t i = 0; i < FOLD_KINDS; i++) {
        struct kind *k = &kinds[i];
        if (!k->until || k->name != name)
            continue;
        if (now_ns < k->until)
            return k;
        tell(k, write);
    }
    return NULL;
}

static size_t variants(int level, const char *event)
{
    size_t n = 0;

    for (size_t i = 0; i < FOLD_KINDS; i++)
        n += kinds[i].until && kinds[i].line.level == level && strcmp(kinds[i].line.event, event) == 0;
    return n;
}

/* A free place, else that of the interval that ends first. */
static struct kind *place(int64_t now_ns, fold_write *write)
{
    struct kind *best = &kinds[0];

    for (size_t i = 0; i < FOLD_KINDS && best->until; i++) {
        if (kinds[i].until <= now_ns)
            tell(&kinds[i], write);
        if (kinds[i].until < best->until)
            best = &kinds[i];
    }
    if (best->until)
        tell(best, write);
    return best;
}

static bool count_line(int64_t now_ns, int level, const char *event, const struct log_field *fields, size_t n,
                       fold_write *write)
{
    uint64_t name = name_of(level, event, fields, n);
    struct kind *k = find(name, now_ns, write);

    if (!k && variants(level, event) >= FOLD_VARIANTS) {
        n = 0; /* one kind for all that are too many */
        name = name_of(level, event, NULL, 0);
        k = find(name, now_ns, write);
    }
    if (k) {
        k->left_out++;
        return false;
    }
    k = place(now_ns, write);
    k->name = name;
    k->until = now_ns + interval_ns;
    keep(&k->line, level, event, fields, n);
    return true;
}

void fold_interval(int64_t ns)
{
    pthread_mutex_lock(&lock);
    interval_ns = ns;
    pthread_mutex_unlock(&lock);
}

bool fold_first(int64_t now_ns, int level, const char *event, const struct log_field *fields, size_t n,
                fold_write *write)
{
    bool first = true;

    if (level == LOG_INFO)
        return true;
    pthread_mutex_lock(&lock);
    if (interval_ns)
        first = count_line(now_ns, level, event, fields, n, write);
    pthread_mutex_unlock(&lock);
    return first;
}

void fold_flush(int64_t now_ns, fold_write *write)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < FOLD_KINDS; i++)
        if (kinds[i].until && kinds[i].until <= now_ns)
            tell(&kinds[i], write);
    pthread_mutex_unlock(&lock);
}
