/* Tells systemd how we are (Type=notify), by hand: one datagram to the socket that it names. Without one, nothing. */
#ifndef GATEWAY_NOTIFY_H
#define GATEWAY_NOTIFY_H

#include <stdint.h>

/* "READY=1", "STOPPING=1", "WATCHDOG=1"; several with '\n' between. */
void notify(const char *state);
void notify_reloading(void); /* "READY=1" follows when it is done */
/* How often "WATCHDOG=1" is to be sent, half of what systemd waits; 0: not at all. */
uint64_t notify_watchdog_ms(void);
/* Sockets that systemd has bound for us: how many, from descriptor 3 on. */
int notify_sockets(void);

#endif
