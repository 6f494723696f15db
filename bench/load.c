/*
 * load: a closed loop of uploads or queries over N connections for some seconds; prints one line of JSON.
 *
 *   load -k ingest|push|sink|get -u HOST:PORT[/PATH] [-b FILE,FILE...] [-c CONNECTIONS] [-d SECONDS] [-n REQUESTS]
 *        [-s SPREAD_SECONDS] [-S SERIES] [-a APP] [-p SERVER_PID] [-H HEADER] [-e STATUS] [-i MS] [-l LABEL]
 *
 * One thread on epoll, so that it takes little from the server beside it. A connection sends its next request when it
 * has read the whole answer to the last one. -e: the answer that is expected, instead of any 2xx. -i: at most one
 * request in so many ms from each. -s spreads the profiles' times over the last seconds (needs -n). Latency is from
 * before the first byte is written to after the last byte is read. CPU and memory of the server are read from /proc.
 */
#include "bench/server.h"
#include "bench/upload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { BODIES_MAX = 16, ANSWER_HEAD_MAX = 8192, STATUS_MAX = 600, GRACE_SECONDS = 20, FAILURE_PAUSE_MS = 20 };
/* Beside the HTTP statuses, in the same table. */
enum { LOST_CONNECT = 0, LOST_RESET = 1, LOST_TIMEOUT = 2, LOST_GARBAGE = 3, LOST_KINDS = 4 };
static const char *const lost_names[LOST_KINDS] = {"connect", "reset", "timeout", "garbage"};

struct link {
    int fd; /* -1: to be opened at `retry_at` */
    bool busy, writing;
    double started, retry_at;
    struct upload up;
    size_t sent, total;
    /* the answer */
    char head[ANSWER_HEAD_MAX];
    size_t head_len;
    bool head_done, closes, chunked;
    int status;
    uint64_t left;   /* bytes of the body, of the chunk */
    int chunk_state; /* of chunk_byte */
    bool last_chunk;
};

static struct {
    struct upload_plan plan;
    struct sockaddr_in to;
    char host[64];
    struct body bodies[BODIES_MAX];
    size_t n_bodies, n_links;
    double seconds, spread, every;
    uint64_t limit, seq;
    int pid, poll_fd, expect;
    const char *label;
    double *latency;
    size_t n_latency, cap_latency;
    uint64_t bytes, outcomes[STATUS_MAX];
    char first_error[200];
} run = {.n_links = 1, .seconds = 5, .plan = {.app = "bench", .series = 100}, .label = ""};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int64_t wall_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void link_lose(struct link *l, int why)
{
    run.outcomes[why]++;
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    l->busy = false;
    l->retry_at = now() + FAILURE_PAUSE_MS / 1e3;
}

static void link_watch(struct link *l, bool writing)
{
    struct epoll_event e = {.events = writing ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = l};
    if (writing != l->writing && epoll_ctl(run.poll_fd, EPOLL_CTL_MOD, l->fd, &e) == 0)
        l->writing = writing;
}

static bool link_open(struct link *l)
{
    int one = 1;
    l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (l->fd < 0 || connect(l->fd, (struct sockaddr *)&run.to, sizeof run.to) != 0)
        return false;
    setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = l};
    l->writing = false;
    return fcntl(l->fd, F_SETFL, O_NONBLOCK) == 0 && epoll_ctl(run.poll_fd, EPOLL_CTL_ADD, l->fd, &e) == 0;
}

static void link_write(struct link *l)
{
    const struct upload *u = &l->up;
    const void *bases[5] = {u->head, u->pre, u->body ? u->body->data : NULL, u->tail, u->post};
    size_t lens[5] = {u->head_len, u->pre_len, u->body ? u->body->len : 0, u->tail_len, u->post_len};
    struct iovec v[5];
    int n = 0;
    size_t skip = l->sent;
    for (int i = 0; i < 5; i++) {
        size_t cut = skip < lens[i] ? skip : lens[i];
        skip -= cut;
        if (lens[i] > cut)
            v[n++] = (struct iovec){(char *)(uintptr_t)bases[i] + cut, lens[i] - cut};
    }
    struct msghdr m = {.msg_iov = v, .msg_iovlen = (size_t)n};
    ssize_t got = sendmsg(l->fd, &m, MSG_NOSIGNAL);
    if (got >= 0)
        l->sent += (size_t)got;
    else if (errno == EPIPE || errno == ECONNRESET)
        l->sent = l->total; /* an answer may still be there to read */
    link_watch(l, l->sent < l->total);
}

static void link_start(struct link *l)
{
    if (l->fd < 0 && !link_open(l)) {
        link_lose(l, LOST_CONNECT);
        return;
    }
    uint64_t i = run.seq++;
    int64_t time_ns = wall_ns();
    if (run.spread > 0)
        time_ns -= (int64_t)(run.spread * 1e9 * (double)(run.limit - i) / (double)run.limit);
    l->started = now();
    upload_make(&l->up, &run.plan, run.n_bodies ? &run.bodies[i % run.n_bodies] : NULL, i, time_ns);
    l->total = l->up.head_len + l->up.pre_len + (l->up.body ? l->up.body->len : 0) + l->up.tail_len + l->up.post_len;
    l->sent = l->head_len = 0;
    l->head_done = l->last_chunk = false;
    l->busy = true;
    link_write(l);
}

/* The status that -e names, or any that is good. */
static bool wanted(int status)
{
    return run.expect ? status == run.expect : status / 100 == 2;
}

static void keep_latency(double seconds)
{
    if (run.n_latency == run.cap_latency) {
        run.cap_latency = run.cap_latency ? run.cap_latency * 2 : 4096;
        run.latency = realloc(run.latency, run.cap_latency * sizeof *run.latency);
        if (!run.latency)
            abort();
    }
    run.latency[run.n_latency++] = seconds;
}

static void link_answered(struct link *l)
{
    if (wanted(l->status)) {
        keep_latency(now() - l->started);
        run.bytes += l->total;
    } else {
        run.outcomes[l->status]++;
    }
    l->busy = false;
    if (l->closes || l->sent < l->total) {
        close(l->fd);
        l->fd = -1;
    }
    l->retry_at = l->started + run.every;
    if (!wanted(l->status))
        l->retry_at = now() + FAILURE_PAUSE_MS / 1e3;
}

/* --- the answer: a head, then a body by length or by chunks --- */

static const char *head_field(const char *head, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n"))
        if (strncasecmp(line + 2, name, n) == 0 && line[2 + n] == ':')
            return line + 3 + n;
    return NULL;
}

static bool answer_head(struct link *l)
{
    const char *length = head_field(l->head, "content-length"), *coding = head_field(l->head, "transfer-encoding");
    const char *connection = head_field(l->head, "connection");
    char *end;
    if (strncmp(l->head, "HTTP/1.1 ", 9) != 0)
        return false;
    l->status = (int)strtol(l->head + 9, &end, 10);
    l->closes = connection && strncasecmp(connection + strspn(connection, " "), "close", 5) == 0;
    l->chunked = coding != NULL;
    l->left = length ? strtoull(length, NULL, 10) : 0;
    l->chunk_state = 0;
    return l->status >= 200 && l->status < STATUS_MAX && (length || coding);
}

/* Size line, data, CRLF; a size of zero and its empty line end it. Trailers are not expected from us. */
static void chunk_byte(struct link *l, char c)
{
    switch (l->chunk_state) {
    case 0: /* size */
        if (c == '\n') {
            l->last_chunk = l->left == 0;
            l->chunk_state = l->left ? 1 : 2;
        } else if (c != '\r') {
            l->left = l->left * 16 + (uint64_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
        }
        break;
    case 1: /* data */
        if (--l->left == 0)
            l->chunk_state = 2;
        break;
    default: /* the line end behind */
        if (c == '\n')
            l->chunk_state = l->last_chunk ? 3 : 0;
    }
}

static void note_error(struct link *l, const char *text, size_t n)
{
    if (wanted(l->status) || run.first_error[0])
        return;
    for (size_t i = 0; i < n && i < sizeof run.first_error - 1; i++)
        run.first_error[i] = text[i] < ' ' || text[i] == '"' || text[i] == '\\' ? ' ' : text[i];
}

/* true: the answer is complete. */
static bool answer_body(struct link *l, const char *p, size_t n)
{
    note_error(l, p, n);
    if (!l->chunked) {
        l->left -= n < l->left ? n : l->left;
        return l->left == 0;
    }
    for (size_t i = 0; i < n && l->chunk_state != 3; i++)
        chunk_byte(l, p[i]);
    return l->chunk_state == 3;
}

static void link_take(struct link *l, const char *p, size_t n)
{
    if (!l->head_done) {
        size_t room = sizeof l->head - 1 - l->head_len, m = n < room ? n : room;
        memcpy(l->head + l->head_len, p, m);
        l->head[l->head_len + m] = 0;
        char *end = strstr(l->head, "\r\n\r\n");
        if (!end) {
            l->head_len += m;
            if (m < n)
                link_lose(l, LOST_GARBAGE);
            return;
        }
        size_t used = (size_t)(end + 4 - l->head) - l->head_len;
        end[2] = 0;
        l->head_done = true;
        if (!answer_head(l)) {
            link_lose(l, LOST_GARBAGE);
            return;
        }
        p += used;
        n -= used;
    }
    if (answer_body(l, p, n))
        link_answered(l);
}

static void link_read(struct link *l)
{
    static char buf[256 << 10];
    ssize_t n = recv(l->fd, buf, sizeof buf, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0 && l->busy) {
        link_take(l, buf, (size_t)n);
    } else if (l->busy) {
        link_lose(l, LOST_RESET);
    } else {
        close(l->fd); /* an idle connection that the server closed */
        l->fd = -1;
    }
}

static bool more_to_send(double deadline)
{
    return now() < deadline && (!run.limit || run.seq < run.limit);
}

static void run_load(void)
{
    struct link *links = calloc(run.n_links, sizeof *links);
    struct epoll_event events[256];
    if (!links)
        abort();
    for (size_t i = 0; i < run.n_links; i++)
        links[i].fd = -1;
    double deadline = now() + run.seconds, last = deadline + GRACE_SECONDS;
    for (;;) {
        size_t busy = 0;
        double t = now();
        for (size_t i = 0; i < run.n_links; i++) {
            if (!links[i].busy && links[i].retry_at <= t && more_to_send(deadline))
                link_start(&links[i]);
            busy += links[i].busy;
        }
        if (now() > last || (busy == 0 && !more_to_send(deadline)))
            break;
        int n = epoll_wait(run.poll_fd, events, 256, 5);
        for (int i = 0; i < n; i++) {
            struct link *l = events[i].data.ptr;
            if (l->fd >= 0 && events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                link_read(l);
            if (l->fd >= 0 && l->busy && events[i].events & EPOLLOUT)
                link_write(l);
        }
    }
    for (size_t i = 0; i < run.n_links; i++)
        if (links[i].busy)
            link_lose(&links[i], LOST_TIMEOUT);
    free(links);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double percentile(double p)
{
    if (run.n_latency == 0)
        return 0;
    size_t i = (size_t)(p * (double)run.n_latency);
    return run.latency[i < run.n_latency ? i : run.n_latency - 1] * 1e3;
}

static uint64_t print_outcomes(void)
{
    uint64_t total = 0;
    printf("\"errors\":{");
    for (int i = 0; i < STATUS_MAX; i++) {
        if (!run.outcomes[i])
            continue;
        if (i < LOST_KINDS)
            printf("%s\"%s\":%llu", total ? "," : "", lost_names[i], (unsigned long long)run.outcomes[i]);
        else
            printf("%s\"%d\":%llu", total ? "," : "", i, (unsigned long long)run.outcomes[i]);
        total += run.outcomes[i];
    }
    printf("},\"first_error\":\"%s\",", run.first_error);
    return total;
}

static void report(double seconds, struct server_use before, struct server_use after)
{
    struct rusage own;
    getrusage(RUSAGE_SELF, &own);
    double n = (double)run.n_latency, cpu = after.cpu - before.cpu;
    qsort(run.latency, run.n_latency, sizeof *run.latency, by_size);
    printf("{\"label\":\"%s\",\"c\":%zu,\"secs\":%.3f,\"ok\":%zu,", run.label, run.n_links, seconds, run.n_latency);
    uint64_t failed = print_outcomes();
    printf("\"err\":%llu,\"rps\":%.3f,\"mb_s\":%.2f,", (unsigned long long)failed, n / seconds,
           (double)run.bytes / 1e6 / seconds);
    printf("\"p50_ms\":%.3f,\"p90_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,", percentile(.5), percentile(.9),
           percentile(.99), percentile(1));
    printf("\"cpu_s\":%.3f,\"cpu_ms\":%.5f,\"rss_kb\":%ld,\"hwm_kb\":%ld,", cpu, n > 0 ? cpu / n * 1e3 : 0,
           after.rss_kb, after.hwm_kb);
    printf("\"own_cpu_s\":%.3f}\n", (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) +
                                        (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec) / 1e6);
}

static void usage(const char *why)
{
    fprintf(stderr,
            "load: %s\nusage: load -k ingest|push|sink|get -u HOST:PORT[/PATH] [-b FILE,...] [-c N] [-d SECONDS] [-n "
            "REQUESTS]\n"
            "            [-s SPREAD] [-S SERIES] [-a APP] [-p PID] [-H HEADER] [-e STATUS] [-i MS] [-l LABEL]\n",
            why);
    exit(2);
}

static void take_target(char *text)
{
    char *slash = strchr(text, '/'), *colon = strchr(text, ':');
    run.plan.path = slash ? strdup(slash) : "/";
    if (slash)
        *slash = 0;
    snprintf(run.host, sizeof run.host, "%s", text);
    run.plan.host = run.host;
    if (!colon)
        usage("-u needs a port");
    *colon = 0;
    run.to.sin_family = AF_INET;
    run.to.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    if (inet_pton(AF_INET, text, &run.to.sin_addr) != 1)
        usage("-u needs an IPv4 address");
}

static void take_bodies(char *list)
{
    for (char *name = list, *comma; name; name = comma) {
        comma = strchr(name, ',');
        if (comma)
            *comma++ = 0;
        if (run.n_bodies == BODIES_MAX || !body_load(&run.bodies[run.n_bodies++], name)) {
            perror(name);
            exit(2);
        }
    }
}

static enum upload_kind kind_of(const char *name)
{
    static const char *const names[] = {"ingest", "push", "sink", "get"};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum upload_kind)i;
    usage("unknown -k");
    return UPLOAD_GET;
}

static void take_arguments(int argc, char **argv)
{
    int c;
    while ((c = getopt(argc, argv, "k:u:b:c:d:n:s:S:a:p:H:e:i:l:")) != -1) {
        switch (c) {
        case 'k':
            run.plan.kind = kind_of(optarg);
            break;
        case 'u':
            take_target(optarg);
            break;
        case 'b':
            take_bodies(optarg);
            break;
        case 'c':
            run.n_links = strtoul(optarg, NULL, 10);
            break;
        case 'd':
            run.seconds = strtod(optarg, NULL);
            break;
        case 'n':
            run.limit = strtoull(optarg, NULL, 10);
            break;
        case 's':
            run.spread = strtod(optarg, NULL);
            break;
        case 'S':
            run.plan.series = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'a':
            run.plan.app = optarg;
            break;
        case 'p':
            run.pid = (int)strtol(optarg, NULL, 10);
            break;
        case 'H':
            run.plan.header = optarg;
            break;
        case 'e':
            run.expect = (int)strtol(optarg, NULL, 10);
            break;
        case 'i':
            run.every = strtod(optarg, NULL) / 1e3;
            break;
        case 'l':
            run.label = optarg;
            break;
        default:
            usage("unknown option");
        }
    }
    if (!run.plan.host)
        usage("-u is missing");
    if (run.plan.kind != UPLOAD_GET && run.n_bodies == 0)
        usage("-b is missing");
    if (run.n_links == 0 || run.plan.series == 0 || (run.spread > 0 && !run.limit))
        usage("-c and -S must be at least 1, and -s needs -n");
}

int main(int argc, char **argv)
{
    take_arguments(argc, argv);
    srandom((unsigned)wall_ns());
    run.poll_fd = epoll_create1(EPOLL_CLOEXEC);
    server_reset_peak(run.pid);
    struct server_use before = server_use(run.pid);
    double start = now();
    run_load();
    double seconds = now() - start;
    report(seconds, before, server_use(run.pid));
    return run.n_latency ? 0 : 1;
}
