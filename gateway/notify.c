/* systemd's datagrams. */
#include "gateway/notify.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

void notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;

    if (len < 2 || len >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(to.sun_path, path, len);
    if (path[0] == '@')
        to.sun_path[0] = '\0'; /* an abstract name */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    /* Lost: systemd finds out by its time-outs. */
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&to,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}

void notify_reloading(void)
{
    struct timespec t;
    char text[64];

    clock_gettime(CLOCK_MONOTONIC, &t);
    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000);
    notify(text);
}

/* Whether NAME_PID means this process; systemd sets it to the one that it has started. */
static int for_us(const char *name)
{
    const char *pid = getenv(name);

    return pid && strtol(pid, NULL, 10) == (long)getpid();
}

uint64_t notify_watchdog_ms(void)
{
    const char *usec = getenv("WATCHDOG_USEC");

    if (!usec || (getenv("WATCHDOG_PID") && !for_us("WATCHDOG_PID")))
        return 0;
    return strtoull(usec, NULL, 10) / 2000;
}

int notify_sockets(void)
{
    const char *n = getenv("LISTEN_FDS");
    long count = n && for_us("LISTEN_PID") ? strtol(n, NULL, 10) : 0;

    return count > 0 && count < 64 ? (int)count : 0;
}
