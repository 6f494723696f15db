/* The address of a peer: pure data, and its text. */
#ifndef GATEWAY_ADDRESS_H
#define GATEWAY_ADDRESS_H

#include <sys/socket.h>

#include "codecs/base.h"

enum { ADDRESS_TEXT = 64 };

struct address {
    uint8_t ip[16]; /* IPv4 as ::ffff:a.b.c.d */
    uint16_t port;  /* 0: not known */
};
void address_of_v4(struct address *a, const uint8_t ip[4], uint16_t port);
/* Another family than the two of IP: zeros. */
void address_of_socket(struct address *a, const struct sockaddr *s);
/* "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80". false: anything else. */
bool address_parse(struct address *a, struct str s);
/* Of a port: a decimal number without leading zeros. */
bool address_port(struct str s, uint16_t *port);
/* Without the port, IPv4 in its own form; returns out. */
const char *address_text(const struct address *a, char out[ADDRESS_TEXT]);

#endif
