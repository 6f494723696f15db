/* Networks as in `trusted_proxies`: "10.0.0.0/8", "fd00::/8", or one address. */
#ifndef CONF_NETWORK_H
#define CONF_NETWORK_H

#include "conf/conf.h"

/* false: no network. Bits behind the prefix must be zero: whoever writes 10.1.2.3/8 did not mean all of 10/8. */
bool network_parse(struct str s, struct conf_network *out);
/* "10.0.0.0/8"; reading it gives the same. */
void network_text(struct buf *b, const struct conf_network *n);

#endif
