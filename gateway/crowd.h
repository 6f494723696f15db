/*
 * How many connections each address has open (limits.connections_per_address). Of IPv6 a /64 is one address, since that
 * is what one customer gets. Connections of a proxy that is trusted, and says nothing of its client, are not counted:
 * they are many clients'.
 */
#ifndef GATEWAY_CROWD_H
#define GATEWAY_CROWD_H

#include "gateway/address.h"

struct crowd;
struct crowd *crowd_new(void) MUST_CHECK; /* NULL: no memory */
void crowd_free(struct crowd *c);         /* NULL is fine */
/* One more, of at most `most`. false: that many are there already, or no memory; nothing has been counted. */
bool crowd_enter(struct crowd *c, const struct address *a, uint32_t most) MUST_CHECK;
/* Of one that was let in. */
void crowd_leave(struct crowd *c, const struct address *a);
size_t crowd_addresses(const struct crowd *c);

#endif
