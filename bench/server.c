#include "bench/server.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long status_kb(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? strtol(at + strlen(key), NULL, 10) : 0;
}

static size_t read_proc(int pid, const char *name, char *out, size_t cap)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, out, cap - 1);
    if (fd >= 0)
        close(fd);
    out[n > 0 ? n : 0] = 0;
    return n > 0 ? (size_t)n : 0;
}

struct server_use server_use(int pid)
{
    struct server_use u = {0};
    char text[4096];
    if (pid <= 0 || !read_proc(pid, "stat", text, sizeof text))
        return u;
    char *at = strrchr(text, ')');
    unsigned long user = 0, kernel = 0;
    if (at && sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel) == 2)
        u.cpu = (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
    read_proc(pid, "status", text, sizeof text);
    u.rss_kb = status_kb(text, "VmRSS:");
    u.hwm_kb = status_kb(text, "VmHWM:");
    return u;
}

void server_reset_peak(int pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/clear_refs", pid);
    int fd = pid > 0 ? open(path, O_WRONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        if (write(fd, "5", 1) != 1)
            perror(path);
        close(fd);
    }
}
