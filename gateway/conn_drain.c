/* Connections at the end of draining: who may go at once. */
#include <sys/ioctl.h>

#include "gateway/conn_parts.h"

enum { FRESH_NS = 500000000 }; /* who has just come is about to send */

/* Nothing is under way, and nothing on its way. */
static bool resting(const struct conn *c)
{
    uv_os_fd_t fd;
    int unread = 0;

    if (c->state == CONN_HEAD)
        return !c->counted && uv_hrtime() - c->request_ns > FRESH_NS;
    if (c->state != CONN_IDLE)
        return false;
    return uv_fileno((const uv_handle_t *)&c->tcp, &fd) != 0 || ioctl(fd, FIONREAD, &unread) != 0 || unread == 0;
}

void conn_close_all(struct app *app, bool all)
{
    for (struct conn *c = app->conns, *next; c; c = next) {
        next = c->next;
        if (all || resting(c))
            conn_close(c, CLOSE_SHUTDOWN, false);
    }
}
